// Package capture brings the disk and the history together: it reads paths, compares them
// with what a session's line knows, and records the differences. Recording a turn and moving
// a head both look at the disk through it, so that looking means one thing.
package capture

import (
	"context"
	"io"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// Capturer reads the paths of one workspace for one store. It is safe for concurrent use.
type Capturer struct {
	Store *store.Store
	Root  *workspace.Root
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
	raw, err := c.Root.ReadAll(ctx, paths, c.put)
	if err != nil {
		return nil, err
	}
	all := make([]Reading, len(raw))
	for i, r := range raw {
		all[i] = Reading{Path: paths[i], Reading: r}
	}
	return all, nil
}

func (c *Capturer) put(ctx context.Context, r io.Reader) (*blob.Prepared, error) {
	return c.Store.Blobs().Prepare(ctx, r)
}

// Sum reads paths without storing anything: for plans, which must not write.
func (c *Capturer) Sum(ctx context.Context, paths []store.Path) ([]Reading, error) {
	raw, err := c.Root.ReadAll(ctx, paths, workspace.HashOnly)
	if err != nil {
		return nil, err
	}
	all := make([]Reading, len(raw))
	for i, r := range raw {
		all[i] = Reading{Path: paths[i], Reading: r}
	}
	return all, nil
}

// Bind commits the content of a reading with tx.
func Bind(tx *store.WriteTx, r Reading) error {
	if r.Content == nil {
		return nil
	}
	return tx.Bind(r.Content)
}
