// Package capture brings the disk and the history together: it reads paths, compares them
// with what a session's line knows, and records the differences. Recording a turn and moving
// a head both look at the disk through it, so that looking means one thing.
package capture

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// Capturer reads the paths of one workspace for one store. It is safe for concurrent use.
type Capturer struct {
	Store    *store.Store
	Root     *workspace.Root
	Scanning Scanning
}

// Reading is what a path was when it was read, with its content ready to be committed.
type Reading struct {
	Path store.Path
	workspace.Reading
}

// Gap is the gap that an uncaptured reading leaves; ok is false when it was captured.
func (r Reading) Gap(tool string) (g store.Gap, ok bool) {
	if r.State.Kind != store.Uncaptured {
		return store.Gap{}, false
	}
	return store.Gap{Reason: r.Reason, Path: r.Path, Tool: tool, Detail: r.Detail}, true
}

// Read reads paths outside any transaction: what is stored of them afterwards is content,
// which nothing refers to until Bind.
func (c *Capturer) Read(ctx context.Context, paths []store.Path) ([]Reading, error) {
	var was []blob.Hash
	err := c.Store.View(ctx, func(tx *store.Tx) (err error) { was, err = tx.LastBlobs(paths); return err })
	if err != nil {
		return nil, err
	}
	raw, err := c.Root.ReadAll(ctx, paths, was, c.Store.Blobs().PrepareAgainst)
	if err != nil {
		return nil, err
	}
	all := make([]Reading, len(raw))
	for i, r := range raw {
		all[i] = Reading{Path: paths[i], Reading: r}
	}
	return all, nil
}

// Sum reads paths without storing anything: for plans, which must not write.
func (c *Capturer) Sum(ctx context.Context, paths []store.Path) ([]Reading, error) {
	raw, err := c.Root.ReadAll(ctx, paths, nil, digest)
	if err != nil {
		return nil, err
	}
	all := make([]Reading, len(raw))
	for i, r := range raw {
		all[i] = Reading{Path: paths[i], Reading: r}
	}
	return all, nil
}

func digest(_ context.Context, r io.Reader, _ blob.Hash) (*blob.Prepared, error) {
	return blob.Digest(r)
}

var errContent = errors.New("the path has content")

// Kind tells what a path is without reading its content: Absent, Dir or Uncaptured, and File
// for a file or a symlink. blocked is true when a parent of it is a symlink or no folder.
func (c *Capturer) Kind(ctx context.Context, p store.Path) (k store.Kind, blocked bool, err error) {
	refuse := func(context.Context, io.Reader, blob.Hash) (*blob.Prepared, error) { return nil, errContent }
	switch r, err := c.Root.Read(ctx, p, refuse); {
	case errors.Is(err, errContent):
		return store.File, false, nil
	default:
		return r.State.Kind, r.Blocker != "", err
	}
}

// Bind commits the content of a reading with tx.
func Bind(tx *store.WriteTx, r Reading) error {
	if r.Content == nil {
		return nil
	}
	return tx.Bind(r.Content)
}

// errAgain rolls a transaction back whose readings were too old.
var errAgain = errors.New("read again")

// Readings are what a transaction records. A path whose newest row says otherwise was changed
// by somebody else, or was read before that row was committed by another call of the session;
// which of the two is known once it was read again.
type Readings struct {
	All   []Reading
	since map[store.Path]*store.Placed // rows that were there before the last reading
}

// Current reports whether r was read after known was committed; else the transaction must
// return the error, and is run again with a newer reading.
func (rs *Readings) Current(known *store.Placed, r Reading) error {
	if known == nil || known.After == r.State || sameRow(rs.since[r.Path], known) {
		return nil
	}
	rs.since[r.Path] = known
	return errAgain
}

// Record reads paths and then runs fn in a write transaction, again as long as Current asks
// for it. Reading, hashing and compressing happen outside of it. known, which may be nil, are
// the newest rows of paths from before this call: the readings are newer than those.
func (c *Capturer) Record(ctx context.Context, paths []store.Path, known map[store.Path]*store.Placed,
	fn func(*store.WriteTx, *Readings) error,
) error {
	rs := &Readings{since: map[store.Path]*store.Placed{}}
	maps.Copy(rs.since, known)
	for {
		var err error
		if rs.All, err = c.readInTime(ctx, paths); err != nil {
			return err
		}
		err = c.Store.Update(ctx, func(tx *store.WriteTx) error { return fn(tx, rs) })
		c.discard(ctx, rs.All)
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// discard gives back what was read and, being known, was not bound. Left alone it would only keep
// collection waiting, so an error is none of the caller's.
func (c *Capturer) discard(ctx context.Context, all []Reading) {
	for _, r := range all {
		if r.Content != nil {
			_ = c.Store.Blobs().Discard(ctx, r.Content)
		}
	}
}

// reserve is what is kept of a caller's deadline for committing what was read.
const reserve = 300 * time.Millisecond

// readInTime reads paths until the deadline of ctx, less the reserve, comes near. Those that
// are not done by then are uncaptured: known not to be known.
func (c *Capturer) readInTime(ctx context.Context, paths []store.Path) ([]Reading, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return c.Read(ctx, paths)
	}
	sub, cancel := context.WithDeadline(ctx, deadline.Add(-reserve))
	defer cancel()
	all := make([]Reading, 0, len(paths))
	for batch := range slices.Chunk(paths, 16) {
		read, err := c.Read(sub, batch)
		switch {
		case err == nil:
			all = append(all, read...)
		case sub.Err() == nil || ctx.Err() != nil:
			return nil, err
		default:
			for _, p := range batch {
				late := Reading{Path: p}
				late.State, late.Reason = store.UncapturedState, store.GapDeadline
				all = append(all, late)
			}
		}
	}
	return all, nil
}
