package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"reasonix/blob"
	"reasonix/store"
)

const (
	stageWorkers = 4  // where one call syncs all; more only fight for the folders' locks
	syncWorkers  = 16 // files synced at a time: a journal commits them together
	fewFiles     = 16 // up to so many, syncing each is cheaper than all that is dirty on the disk
)

// Contents opens the content of a file or the target of a symlink. It is called from several
// goroutines at once. The reader must fail rather than give other bytes than those of h.
type Contents func(ctx context.Context, h blob.Hash) (io.ReadCloser, error)

// Staged is a set of steps whose contents lie beside their targets, ready to be applied. It is
// for one goroutine and good for one Apply.
type Staged struct {
	r     *Root
	items []*item
	dirs  map[store.Path]*item // those that are or become folders
	kept  []store.Path
}

// Stage writes the contents that steps need under staged names derived from id and path: in
// the target's own folder, or the nearest one that exists. They are made with O_EXCL and mode
// 0600 and keep it until they are renamed. Nothing that has another name changes. When it
// returns nil all contents are durable; when it fails it removes what it wrote, and what it
// could not remove is left to Sweep with the same id, as after a crash.
//
// Errors are those of the steps (ErrInvalid, ErrProtected, ErrTwice), of contents and of the
// file system; a folder that may not be written gives an error that wraps fs.ErrPermission.
func (r *Root) Stage(ctx context.Context, id string, steps []Step, contents Contents) (*Staged, error) {
	items, err := r.newItems(id, steps)
	if err != nil {
		return nil, err
	}
	s := &Staged{r: r, items: items, dirs: make(map[store.Path]*item)}
	for _, it := range items {
		if it.From.Kind == store.Dir || it.To.Kind == store.Dir {
			s.dirs[it.Path] = it
		}
	}
	if err := s.stage(ctx, contents); err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

func (s *Staged) stage(ctx context.Context, contents Contents) error {
	var todo []*item
	for _, it := range s.items {
		if it.To.HasContent() && !it.modeOnly() {
			todo = append(todo, it)
		}
	}
	st := &stager{s: s, contents: contents, workers: stageWorkers, bulk: canSyncAll && len(todo) > fewFiles}
	if !st.bulk {
		st.workers = syncWorkers
	}
	err := s.r.eachBatch(ctx, len(todo), st.workers, func(ctx context.Context, c *cursor, i int) error {
		if err := st.one(ctx, c, todo[i]); err != nil {
			return fmt.Errorf("stage %q: %w", todo[i].Path, err)
		}
		return nil
	})
	if err != nil || !st.bulk {
		return err
	}
	d := newDirty(s.r, true)
	for _, it := range todo {
		d.device(it.made.Device, it.home)
	}
	return d.sync(ctx)
}

type stager struct {
	s        *Staged
	contents Contents
	workers  int
	bulk     bool // everything is synced by one call afterwards
}

func (st *stager) one(ctx context.Context, c *cursor, it *item) error {
	dir, _ := split(it.Path)
	for {
		f, err := c.nearest(dir)
		if err != nil {
			return err
		}
		err = st.write(ctx, f, it)
		// A folder that may not be written yet, but will be opened by this operation, is no
		// reason to give up: the content waits one folder further up.
		if parent := st.s.dirs[f.path]; it.held == heldNothing && errors.Is(err, fs.ErrPermission) && parent != nil {
			dir, _ = split(f.path)
			continue
		}
		return err
	}
}

func (st *stager) write(ctx context.Context, f *folder, it *item) error {
	it.home = f.path
	if it.To.Kind == store.Symlink {
		return st.writeLink(ctx, f, it)
	}
	file, err := f.create(it)
	if err != nil {
		return err
	}
	if err := st.fill(ctx, file, it); err != nil {
		_ = file.Close() // the first error is the one to tell
		return err
	}
	return file.Close()
}

// create makes the staged file. What lies under its name is left from an earlier attempt.
func (f *folder) create(it *item) (*os.File, error) {
	for again := true; ; again = false {
		if err := f.r.fault("create", it.Path); err != nil {
			return nil, err
		}
		file, err := f.dir.OpenFile(it.name, stageFlags, stageMode)
		if err == nil {
			it.held = heldNew
			return file, nil
		}
		if !again || !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := f.unlink(it.name, it.Path); err != nil {
			return nil, err
		}
	}
}

func (st *stager) fill(ctx context.Context, file *os.File, it *item) error {
	content, err := st.contents(ctx, it.To.Blob)
	if err != nil {
		return err
	}
	defer content.Close() // only read
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	out := &fileWriter{ctx: ctx, r: st.s.r, p: it.Path, to: file}
	n, err := io.CopyBuffer(out, content, *buf)
	if err != nil {
		return err
	}
	if n != it.To.Size {
		return fmt.Errorf("content %s has %d bytes, not %d", it.To.Blob.Short(), n, it.To.Size)
	}
	if !st.bulk {
		if err := st.s.r.fault("fsync", it.Path); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
	}
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	it.made = sigOf(fi, st.s.r.o.Now())
	return nil
}

func (st *stager) writeLink(ctx context.Context, f *folder, it *item) error {
	content, err := st.contents(ctx, it.To.Blob)
	if err != nil {
		return err
	}
	defer content.Close() // only read
	target, err := io.ReadAll(io.LimitReader(content, it.To.Size+1))
	if err != nil {
		return err
	}
	if int64(len(target)) != it.To.Size {
		return fmt.Errorf("link target %s does not have %d bytes", it.To.Blob.Short(), it.To.Size)
	}
	if err := f.symlink(string(target), it); err != nil {
		return err
	}
	fi, err := f.lstat(it.name)
	if err != nil {
		return err
	}
	it.made = sigOf(fi, st.s.r.o.Now())
	return nil
}

func (f *folder) symlink(target string, it *item) error {
	for again := true; ; again = false {
		if err := f.r.fault("symlink", it.Path); err != nil {
			return err
		}
		err := f.dir.Symlink(target, it.name)
		if err == nil {
			it.held = heldNew
			return nil
		}
		if !again || !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := f.unlink(it.name, it.Path); err != nil {
			return err
		}
	}
}

// unlink removes the file or link name of f; p is the path that it is about.
func (f *folder) unlink(name string, p store.Path) error {
	if err := f.r.fault("unlink", p); err != nil {
		return err
	}
	if err := unlinkAt(f, name); err != nil {
		return &fs.PathError{Op: "unlink", Path: string(join(f.path, name)), Err: err}
	}
	return nil
}

// buffers are of a size at which system calls no longer count.
var buffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}

// fileWriter writes a user file. It hides os.File's ReadFrom, which would take a buffer of its
// own for each file.
type fileWriter struct {
	ctx context.Context
	r   *Root
	p   store.Path
	to  *os.File
}

func (out *fileWriter) Write(b []byte) (int, error) {
	if err := out.ctx.Err(); err != nil {
		return 0, err
	}
	if err := out.r.fault("write", out.p); err != nil {
		return 0, err
	}
	return out.to.Write(b)
}
