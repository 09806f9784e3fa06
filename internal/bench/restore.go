package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

func restoreLines() []line {
	return []line{
		{
			name: "replace-1000", what: "replace 1,000 files of 10 KB, durable, without a history", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 0.9}, {Of: synced, AtLeast: 6}}, measure: func(r *rig) (figures, error) { return measureRestore(r, (*world).replaces) },
		},
		{
			name: "restore-1000", what: "rewind, or undo, of 1,000 files of 10 KB: durable, and undoable", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 0.55}}, measure: func(r *rig) (figures, error) { return measureRestore(r, (*world).moves) },
		},
		{
			name: "rewind-1", what: "rewind, or undo, of one file in a tree of 100,000", unit: "ms",
			targets: []Target{{Of: "value", AtMost: 10}}, measure: measureRewindOne,
		},
		{
			name: "plan", what: "plan over 5,000 turns of 3 files, 240 files read", unit: "ms",
			targets: []Target{{Of: "value", AtMost: 10}}, measure: measurePlan,
		},
	}
}

// synced is a tool that replaces one file after the other and syncs each.
const synced = "a sync for each file"

// measureRestore goes to and fro between two states of many files. Git checks them out and syncs
// nothing.
func measureRestore(r *rig, ours func(*world, []string) (func() error, error)) (figures, error) {
	w, err := r.world("")
	if err != nil {
		return figures{}, err
	}
	names, rnd := fileNames(r.size(1000, 20)), random()
	var texts [2][]string
	for range names {
		text := code(rnd, 10<<10)
		texts[0], texts[1] = append(texts[0], text), append(texts[1], edited(rnd, text))
	}
	write := func(dir string, texts []string, put func(dir, name, text string) error) error {
		for i, name := range names {
			if err := put(dir, name, texts[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(w.dir, texts[0], put); err != nil {
		return figures{}, err
	}
	err = errors.Join(w.begin(), w.edit(func() error { return write(w.dir, texts[1], put) }, names...), w.end())
	if err != nil {
		return figures{}, err
	}
	beside, err := r.folder("beside")
	if err != nil {
		return figures{}, err
	}
	git, err := r.shadow(beside)
	if err != nil {
		return figures{}, err
	}
	trees, at := [2]string{}, 0
	for i := range trees {
		if err := write(beside, texts[i], put); err != nil {
			return figures{}, err
		}
		if git != nil {
			if trees[i], err = git.tree(); err != nil {
				return figures{}, err
			}
		}
	}
	naive := 0
	do, err := ours(w, names)
	if err != nil {
		return figures{}, err
	}
	return r.compare(
		side{do: do},
		git.side(1, nil, func() error {
			at = 1 - at
			_, err := git.run("read-tree", "-u", "--reset", trees[at])
			return err
		}),
		side{name: synced, do: func() error {
			naive = 1 - naive
			return write(beside, texts[naive], func(dir, name, text string) error {
				return replaceSynced(filepath.Join(dir, filepath.FromSlash(name)), []byte(text))
			})
		}},
	)
}

// moves goes there and back with all that belongs to it.
func (w *world) moves([]string) (func() error, error) { return w.there(store.Both), nil }

// replaces goes there and back with what replaces files, alone.
func (w *world) replaces(names []string) (func() error, error) {
	var paths []store.Path
	for _, name := range names {
		paths = append(paths, store.Path(name))
	}
	read := func() ([]capture.Reading, error) { return w.capture.Read(w.r.ctx, paths) }
	now, err := read()
	if err != nil {
		return nil, err
	}
	if _, err := w.move(rewind.Request{Kind: store.OpRewind, Turn: 0, Scope: store.Both}); err != nil {
		return nil, err
	}
	then, err := read()
	if err != nil {
		return nil, err
	}
	n := 0
	return func() error {
		var steps []workspace.Step
		for i := range then {
			steps = append(steps, workspace.Step{Path: then[i].Path, From: then[i].State, To: now[i].State})
		}
		then, now = now, then
		n++
		staged, err := w.capture.Root.Stage(w.r.ctx, fmt.Sprint("bench", n), steps, w.store.Blobs().Open)
		if err != nil {
			return err
		}
		return errors.Join(staged.Apply(w.r.ctx), staged.Discard())
	}, nil
}

func measureRewindOne(r *rig) (figures, error) {
	dir, err := r.wide()
	if err != nil {
		return figures{}, err
	}
	w, err := r.world(dir)
	if err != nil {
		return figures{}, err
	}
	const name = "d000/e00/f00.txt"
	before, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return figures{}, err
	}
	err = errors.Join(w.unlimited().scan(), w.begin(), w.edit(func() error { return put(dir, name, "changed\n") }, name), w.end())
	if err != nil {
		return figures{}, err
	}
	f, err := r.compare(side{times: r.size(20, 2), do: w.there(store.Both)})
	return f, errors.Join(err, put(dir, name, string(before)))
}

// measurePlan plans a rewind of everything.
func measurePlan(r *rig) (figures, error) {
	w, err := r.world("")
	if err != nil {
		return figures{}, err
	}
	rnd := random()
	var paths []store.Path
	for _, name := range fileNames(240) {
		if err := put(w.dir, name, code(rnd, 10<<10)); err != nil {
			return figures{}, err
		}
		paths = append(paths, store.Path(name))
	}
	read, err := w.capture.Read(r.ctx, paths)
	if err != nil {
		return figures{}, err
	}
	if err := w.history(r.size(5000, 100), read); err != nil {
		return figures{}, err
	}
	return r.compare(side{times: r.size(10, 1), do: func() error {
		p, err := w.engine.Plan(r.ctx, rewind.Request{Kind: store.OpRewind, Session: w.id, Turn: 0, Scope: store.Both, Force: true})
		if err == nil && len(p.Result().Written) == 0 {
			err = errors.New("the plan is empty")
		}
		return err
	}})
}

// history records turns that change the modes of three of the paths each, without a look at the disk.
func (w *world) history(turns int, read []capture.Reading) error {
	next := 0
	one := func(tx *store.WriteTx) error {
		t, err := tx.BeginTurn(w.id, "", fmt.Sprintf("change %d", next))
		if err != nil {
			return err
		}
		for range 3 {
			now := read[next%len(read)]
			next++
			if err := capture.Bind(tx, now); err != nil {
				return err
			}
			c := store.Change{Path: now.Path, Source: store.SourceTool, Origin: store.Agent, Before: now.State, After: now.State}
			if next/len(read)%2 == 0 {
				c.Before.Mode = 0o600
			} else {
				c.After.Mode = 0o600
			}
			if err := tx.AppendChange(t.Node, c); err != nil {
				return err
			}
		}
		return tx.EndTurn(w.id, store.TurnDone)
	}
	const batch = 250
	for done := 0; done < turns; done += batch {
		err := w.store.Update(w.r.ctx, func(tx *store.WriteTx) error {
			for range min(batch, turns-done) {
				if err := one(tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
