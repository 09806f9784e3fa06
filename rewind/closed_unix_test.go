//go:build unix

package rewind_test

import (
	"os"
	"path/filepath"
	"testing"

	"reasonix/agent"
	"reasonix/internal/asuser"
	"reasonix/rewind"
	"reasonix/store"
)

// TestClosedFolder rewinds to a mode that closes a folder to its owner, with a change inside it,
// and back; and takes such a move back when it fails at any call.
func TestClosedFolder(t *testing.T) {
	if asuser.Ran(t) {
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
