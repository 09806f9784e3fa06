//go:build unix

package workspace_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"reasonix/internal/workspace"
	"reasonix/store"
)

func TestSpecialFiles(t *testing.T) {
	w := newWorld(t, tree{"f": "644:f"})
	w.must(unix.Mkfifo(w.name("pipe"), 0o644))
	t.Chdir(w.dir) // names of sockets are short
	l, err := net.Listen("unix", "sock")
	w.must(err)
	defer l.Close()
	for p, detail := range map[store.Path]string{"pipe": "named pipe", "sock": "socket"} {
		r := w.readOne(p)
		if r.State != store.UncapturedState || r.Reason != store.GapSpecial || r.Detail != detail {
			t.Errorf("%q: %v, %q, %q", p, r.State, r.Reason, r.Detail)
		}
		// Something special in the place of a file is somebody's doing and stays.
		s := w.file("f", 0o644, "new")
		s.Path, s.Sig = p, workspace.Sig{}
		var stale *workspace.StaleError
		for _, to := range []store.State{s.To, store.AbsentState} {
			s.To = to
			if err := w.apply(w.root, []workspace.Step{s}); !errors.As(err, &stale) {
				t.Errorf("%q was replaced: %v", p, err)
			}
		}
		if fi, err := os.Lstat(w.name(string(p))); err != nil || fi.Mode().IsRegular() {
			t.Errorf("%q: %v, %v", p, fi, err)
		}
	}
	if r := w.readOne("pipe/x"); r.State != store.AbsentState || r.Blocker != "pipe" {
		t.Errorf("below a pipe: %v, blocker %q", r.State, r.Blocker)
	}
}

// TestPipeInsteadOfFile: a pipe that takes the file's place after it was looked at does not hang.
func TestPipeInsteadOfFile(t *testing.T) {
	w := newWorld(t, tree{"f": "644:f"})
	r := w.faulty(func(op string, _ store.Path) error {
		if op == "open" {
			_ = os.Remove(w.name("f"))
			_ = unix.Mkfifo(w.name("f"), 0o644)
		}
		return nil
	})
	got, err := r.Read(t.Context(), "f", w.mem.put)
	w.must(err)
	if got.State != store.UncapturedState || got.Reason != store.GapSpecial {
		t.Fatalf("%v, %q", got.State, got.Reason)
	}
}

// TestOtherBitsStay: permission bits are the nine; a folder's setgid and sticky bits are not
// ours to clear, a setuid bit is never captured.
func TestOtherBitsStay(t *testing.T) {
	w := newWorld(t, tree{"d/": "755", "suid": "755:x"})
	w.must(os.Chmod(w.name("d"), 0o755|fs.ModeSetgid|fs.ModeSticky))
	w.must(os.Chmod(w.name("suid"), 0o755|fs.ModeSetuid))
	if got := w.readOne("suid").State.Mode; got != 0o755 {
		t.Errorf("mode %o", got)
	}
	d := w.readOne("d")
	to := d.State
	to.Mode = 0o700
	w.must(w.apply(w.root, []workspace.Step{{Path: "d", From: d.State, To: to, Sig: d.Sig}, w.file("suid", 0o700, "y")}))
	fi, err := os.Stat(w.name("d"))
	w.must(err)
	if want := 0o700 | fs.ModeDir | fs.ModeSetgid | fs.ModeSticky; fi.Mode() != want {
		t.Errorf("folder has mode %v, want %v", fi.Mode(), want)
	}
	fi, err = os.Stat(w.name("suid"))
	w.must(err)
	if fi.Mode() != 0o700 {
		t.Errorf("file has mode %v", fi.Mode())
	}
}
