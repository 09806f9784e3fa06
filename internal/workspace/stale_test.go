package workspace_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// TestChangedAtTheLastMoment changes a path between the last look and the rename: what was
// written there is found again, whatever the step was (I7).
func TestChangedAtTheLastMoment(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string // of path f; "" is absent
		op       string // the call before which somebody is faster
		noSwap   bool
	}{
		"replaced":                {"644:old", "644:new", "exchange", false},
		"link replaced":           {"->old", "->new", "exchange", false},
		"removed":                 {"644:old", "", "rename", false},
		"created":                 {"", "644:new", "rename", false},
		"replaced without swap":   {"644:old", "644:new", "chmod", true},
		"removed without swap":    {"644:old", "", "lstat", true},
		"created without swap":    {"", "644:new", "chmod", true},
		"file becomes a folder":   {"644:old", "/", "rename", false},
		"mode, changed meanwhile": {"644:old", "600:old", "lstat", false},
	} {
		for _, clock := range []func() time.Time{time.Now, later} { // racy signatures and others
			t.Run(name, func(t *testing.T) {
				if !c.noSwap && !workspace.CanSwap {
					t.Skip("names cannot be exchanged here")
				}
				w := newWorld(t, treeOf(c.from), workspace.Options{Now: clock})
				steps := w.stepsTo(treeOf(c.to))
				done := false
				r := w.faulty(func(op string, p store.Path) error {
					if op == c.op && p == "f" && !done {
						done = true
						_ = os.Remove(w.name("f"))
						w.put("f", "644:by hand")
					}
					return nil
				})
				if c.noSwap {
					workspace.NoSwap(r)
				}
				err := w.apply(r, steps)
				var stale *workspace.StaleError
				if !errors.As(err, &stale) || stale.Path != "f" || !done {
					t.Fatalf("done %v, got %v, want a StaleError", done, err)
				}
				w.same(tree{"f": "644:by hand"})
			})
		}
	}
}

func treeOf(f string) tree {
	switch f {
	case "":
		return tree{}
	case "/":
		return tree{"f/": "755"}
	}
	return tree{"f": f}
}

// TestSameSizeEditWithinTheClocksGrain: stamps alone do not tell, so the content is read.
func TestSameSizeEditWithinTheClocksGrain(t *testing.T) {
	w := newWorld(t, tree{"f": "644:AAAA"})
	s := w.file("f", 0o644, "new")
	if !s.Sig.Racy {
		t.Fatal("a file written a moment ago has a signature that is not racy")
	}
	w.must(os.WriteFile(w.name("f"), []byte("BBBB"), 0o644))
	fi, err := os.Stat(w.name("f"))
	w.must(err)
	// The worst case: the second write leaves the very same stamps.
	s.Sig.MTime = fi.ModTime().UnixNano()
	s.Sig.CTime = w.readOne("f").Sig.CTime
	var stale *workspace.StaleError
	if err := w.apply(w.root, []workspace.Step{s}); !errors.As(err, &stale) {
		t.Fatalf("got %v, want a StaleError", err)
	}
	w.same(tree{"f": "644:BBBB"})
}

// TestTouchedIsNotStale: other stamps, same state.
func TestTouchedIsNotStale(t *testing.T) {
	w := newWorld(t, tree{"f": "644:old"}, workspace.Options{Now: later})
	s := w.file("f", 0o644, "new")
	w.must(os.Chtimes(w.name("f"), time.Unix(1, 0), time.Unix(1, 0)))
	w.must(w.apply(w.root, []workspace.Step{s}))
	w.same(tree{"f": "644:new"})
}

// TestSwappedBackTwice: somebody saves twice while a file is replaced. The newest has the name.
func TestSwappedBackTwice(t *testing.T) {
	if !workspace.CanSwap {
		t.Skip("names cannot be exchanged here")
	}
	w := newWorld(t, tree{"f": "644:old"})
	s := w.file("f", 0o644, "new")
	n := 0
	r := w.faulty(func(op string, _ store.Path) error {
		if op != "exchange" {
			return nil
		}
		if n++; n <= 2 {
			_ = os.Remove(w.name("f"))
			w.put("f", []string{"644:first save", "644:second save"}[n-1])
		}
		return nil
	})
	var stale *workspace.StaleError
	if err := w.apply(r, []workspace.Step{s}); !errors.As(err, &stale) {
		t.Fatalf("got %v, want a StaleError", err)
	}
	w.same(tree{"f": "644:second save", workspace.StageName(opID, "f"): "644:first save"})
}

func TestUnchanged(t *testing.T) {
	files := tree{"f": "644:f", "d/": "755", "l": "->f"}
	w := newWorld(t, files, workspace.Options{Now: later})
	for _, p := range []store.Path{"f", "d", "l", "no", "f/no"} {
		sig := w.readOne(p).Sig
		if sig.Racy || !w.root.Unchanged(p, sig) {
			t.Errorf("%q: %+v counts as changed", p, sig)
		}
		sig.Racy = true
		if w.root.Unchanged(p, sig) || w.root.Unchanged(p, workspace.Sig{}) {
			t.Errorf("%q: a racy or unknown signature proves something", p)
		}
	}
	for name, change := range map[string]func() error{
		"mode":  func() error { return os.Chmod(w.name("f"), 0o600) },
		"mtime": func() error { return os.Chtimes(w.name("f"), time.Unix(9, 0), time.Unix(9, 0)) },
		"inode": func() error {
			w.put("g", "644:f")
			return os.Rename(w.name("g"), w.name("f"))
		},
		"size": func() error { return os.Truncate(w.name("f"), 0) },
		"kind": func() error { return errors.Join(os.Remove(w.name("f")), os.Mkdir(w.name("f"), 0o755)) },
		"gone": func() error { return os.Remove(w.name("f")) },
	} {
		w.must(os.RemoveAll(w.name("f")))
		w.put("f", "644:f")
		sig := w.readOne("f").Sig
		w.must(change())
		if w.root.Unchanged("f", sig) {
			t.Errorf("%s: not seen", name)
		}
	}
	w.must(os.RemoveAll(w.name("f")))
	absent := w.readOne("f").Sig
	w.put("f", "644:f")
	if w.root.Unchanged("f", absent) {
		t.Error("a new file was not seen")
	}
}

func TestRacy(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		mtime time.Time
		clock time.Time
		want  bool
	}{
		"just now":            {now, now, true},
		"in the future":       {now.Add(24 * time.Hour), now.Add(time.Hour), true},
		"an hour ago":         {now, now.Add(time.Hour), false},
		"a whole second, but": {time.Unix(now.Unix(), 0), now.Add(time.Second), false}, // its ctime is fine
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tree{"f": "644:f"}, workspace.Options{Now: func() time.Time { return c.clock }})
			w.must(os.Chtimes(w.name("f"), c.mtime, c.mtime))
			if name == "a whole second, but" {
				w.root = w.opened(workspace.Options{Now: func() time.Time { return time.Now().Add(time.Second) }})
			}
			if got := w.readOne("f").Sig.Racy; got != c.want {
				t.Errorf("racy %v, want %v", got, c.want)
			}
		})
	}
}
