//go:build unix

package rewind_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"reasonix/agent"
	"reasonix/rewind"
	"reasonix/store"
)

// ranAsUser runs the calling test in a process without privileges when this one is root's, whom
// permissions do not bind.
func ranAsUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "as-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary, tmp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	in, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(binary, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{out.Close(), os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as a user without privileges: %v\n%s", err, text)
	}
	return true
}

// TestClosedFolder rewinds to a mode that closes a folder to its owner, with a change inside it,
// and back; and takes such a move back when it fails at any call.
func TestClosedFolder(t *testing.T) {
	if ranAsUser(t) {
		return
	}
	for _, mode := range []os.FileMode{0o300, 0o500, 0o000} {
		made := func() *world {
			w := newWorld(t, 1)
			d := filepath.Join(w.dir, "d")
			w.must(os.Mkdir(d, 0o755))
			w.put("a", "644:0")
			w.must(os.Chmod(d, mode))
			ctx := t.Context()
			step := func(call string, do func(), paths ...string) {
				e := agent.Edit{Call: call, Paths: paths}
				_, err := w.recorder.BeforeEdit(ctx, w.ids[0], e)
				w.must(err)
				do()
				_, err = w.recorder.AfterEdit(ctx, w.ids[0], e)
				w.must(err)
			}
			step("1", func() { w.must(os.Chmod(d, 0o755)) }, "d")
			step("2", func() { w.put("a", "644:1"); w.put("d/new", "644:n") }, "a", "d/new")
			w.must(w.recorder.EndTurn(ctx, w.ids[0], store.TurnDone))
			return w
		}
		for n := 0; ; n++ { // 0: no fault
			w := made()
			d := filepath.Join(w.dir, "d")
			f := &faults{n: n, err: os.ErrInvalid}
			s, root, engine := w.broken(f)
			err := move(t.Context(), engine, rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 0, Scope: store.Code})
			reached := f.calls >= n
			f.n = 0
			w.must(s.Close())
			w.must(root.Close())
			_, rerr := w.engine.Recover(t.Context())
			w.must(rerr)
			info, serr := os.Stat(d)
			w.must(serr)
			w.must(os.Chmod(d, 0o755))
			a, rerr := os.ReadFile(filepath.Join(w.dir, "a"))
			w.must(rerr)
			_, nerr := os.Lstat(filepath.Join(d, "new"))
			before := string(a) == "1" && nerr == nil && info.Mode().Perm() == 0o755
			after := string(a) == "0" && nerr != nil && info.Mode().Perm() == mode
			if !before && !after || err == nil && !after {
				t.Errorf("%o n=%d (%v): a=%s, d/new: %v, d %o", mode, n, err, a, nerr, info.Mode().Perm())
			}
			w.close()
			if n > 0 && !reached {
				break
			}
		}
	}
}
