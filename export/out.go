package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// stagePrefix begins the folder in which an export is made before it gets its names.
const stagePrefix = ".reasonix-export-"

// out is an export in the making. Everything is written in a folder in the place first, then made
// durable at once, and gets its final names by renames at the end, so that what is there under a
// final name is whole, whenever the process dies or the power fails.
type out struct {
	dir   string // the place
	made  bool   // the place was made by us
	stage string
	open  *os.File // the stage
	fault func(op, name string) error
}

// newOut prepares the place. It must be new or empty, but for what other exports have staged.
func newOut(o Options, finals []string) (*out, error) {
	w := &out{dir: o.Dir, fault: o.Fault}
	entries, err := os.ReadDir(w.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := w.makePlace(); err != nil {
			return nil, err
		}
		w.made = true
	case err != nil:
		return nil, fmt.Errorf("look at the place of the export: %w", err)
	}
	for _, e := range entries {
		taken := !o.Among
		for _, f := range finals {
			taken = taken || f == e.Name()
		}
		if taken && !o.Overwrite && !strings.HasPrefix(e.Name(), stagePrefix) {
			return nil, fmt.Errorf("%s holds %s: %w", w.dir, e.Name(), ErrNotEmpty)
		}
	}
	if err := w.call("mkdir", stagePrefix); err != nil {
		return nil, errors.Join(err, w.unmake())
	}
	if w.stage, err = os.MkdirTemp(w.dir, stagePrefix+"*"); err != nil { // mode 0700
		return nil, errors.Join(fmt.Errorf("stage the export: %w", err), w.unmake())
	}
	if w.open, err = os.Open(w.stage); err != nil {
		return nil, errors.Join(fmt.Errorf("stage the export: %w", err), os.Remove(w.stage), w.unmake())
	}
	return w, nil
}

// makePlace makes the place with the folders above it, durably.
func (w *out) makePlace() error {
	above := filepath.Dir(w.dir)
	for ; !isThere(above); above = filepath.Dir(above) {
	}
	if err := w.mkdirAll(w.dir); err != nil {
		return err
	}
	for dir := filepath.Dir(w.dir); ; dir = filepath.Dir(dir) {
		if err := w.syncFolder(dir); err != nil {
			return errors.Join(err, os.Remove(w.dir))
		}
		if dir == above {
			return nil
		}
	}
}

// isThere reports whether path names something, or may do so.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// unmake removes a place that was made for an export that came to nothing.
func (w *out) unmake() error {
	if !w.made {
		return nil
	}
	return os.Remove(w.dir)
}

func (w *out) call(op, name string) error {
	if w.fault == nil {
		return nil
	}
	if err := w.fault(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// staged is where a file lies until the end.
func (w *out) staged(name string) string { return filepath.Join(w.stage, filepath.FromSlash(name)) }

func (w *out) mkdirAll(dir string) error {
	if err := w.call("mkdir", dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

// file writes a staged file; sync makes it durable.
func (w *out) file(name string, fill func(*bufio.Writer) error) (err error) {
	if err := w.mkdirAll(filepath.Dir(w.staged(name))); err != nil {
		return err
	}
	if err := w.call("create", name); err != nil {
		return err
	}
	f, err := os.OpenFile(w.staged(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := buffers.Get().(*bufio.Writer)
	defer buffers.Put(b)
	b.Reset(&faulty{f, w, name})
	if err := fill(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

type faulty struct {
	to   io.Writer
	out  *out
	name string
}

func (f *faulty) Write(p []byte) (int, error) {
	if err := f.out.call("write", f.name); err != nil {
		return 0, err
	}
	return f.to.Write(p)
}

// rename gives a staged file its name in the stage.
func (w *out) rename(from, to string) error {
	if err := w.mkdirAll(filepath.Dir(w.staged(to))); err != nil {
		return err
	}
	if err := w.call("rename", to); err != nil {
		return err
	}
	return os.Rename(w.staged(from), w.staged(to))
}

// publication is a name of the stage and what it becomes.
type publication struct{ staged, final string }

// publish gives everything its final name and makes it durable. The last one of each group is what
// readers look for: it is there only while all others of the group are, and belong to it, even
// after a power cut. After an error the place is as it was.
func (w *out) publish(groups [][]publication) error {
	if err := w.sync(); err != nil {
		return fmt.Errorf("sync the export: %w", err)
	}
	m := mover{out: w}
	var err error
	for k, g := range groups {
		if err = m.publish(k, g); err != nil {
			break
		}
	}
	if err == nil {
		err = w.syncFolder(w.dir)
	}
	if err != nil {
		return fmt.Errorf("publish the export: %w", errors.Join(err, m.back()))
	}
	return nil
}

// mover renames, and can take it back.
type mover struct {
	out  *out
	undo []func() error
}

func (m *mover) move(from, to string) error {
	if err := m.out.call("rename", to); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	m.undo = append(m.undo, func() error { return os.Rename(to, from) })
	return nil
}

func (m *mover) back() (err error) {
	for i := len(m.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, m.undo[i]())
	}
	return err
}

// publish replaces what has the names of a group: the last is taken away first and put there last,
// with the folder synced in between.
func (m *mover) publish(group int, all []publication) error {
	w, last := m.out, len(all)-1
	for i := last; i >= 0; i-- {
		final := filepath.Join(w.dir, all[i].final)
		if !isThere(final) {
			continue
		}
		if err := m.move(final, w.staged(fmt.Sprintf("replaced-%d-%d", group, i))); err != nil {
			return err
		}
		if i == last {
			if err := w.syncFolder(w.dir); err != nil {
				return err
			}
		}
	}
	for i, p := range all {
		if i == last {
			if err := w.syncFolder(w.dir); err != nil {
				return err
			}
		}
		if err := m.move(w.staged(p.staged), filepath.Join(w.dir, p.final)); err != nil {
			return err
		}
	}
	return nil
}

// sync makes what is staged durable: with one call where the system has one.
func (w *out) sync() error {
	if err := w.call("syncfs", w.stage); err != nil {
		return err
	}
	if err := syncAll(w.open); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return filepath.WalkDir(w.stage, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return w.syncFolder(name)
		}
		return w.syncFile(name)
	})
}

func (w *out) syncFile(name string) error {
	if err := w.call("fsync", name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

func (w *out) syncFolder(dir string) error {
	if err := w.call("fsync", dir); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	err = f.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		err = nil // systems that cannot sync a folder, such as Windows, say so in these ways
	}
	return errors.Join(err, f.Close())
}

// close removes what was staged: all of it after an error, else what was replaced.
func (w *out) close(failed bool) error {
	err := errors.Join(w.open.Close(), os.RemoveAll(w.stage))
	if failed {
		err = errors.Join(err, w.unmake())
	}
	return err
}
