package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func scanLines() []line {
	return []line{
		{
			name: "first-scan", what: "the first capture of a whole tree", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 4}}, measure: measureFirstScan,
		},
		{
			name: "scan", what: "scan, nothing changed, in process", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 1.6}}, measure: func(r *rig) (figures, error) {
				t, err := r.tree()
				if err != nil {
					return figures{}, err
				}
				return measureScan(r, t.dir, t.note(), nil)
			},
		},
		{
			name: "scan-100000", what: "scan, nothing changed, 100,000 files", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 2.5}}, measure: func(r *rig) (figures, error) {
				dir, err := r.wide()
				if err != nil {
					return figures{}, err
				}
				return measureScan(r, dir, "", nil)
			},
		},
		{
			name: "scan-100", what: "scan, 100 files changed", unit: "ms",
			targets: []Target{{Of: "git", AtLeast: 2.5}}, measure: func(r *rig) (figures, error) {
				t, err := r.tree()
				if err != nil {
					return figures{}, err
				}
				return measureScan(r, t.dir, t.note(), t.changer())
			},
		},
	}
}

// scan scans and wants it whole.
func (w *world) scan() error {
	found, err := w.capture.Scan(w.r.ctx, "", false)
	if err == nil && !found.Complete {
		err = errors.New("the scan did not come to its end")
	}
	return err
}

// unlimited lets scans of any tree come to their end.
func (w *world) unlimited() *world {
	s := &w.capture.Scanning
	s.MaxFile, s.MaxFiles, s.MaxBytes = -1, -1, -1
	return w
}

// measureFirstScan stores a whole tree in a new store and in a new repository.
func measureFirstScan(r *rig) (figures, error) {
	t, err := r.tree()
	if err != nil {
		return figures{}, err
	}
	var w *world
	var git *shadow
	fresh := func() (err error) {
		w, err = r.world(t.dir)
		return err
	}
	other, err := r.shadow(t.dir)
	if err != nil {
		return figures{}, err
	}
	f, err := r.compare(
		side{prepare: fresh, do: func() error { return w.unlimited().scan() }},
		other.side(1, func() (err error) { git, err = r.shadow(t.dir); return err }, func() error { _, err := git.tree(); return err }),
	)
	f.note = t.note()
	return f, err
}

// measureScan scans a tree that both know, after change, if any, has changed some of it.
func measureScan(r *rig, dir, note string, change func() error) (figures, error) {
	w, err := r.world(dir)
	if err != nil {
		return figures{}, err
	}
	git, err := r.shadow(dir)
	if err != nil {
		return figures{}, err
	}
	both := func() error {
		if git != nil {
			if _, err := git.tree(); err != nil {
				return err
			}
		}
		return w.unlimited().scan()
	}
	if err := both(); err != nil {
		return figures{}, err
	}
	// No stamp is so young any more that either has to read a file again for that.
	if err := r.wait(1100 * time.Millisecond); err != nil {
		return figures{}, err
	}
	if err := both(); err != nil {
		return figures{}, err
	}
	f, err := r.compare(side{prepare: change, do: w.scan}, git.side(1, change, func() error { _, err := git.tree(); return err }))
	f.note = note
	return f, err
}

// changer changes a hundred files of the tree each time. Both sides see every change, each its
// own hundred anew and those that the other one's turn has changed.
func (t *tree) changer() func() error {
	round := 0
	return func() error {
		round++
		for i := range min(100, len(t.files)) {
			name := filepath.Join(t.dir, t.files[(i*97+round*31)%len(t.files)])
			f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(f, "// %d\n", round)
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

// wait lets time pass.
func (r *rig) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
