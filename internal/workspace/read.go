package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"reasonix/blob"
	"reasonix/store"
)

const (
	readAttempts = 4  // the first and three more, when a file changes while it is read
	readWorkers  = 4  // more only fight for the directory locks of the kernel
	readBatch    = 16 // neighbours read by one worker, which share its open folders
)

// Put stores the content r, reading it to its end, and returns it prepared. was is a content that
// the path is known to have had, zero for none: r is likely to be like it. What it returned
// for an attempt that is repeated, since the file changed meanwhile, is never bound and left
// to gc. ReadAll calls it from several goroutines at once.
type Put func(ctx context.Context, r io.Reader, was blob.Hash) (*blob.Prepared, error)

// Reading is a path's state at one moment.
type Reading struct {
	State   store.State
	Content *blob.Prepared // of a file or the target of a symlink; else nil
	Sig     Sig            // what lstat said at that moment
	// Reason is one of store's Gap reasons when State is uncaptured, else "". Detail is for people.
	Reason, Detail string
	// Blocker is the ancestor that is a symlink or no folder. State is absent then: nothing is
	// at that location unless a link is followed.
	Blocker store.Path
}

// Read captures the present state of p. No link is followed. Mode bits are the nine permission
// bits only. The content, the mode and the signature are of one open file and belong together:
// a file that goes on changing while it is read is uncaptured (I6), as is one that may not be
// read, and a socket, pipe or device.
//
// It returns an error only when p is not valid (CheckPath) or protected, when put or ctx fails,
// and for faults of the file system; never because of what p is.
func (r *Root) Read(ctx context.Context, p store.Path, put Put) (Reading, error) {
	c := r.cursor()
	defer c.close()
	return c.read(ctx, p, blob.Hash{}, put)
}

// ReadAll is Read of many paths, in parallel. was, if not nil, has for each the content that it is
// known to have had. The results are in the order of paths; the first error ends it all.
func (r *Root) ReadAll(ctx context.Context, paths []store.Path, was []blob.Hash, put Put) ([]Reading, error) {
	order := make([]int, len(paths))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(comparePaths(paths[a], paths[b]), a-b)
	})
	readings := make([]Reading, len(paths))
	err := r.eachBatch(ctx, len(order), readWorkers, func(ctx context.Context, c *cursor, i int) (err error) {
		i = order[i]
		var known blob.Hash
		if was != nil {
			known = was[i]
		}
		readings[i], err = c.read(ctx, paths[i], known, put)
		return err
	})
	if err != nil {
		return nil, err
	}
	return readings, nil
}

// eachBatch calls do for 0…n-1, neighbours by the same worker, each with a cursor of its own.
func (r *Root) eachBatch(ctx context.Context, n, workers int, do func(context.Context, *cursor, int) error) error {
	var next atomic.Int64
	batch := max(1, min(readBatch, n/workers))
	work := func(ctx context.Context) error {
		c := r.cursor()
		defer c.close()
		for {
			end := int(next.Add(int64(batch)))
			if end-batch >= n {
				return nil
			}
			for i := end - batch; i < min(end, n); i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(ctx, c, i); err != nil {
					return err
				}
			}
		}
	}
	return r.parallel(ctx, min(workers, n), work)
}

// parallel runs work in n goroutines; in the caller's own when one is enough or faults are
// asked for, so that the n-th call is always the same one.
func (r *Root) parallel(ctx context.Context, n int, work func(context.Context) error) error {
	if n <= 1 || r.o.Fault != nil {
		return work(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	for range n {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}

func (c *cursor) read(ctx context.Context, p store.Path, was blob.Hash, put Put) (Reading, error) {
	if err := c.r.check(p); err != nil {
		return Reading{}, fmt.Errorf("read: %w", err)
	}
	reading, err := c.readState(ctx, p, func(r io.Reader) (*blob.Prepared, blob.Hash, error) {
		content, err := put(ctx, r, was)
		if err != nil {
			return nil, blob.Hash{}, err
		}
		return content, content.Hash(), nil
	})
	if err != nil {
		return Reading{}, fmt.Errorf("read %q: %w", p, err)
	}
	return reading, nil
}

// sink takes a content to its end and tells its hash.
type sink func(io.Reader) (*blob.Prepared, blob.Hash, error)

// hashOnly is the sink for states whose content is not to be kept.
func hashOnly(r io.Reader) (*blob.Prepared, blob.Hash, error) {
	content, err := blob.Digest(r)
	if err != nil {
		return nil, blob.Hash{}, err
	}
	return nil, content.Hash(), nil
}

func (c *cursor) readState(ctx context.Context, p store.Path, to sink) (Reading, error) {
	dir, leaf := split(p)
	f, err := c.enter(dir)
	if err != nil {
		reading := Reading{State: store.AbsentState, Sig: absentSig}
		var blocked *BlockedError
		switch {
		case errors.As(err, &blocked):
			reading.Blocker = blocked.Parent
		case errors.Is(err, fs.ErrPermission):
			return unreadable(Sig{}, err), nil
		case !errors.Is(err, fs.ErrNotExist):
			return Reading{}, err
		}
		return reading, nil
	}
	return f.read(ctx, leaf, to)
}

// errUnstable says that a path changed while it was read.
var errUnstable = errors.New("changed while it was read")

func (f *folder) read(ctx context.Context, leaf string, to sink) (Reading, error) {
	for range readAttempts {
		reading, err := f.readOnce(ctx, leaf, to)
		if !errors.Is(err, errUnstable) {
			return reading, err
		}
		if err := ctx.Err(); err != nil {
			return Reading{}, err
		}
	}
	return Reading{
		State:  store.UncapturedState,
		Reason: store.GapChangedWhileRead,
		Detail: fmt.Sprintf("it changed during each of %d attempts", readAttempts),
	}, nil
}

func (f *folder) readOnce(ctx context.Context, leaf string, to sink) (Reading, error) {
	start := f.r.o.Now()
	fi, err := f.lstat(leaf)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Reading{State: store.AbsentState, Sig: absentSig}, nil
	case errors.Is(err, fs.ErrPermission):
		return unreadable(Sig{}, err), nil
	case err != nil:
		return Reading{}, err
	case f.r.isProtectedInfo(fi):
		return Reading{}, fmt.Errorf("%w: it is the store", ErrProtected)
	}
	sig := sigOf(fi, start)
	switch sig.Kind {
	case store.Dir:
		return Reading{State: store.State{Kind: store.Dir, Mode: sig.Mode}, Sig: sig}, nil
	case store.Symlink:
		return f.readLink(leaf, sig, to)
	case store.File:
		return f.readFile(ctx, leaf, fi, to)
	default:
		return Reading{
			State: store.UncapturedState, Sig: sig, Reason: store.GapSpecial, Detail: specialName(fi.Mode()),
		}, nil
	}
}

func (f *folder) readLink(leaf string, sig Sig, to sink) (Reading, error) {
	if err := f.r.fault("readlink", join(f.path, leaf)); err != nil {
		return Reading{}, err
	}
	target, err := f.dir.Readlink(leaf)
	if err != nil {
		return Reading{}, unstableOr(err)
	}
	fi, err := f.lstat(leaf)
	if err != nil {
		return Reading{}, unstableOr(err)
	}
	if !sigOf(fi, f.r.o.Now()).Same(sig) {
		return Reading{}, errUnstable
	}
	content, hash, err := to(strings.NewReader(target))
	if err != nil {
		return Reading{}, err
	}
	state := store.State{Kind: store.Symlink, Blob: hash, Size: int64(len(target))}
	return Reading{State: state, Content: content, Sig: sig}, nil
}

func (f *folder) readFile(ctx context.Context, leaf string, seen fs.FileInfo, to sink) (Reading, error) {
	start := f.r.o.Now()
	p := join(f.path, leaf)
	file, err := f.openFile(leaf)
	if errors.Is(err, fs.ErrPermission) {
		return unreadable(sigOf(seen, start), err), nil
	}
	if err != nil {
		return Reading{}, unstableOr(err)
	}
	defer file.Close() // only read: nothing to lose
	before, err := file.Stat()
	if err != nil {
		return Reading{}, err
	}
	if !before.Mode().IsRegular() || !os.SameFile(seen, before) {
		return Reading{}, errUnstable
	}
	// One byte more than there was: a file that is appended to without end ends here.
	in := &fileReader{ctx: ctx, r: f.r, p: p, from: io.LimitReader(file, before.Size()+1)}
	content, hash, err := to(in)
	if in.err != nil {
		err = in.err // what the disk says, however the sink has wrapped it
	}
	if errors.Is(in.err, fs.ErrPermission) {
		return unreadable(sigOf(before, start), in.err), nil
	}
	if err != nil {
		return Reading{}, err
	}
	after, err := file.Stat()
	if err != nil {
		return Reading{}, err
	}
	if after.Size() != before.Size() || in.n != after.Size() || !after.ModTime().Equal(before.ModTime()) {
		return Reading{}, errUnstable
	}
	sig := sigOf(after, start)
	state := store.State{Kind: store.File, Mode: sig.Mode, Blob: hash, Size: in.n}
	return Reading{State: state, Content: content, Sig: sig}, nil
}

// fileReader reads a user file, counting bytes and keeping the first error that was the file's.
type fileReader struct {
	ctx  context.Context
	r    *Root
	p    store.Path
	from io.Reader
	n    int64
	err  error
}

func (in *fileReader) Read(b []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	if err := in.r.fault("read", in.p); err != nil {
		in.err = err
		return 0, err
	}
	n, err := in.from.Read(b)
	in.n += int64(n)
	if err != nil && err != io.EOF {
		in.err = err
	}
	return n, err
}

// unstableOr is err, unless err says that the path is gone, or became a link or something that
// cannot be opened, since it was looked at.
func unstableOr(err error) error {
	if errors.Is(err, fs.ErrNotExist) || isOtherKind(err) {
		return errUnstable
	}
	return err
}

func unreadable(sig Sig, err error) Reading {
	return Reading{State: store.UncapturedState, Sig: sig, Reason: store.GapUnreadable, Detail: err.Error()}
}

func specialName(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
