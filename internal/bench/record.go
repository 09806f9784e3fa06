package bench

import (
	"os"
	"path/filepath"

	"reasonix/agent"
)

func recordLines() []line {
	return []line{
		{
			name: "capture", what: "capture one 10 KB edit, durable, in process", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 35}}, measure: measureCapture,
		},
		{
			name: "turn-1000", what: "a turn that touches 1,000 files, one capture each", unit: "ms",
			targets: []Target{{Of: "JSON", AtLeast: 30}}, measure: func(r *rig) (figures, error) { return measureTurn(r, r.size(1000, 40), 1) },
		},
		{
			name: "turn-1", what: "a turn that touches one file", unit: "ms",
			targets: []Target{{Of: "JSON", AtLeast: 1.2}}, measure: func(r *rig) (figures, error) { return measureTurn(r, 1, r.size(100, 5)) },
		},
	}
}

// measureCapture captures before-states in a workspace of 240 files.
func measureCapture(r *rig) (figures, error) {
	w, err := r.world("")
	if err != nil {
		return figures{}, err
	}
	const files = 240
	rnd := random()
	texts := make([]string, files)
	for i := range texts {
		texts[i] = code(rnd, 10<<10)
		if err := put(w.dir, fileName(i), texts[i]); err != nil {
			return figures{}, err
		}
	}
	git, err := r.shadow(w.dir)
	if err != nil {
		return figures{}, err
	}
	if git != nil {
		if err := git.commit(); err != nil {
			return figures{}, err
		}
	}
	next := -1
	change := func() error {
		next++
		if next%files == 0 { // the first touch of a file in a turn is the one that captures
			if err := w.begin(); err != nil {
				return err
			}
		}
		i := next % files
		texts[i] = edited(rnd, texts[i])
		return put(w.dir, fileName(i), texts[i])
	}
	return r.compare(side{times: r.size(200, 10), prepare: change, do: func() error {
		_, err := w.recorder.BeforeEdit(r.ctx, w.id, agent.Edit{Tool: "edit", Paths: []string{fileName(next % files)}})
		return err
	}}, git.side(r.size(10, 1), change, func() error { return git.commit() }))
}

// measureTurn captures each of n files in a turn of its own, times times in a round.
func measureTurn(r *rig, n, times int) (figures, error) {
	w, err := r.world("")
	if err != nil {
		return figures{}, err
	}
	at, err := r.folder("json")
	if err != nil {
		return figures{}, err
	}
	rnd := random()
	for i := range n {
		if err := put(w.dir, fileName(i), code(rnd, 10<<10)); err != nil {
			return figures{}, err
		}
	}
	change := func() error {
		for i := range n {
			b, err := os.ReadFile(filepath.Join(w.dir, fileName(i)))
			if err != nil {
				return err
			}
			if err := put(w.dir, fileName(i), edited(rnd, string(b))); err != nil {
				return err
			}
		}
		return w.begin()
	}
	turns := &jsonTurn{dir: at}
	return r.compare(side{times: times, prepare: change, do: func() error {
		for i := range n {
			e := agent.Edit{Tool: "edit", Paths: []string{fileName(i)}}
			if _, err := w.recorder.BeforeEdit(r.ctx, w.id, e); err != nil {
				return err
			}
		}
		return nil
	}}, side{name: "JSON", times: times, prepare: func() error { turns.begin("change"); return nil }, do: func() error {
		for i := range n {
			b, err := os.ReadFile(filepath.Join(w.dir, fileName(i)))
			if err != nil {
				return err
			}
			if err := turns.capture(fileName(i), string(b)); err != nil {
				return err
			}
		}
		return nil
	}})
}
