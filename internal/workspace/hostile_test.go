package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/asuser"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// TestPlantedLinkAsParent puts a link in the place of a recorded folder (I11): nothing is
// written through it, whether it leads outside or to another folder of the workspace.
func TestPlantedLinkAsParent(t *testing.T) {
	files := tree{"d/": "755", "d/f": "644:old", "d/gone": "644:gone", "d/mode": "644:same", "d/e/": "755"}
	victimFiles := tree{"f": "644:old", "gone": "644:gone", "mode": "644:same", "e/": "755"}
	for _, inside := range []bool{false, true} {
		w := newWorld(t, files)
		steps := []workspace.Step{
			w.file("d/f", 0o644, "new"), w.gone("d/gone"), w.file("d/mode", 0o600, "same"), w.file("d/new", 0o644, "n"), w.gone("d/e"),
		}
		victim := realTemp(t)
		if inside {
			victim = mkdir(t, w.dir, "victim")
		}
		(&world{t: t, dir: victim}).build(victimFiles)
		w.must(os.RemoveAll(w.name("d")))
		w.must(os.Symlink(victim, w.name("d")))
		before := w.files()
		for i, s := range steps {
			err := w.apply(w.root, []workspace.Step{s})
			var blocked *workspace.BlockedError
			if s.To.Kind == store.Absent {
				w.must(err) // absent unless a link is followed
			} else if !errors.As(err, &blocked) || blocked.Parent != "d" {
				t.Errorf("step %d: %v, want a BlockedError", i, err)
			}
		}
		w.must(w.root.Sweep(opID, []store.Path{"d/f"}))
		w.same(before)
		if diff := cmp.Diff(victimFiles, filesOf(t, victim)); diff != "" {
			t.Errorf("victim (-want +got):\n%s", diff)
		}
	}
}

// TestParentSwappedDuringApply swaps the folder for a link in the middle of Apply, before each
// call in turn: nothing is written to where the link leads, and nothing to where the folder
// was moved after that call.
func TestParentSwappedDuringApply(t *testing.T) {
	files := tree{"d/": "755", "d/a": "644:old", "d/b": "644:old", "d/c": "644:old"}
	to := tree{"d/": "755", "d/a": "644:new", "d/b": "600:old", "d/n": "644:new"}
	victimFiles := tree{"a": "644:old", "b": "644:old", "c": "644:old"}
	for n := 1; ; n++ {
		w := newFastWorld(t, files)
		steps := w.stepsTo(to)
		victim, moved := realTemp(t), filepath.Join(realTemp(t), "moved")
		(&world{t: t, dir: victim}).build(victimFiles)
		calls, swapped := 0, false
		staged, err := w.stage(w.faulty(func(string, store.Path) error {
			if calls++; calls == n {
				if os.Rename(w.name("d"), moved) != nil {
					w.must(os.Rename(w.name("d"), w.name("moved"))) // another file system
				}
				w.must(os.Symlink(victim, w.name("d")))
				swapped = true
			}
			return nil
		}), steps)
		if err == nil {
			err = staged.Apply(t.Context())
			_ = staged.Discard()
		}
		if diff := cmp.Diff(victimFiles, filesOf(t, victim)); diff != "" {
			t.Fatalf("call %d: victim (-want +got):\n%s", n, diff)
		}
		if !swapped {
			w.must(err)
			w.same(to)
			if n < 20 {
				t.Fatalf("only %d calls", n)
			}
			return
		}
	}
}

// TestStagedFileReplaced: what somebody puts in the place of a staged file is not installed.
func TestStagedFileReplaced(t *testing.T) {
	w := newWorld(t, tree{"f": "644:old", "secret": "600:secret"})
	for _, plant := range []string{"644:planted", "->secret"} {
		staged, err := w.stage(w.root, []workspace.Step{w.file("f", 0o644, "new")})
		w.must(err)
		name := workspace.StageName(opID, "f")
		w.must(os.Remove(w.name(name)))
		w.put(name, plant)
		if err := staged.Apply(t.Context()); err == nil {
			t.Error("it was installed")
		}
		w.must(staged.Discard())
		w.same(tree{"f": "644:old", "secret": "600:secret"})
	}
}

// TestStoreIsNotWritten: neither by its path nor under another name.
func TestStoreIsNotWritten(t *testing.T) {
	files := tree{"store/": "755", "store/db": "600:db"}
	w := newWorld(t, files)
	steps := [][]workspace.Step{{w.file("store/db", 0o600, "x")}, {w.gone("store/db")}, {w.gone("store")}, {w.file("store/new", 0o600, "x")}}
	w.root = w.opened(workspace.Options{Protected: []string{w.name("store")}})
	for _, s := range steps {
		if err := w.apply(w.root, s); !errors.Is(err, workspace.ErrProtected) {
			t.Errorf("%q: %v, want ErrProtected", s[0].Path, err)
		}
	}
	w.same(files)
	w.must(os.Rename(w.name("store"), w.name("other")))
	for _, s := range steps {
		s[0].Path = "other" + s[0].Path[len("store"):]
		if err := w.apply(w.root, s); !errors.Is(err, workspace.ErrProtected) {
			t.Errorf("%q: %v, want ErrProtected", s[0].Path, err)
		}
	}
	w.same(tree{"other/": "755", "other/db": "600:db"})
}

func TestReadOnlyFolder(t *testing.T) {
	if asuser.Ran(t) {
		return
	}
	files := tree{"d/": "555", "d/f": "644:old"}
	w := newWorld(t, files)
	for _, s := range []workspace.Step{w.file("d/f", 0o644, "new"), w.gone("d/f"), w.file("d/n", 0o644, "new")} {
		if err := w.apply(w.root, []workspace.Step{s}); !errors.Is(err, os.ErrPermission) {
			t.Errorf("%q: %v, want a permission error", s.Path, err)
		}
		if err := w.root.Writable(s.Path); !errors.Is(err, os.ErrPermission) {
			t.Errorf("Writable(%q): %v", s.Path, err)
		}
		w.same(files)
	}
	// With the folder itself among the steps it is opened and closed again.
	d := w.readOne("d")
	w.must(w.apply(w.root, []workspace.Step{{Path: "d", From: d.State, To: d.State, Sig: d.Sig}, w.file("d/f", 0o600, "new")}))
	w.same(tree{"d/": "555", "d/f": "600:new"})
}

func TestUnreadable(t *testing.T) {
	if asuser.Ran(t) {
		return
	}
	w := newWorld(t, tree{"f": "0:secret", "d/": "755", "d/f": "644:f"})
	w.must(os.Chmod(w.name("d"), 0))
	for _, p := range []store.Path{"f", "d/f"} {
		r := w.readOne(p)
		if r.State != store.UncapturedState || r.Reason != store.GapUnreadable {
			t.Errorf("%q: %v, %q", p, r.State, r.Reason)
		}
	}
	if r := w.readOne("d"); r.State != (store.State{Kind: store.Dir}) {
		t.Errorf("d: %v", r.State)
	}
}

func TestWritable(t *testing.T) {
	w := newWorld(t, tree{"d/": "755", "f": "644:f", "l": "->d"})
	for _, p := range []store.Path{"d", "d/new", "new/new/new", "f/x", "l/x"} {
		if err := w.root.Writable(p); err != nil {
			t.Errorf("Writable(%q): %v", p, err)
		}
	}
	if err := w.root.Writable(".git/x"); !errors.Is(err, workspace.ErrProtected) {
		t.Errorf("below .git: %v", err)
	}
}
