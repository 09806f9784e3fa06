package rewind_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/rewind"
	"reasonix/store"
)

// manifest is everything below a folder: kind, permission bits, bytes and link targets.
func manifest(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			all[rel+"/"] = fmt.Sprintf("%o", info.Mode().Perm())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			all[rel] = "->" + target
			return err
		case info.Mode().IsRegular():
			b, err := os.ReadFile(name)
			all[rel] = fmt.Sprintf("%o:%s", info.Mode().Perm(), b)
			return err
		default:
			all[rel] = info.Mode().Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// names that a tree is made of: short, so that kinds collide, and odd, so that bytes count.
var treeNames = []string{"a", "b", "-c", "d e ", "é", "e\u0301", "\xff", "q\"'\\", "n\nl", strings.Repeat("x", 255)}

func (w *world) treePath() string {
	depth := 1 + w.rnd.IntN(3)
	parts := make([]string, depth)
	for i := range parts {
		parts[i] = treeNames[w.rnd.IntN(len(treeNames))]
	}
	return filepath.Join(parts...)
}

// treeEdit is one announced change of anything into anything.
func (w *world) treeEdit(id store.SessionID) {
	p := w.treePath()
	name := filepath.Join(w.dir, p)
	// Something on the way may be a file: then that is what the tool replaces.
	for up := filepath.Dir(p); up != "."; up = filepath.Dir(up) {
		if info, err := os.Lstat(filepath.Join(w.dir, up)); err == nil && !info.IsDir() {
			p, name = up, filepath.Join(w.dir, up)
		}
	}
	e := agent.Edit{Call: fmt.Sprint("c", w.value), Tool: "tree", Paths: []string{p}}
	w.value++
	what := w.rnd.IntN(8)
	var target string
	if what == 5 { // a rename names both
		target = w.treePath()
		for up := target; up != "."; up = filepath.Dir(up) {
			if info, err := os.Lstat(filepath.Join(w.dir, up)); (err == nil && !info.IsDir()) || up == p || strings.HasPrefix(p, up+"/") {
				target = ""
				break
			}
		}
		if target == "" || target == p {
			what = 0
		} else {
			e.Paths = append(e.Paths, target)
		}
	}
	_, err := w.recorder.BeforeEdit(w.t.Context(), id, e)
	w.must(err)
	w.note("edit %d %q %.30q", what, p, target)
	parent := func(n string) { w.must(os.MkdirAll(filepath.Dir(n), 0o755)) }
	switch what {
	case 0, 1, 2: // a file
		w.must(os.RemoveAll(name))
		parent(name)
		w.must(os.WriteFile(name, []byte(fmt.Sprint("content ", w.value)), 0o600))
		w.must(os.Chmod(name, []os.FileMode{0o644, 0o755, 0o600, 0o444}[w.rnd.IntN(4)]))
	case 3: // gone
		w.must(os.RemoveAll(name))
	case 4: // an empty folder
		w.must(os.RemoveAll(name))
		w.must(os.MkdirAll(name, 0o755))
		w.must(os.Chmod(name, []os.FileMode{0o755, 0o700, 0o775}[w.rnd.IntN(3)]))
	case 5:
		if _, err := os.Lstat(name); err == nil {
			to := filepath.Join(w.dir, target)
			w.must(os.RemoveAll(to))
			parent(to)
			w.must(os.Rename(name, to))
		}
	case 6: // a link, dangling or into the tree
		w.must(os.RemoveAll(name))
		parent(name)
		w.must(os.Symlink([]string{"nowhere", "a", "../outside"}[w.rnd.IntN(3)], name))
	case 7: // a mode
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			w.must(os.Chmod(name, info.Mode().Perm()^0o010))
		}
	}
	_, err = w.recorder.AfterEdit(w.t.Context(), id, e)
	w.must(err)
}

// TestEveryKind rewinds trees in which files, folders and links become one another, at any
// depth and under odd names: for each k the manifest is that of the start of turn k (I4, I9).
func TestEveryKind(t *testing.T) {
	seeds := uint64(25)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			defer func() { w.close() }()
			w.rnd = rand.New(rand.NewPCG(seed, 2))
			id := w.ids[0]
			for range 12 { // what was there before the agent came
				name := filepath.Join(w.dir, w.treePath())
				if os.MkdirAll(filepath.Dir(name), 0o755) == nil {
					_ = os.WriteFile(name, []byte("before"), 0o644)
				}
			}
			var starts []map[string]string
			for n := range 6 {
				starts = append(starts, manifest(t, w.dir))
				_, err := w.recorder.BeginTurn(t.Context(), id, "", fmt.Sprint("turn ", n), nil)
				w.must(err)
				for range 1 + w.rnd.IntN(6) {
					w.treeEdit(id)
				}
				w.must(w.recorder.EndTurn(t.Context(), id, store.TurnDone))
			}
			end := manifest(t, w.dir)
			apply := func(r rewind.Request) rewind.Result {
				t.Helper()
				r.Session = id
				p, err := w.engine.Plan(t.Context(), r)
				if err != nil {
					w.fail("plan %+v: %v\n%+v", r, err, p)
				}
				res, err := w.engine.Apply(t.Context(), p)
				w.must(err)
				w.verify(true)
				return res
			}
			same := func(what string, want map[string]string) {
				t.Helper()
				if d := cmp.Diff(want, manifest(t, w.dir)); d != "" {
					w.fail("%s (-want +got):\n%s", what, d)
				}
			}
			for _, scope := range []store.Scope{store.Code, store.Both} {
				order := w.rnd.Perm(len(starts))
				for _, k := range order {
					apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: scope})
					same(fmt.Sprintf("rewind %d %v", k, scope), starts[k])
					apply(rewind.Request{Kind: store.OpUndo})
					same("undo", end)
					apply(rewind.Request{Kind: store.OpRedo})
					same("redo", starts[k])
					apply(rewind.Request{Kind: store.OpUndo})
					same("undo again", end)
				}
			}
			// Further and further back, each from where the last one ended; then all at once forward.
			ks := w.rnd.Perm(len(starts))
			slices.Sort(ks)
			var first store.OpID
			for _, k := range slices.Backward(ks) {
				res := apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: store.Both})
				same(fmt.Sprintf("rewind %d", k), starts[k])
				if first == 0 {
					first = res.Operation
				}
			}
			apply(rewind.Request{Kind: store.OpUndo, Op: first})
			same("undo of all", end)
		})
	}
}
