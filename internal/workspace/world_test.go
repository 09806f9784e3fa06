package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// memory keeps contents as a blob store does.
type memory struct {
	mu sync.Mutex
	m  map[blob.Hash][]byte
}

func (m *memory) put(_ context.Context, r io.Reader, _ blob.Hash) (*blob.Prepared, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[blob.Hash][]byte{}
	}
	m.m[blob.Sum(b)] = b
	return blob.Digest(bytes.NewReader(b))
}

func (m *memory) open(_ context.Context, h blob.Hash) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.m[h]
	if !ok {
		return nil, fmt.Errorf("no content %s", h.Short())
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// tree describes what a folder holds: "d/" → "755", "f" → "644:bytes", "l" → "->target".
type tree map[string]string

// world is a root with files in it and a memory of contents.
type world struct {
	t    testing.TB
	dir  string
	root *workspace.Root
	mem  *memory
}

func newWorld(t testing.TB, files tree, o ...workspace.Options) *world {
	t.Helper()
	return newWorldAt(t, realTemp(t), files, o...)
}

// newFastWorld is newWorld in memory where the system has such a place: for loops of thousands
// of syncs, whose order is what is tested and not the disk.
func newFastWorld(t testing.TB, files tree) *world {
	t.Helper()
	base, err := os.MkdirTemp("/dev/shm", "workspace-test-")
	if err != nil {
		return newWorld(t, files)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	dir := filepath.Join(base, "w") // one folder deeper: tests write through links to "..", too
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return newWorldAt(t, dir, files)
}

func newWorldAt(t testing.TB, dir string, files tree, o ...workspace.Options) *world {
	t.Helper()
	w := &world{t: t, dir: dir, mem: &memory{}}
	t.Cleanup(w.unlock)
	w.build(files)
	w.root = w.opened(append(o, workspace.Options{})[0])
	return w
}

// realTemp is a temporary folder by its canonical name (on macOS /var is a link).
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (w *world) opened(o workspace.Options) *workspace.Root {
	w.t.Helper()
	root, err := workspace.Open(w.dir, o)
	w.must(err)
	w.t.Cleanup(func() { root.Close() })
	return root
}

// faulty is another opening of the same root.
func (w *world) faulty(fault func(op string, p store.Path) error) *workspace.Root {
	w.t.Helper()
	return w.opened(workspace.Options{Fault: fault})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) name(p string) string { return filepath.Join(w.dir, filepath.FromSlash(p)) }

// unlock lets the folders be removed when the test is over.
func (w *world) unlock() {
	_ = filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
}

// build makes files; modes last, so that a folder without write permission can be filled.
func (w *world) build(files tree) {
	w.t.Helper()
	names := slices.Sorted(maps.Keys(files))
	for _, p := range names {
		if strings.HasSuffix(p, "/") {
			w.must(os.MkdirAll(w.name(p), 0o755))
		}
	}
	for _, p := range names {
		if !strings.HasSuffix(p, "/") {
			w.put(p, files[p])
		}
	}
	for _, p := range slices.Backward(names) {
		if strings.HasSuffix(p, "/") {
			w.must(os.Chmod(w.name(p), mode(w.t, files[p])))
		}
	}
}

func (w *world) put(p, what string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.name(p)), 0o755))
	if target, ok := strings.CutPrefix(what, "->"); ok {
		w.must(os.Symlink(target, w.name(p)))
		return
	}
	perm, content, _ := strings.Cut(what, ":")
	w.must(os.WriteFile(w.name(p), []byte(content), 0o600))
	w.must(os.Chmod(w.name(p), mode(w.t, perm)))
}

func mode(t testing.TB, octal string) fs.FileMode {
	t.Helper()
	n, err := strconv.ParseUint(octal, 8, 12)
	if err != nil {
		t.Fatal(err)
	}
	return fs.FileMode(n)
}

// files is everything below the root, staged files included.
func (w *world) files() tree { return filesOf(w.t, w.dir) }

func filesOf(t testing.TB, dir string) tree {
	t.Helper()
	all := tree{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		rel = filepath.ToSlash(rel)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			all[rel+"/"] = fmt.Sprintf("%o", fi.Mode().Perm())
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			all[rel] = "->" + target
			return err
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(name)
			all[rel] = fmt.Sprintf("%o:%s", fi.Mode().Perm(), b)
			return err
		default:
			all[rel] = fi.Mode().Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (w *world) same(want tree) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.files()); diff != "" {
		w.t.Fatalf("files (-want +got):\n%s", diff)
	}
}

// paths are all paths of the trees, each once.
func paths(trees ...tree) []store.Path {
	seen := map[store.Path]bool{}
	for _, files := range trees {
		for p := range files {
			p = strings.TrimSuffix(p, "/")
			for ; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
				seen[store.Path(p)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (w *world) read(ps []store.Path) []workspace.Reading {
	w.t.Helper()
	readings, err := w.root.ReadAll(w.t.Context(), ps, nil, w.mem.put)
	w.must(err)
	return readings
}

func (w *world) readOne(p store.Path) workspace.Reading {
	w.t.Helper()
	reading, err := w.root.Read(w.t.Context(), p, w.mem.put)
	w.must(err)
	return reading
}

// stepsTo are the steps from what is on disk to files. Paths that no tree names are left alone.
func (w *world) stepsTo(files tree) []workspace.Step {
	w.t.Helper()
	other := newFastWorld(w.t, files)
	defer os.RemoveAll(other.dir)
	other.mem = w.mem
	ps := paths(w.files(), files)
	now, then := w.read(ps), other.read(ps)
	steps := make([]workspace.Step, len(ps))
	for i, p := range ps {
		steps[i] = workspace.Step{Path: p, From: now[i].State, To: then[i].State, Sig: now[i].Sig}
	}
	return steps
}

const opID = "operation 7"

func (w *world) stage(r *workspace.Root, steps []workspace.Step) (*workspace.Staged, error) {
	return r.Stage(w.t.Context(), opID, steps, w.mem.open)
}

// apply stages and applies; on an error it discards.
func (w *world) apply(r *workspace.Root, steps []workspace.Step) error {
	staged, err := w.stage(r, steps)
	if err != nil {
		return err
	}
	if err := staged.Apply(w.t.Context()); err != nil {
		return errors.Join(err, staged.Discard())
	}
	return staged.Discard()
}

// file is the step that gives p a content, from what it is now.
func (w *world) file(p store.Path, perm uint32, content string) workspace.Step {
	w.t.Helper()
	r := w.readOne(p)
	c, err := w.mem.put(w.t.Context(), strings.NewReader(content), blob.Hash{})
	w.must(err)
	to := store.State{Kind: store.File, Mode: perm, Blob: c.Hash(), Size: c.Size()}
	return workspace.Step{Path: p, From: r.State, To: to, Sig: r.Sig}
}

// gone is the step that removes p.
func (w *world) gone(p store.Path) workspace.Step {
	w.t.Helper()
	r := w.readOne(p)
	return workspace.Step{Path: p, From: r.State, To: store.AbsentState, Sig: r.Sig}
}

// later is a clock far enough ahead that no signature is racy.
func later() time.Time { return time.Now().Add(time.Hour) }
