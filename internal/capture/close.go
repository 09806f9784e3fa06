package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reasonix/store"
)

// CloseTurn seals the turn that a session has open, if any. Calls that are still open get
// their after-states from the disk, and what somebody else did to the turn's paths since the
// agent touched them becomes external rows.
func (c *Capturer) CloseTurn(ctx context.Context, id store.SessionID, status store.Status) error {
	var (
		turn  store.NodeID
		paths []store.Path
	)
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		turn = s.OpenTurn
		paths, err = openPaths(tx, s)
		return err
	})
	if err != nil || turn == 0 {
		return err
	}
	read, err := c.Read(ctx, paths)
	if err != nil {
		return fmt.Errorf("close turn: %w", err)
	}
	return c.Store.Update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if s.OpenTurn != turn {
			return nil // somebody else closed it meanwhile
		}
		now, err := openPaths(&tx.Tx, s)
		if err != nil {
			return err
		}
		if !slices.Equal(now, paths) {
			// More was recorded while we read. The disk is read again inside the transaction,
			// where nothing can be recorded in between.
			if read, err = c.Read(ctx, now); err != nil {
				return err
			}
		}
		calls, err := tx.Calls(id)
		if err != nil {
			return err
		}
		called := map[store.Path]bool{}
		for _, call := range calls {
			for _, p := range call.Paths {
				called[p] = true
			}
		}
		for _, r := range read {
			if err := c.settle(ctx, tx, id, r, called[r.Path]); err != nil {
				return err
			}
		}
		return tx.EndTurn(id, status)
	})
}

// openPaths are the paths of the node that a session has open and of its open calls, sorted.
func openPaths(tx *store.Tx, s store.Session) ([]store.Path, error) {
	var paths []store.Path
	if s.Open != 0 {
		n, err := tx.Node(s.Open)
		if err != nil {
			return nil, err
		}
		rows, err := tx.NodeChanges(n)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			paths = append(paths, r.Path)
		}
	}
	calls, err := tx.Calls(s.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		paths = append(paths, c.Paths...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// settle records what a path is when its turn ends.
func (c *Capturer) settle(ctx context.Context, tx *store.WriteTx, id store.SessionID, r Reading, called bool) error {
	s, err := tx.Session(id)
	if err != nil {
		return err
	}
	known, err := tx.Newest(s.Head, r.Path)
	if err != nil || known == nil || known.After == r.State {
		return err
	}
	if r, err = c.fresh(ctx, r); err != nil || known.After == r.State {
		return err
	}
	if !called {
		return Looked(tx, id, known, r)
	}
	return Touched(tx, id, known, r, "")
}

// fresh reads a path again when an lstat cannot prove that r still holds: another call of the
// session may have recorded a newer state than the one that was read.
func (c *Capturer) fresh(ctx context.Context, r Reading) (Reading, error) {
	if c.Root.Unchanged(r.Path, r.Sig) {
		return r, nil
	}
	again, err := c.Read(ctx, []store.Path{r.Path})
	if err != nil {
		return r, err
	}
	return again[0], nil
}

// Looked records that a path was found in another state than the line knows: somebody else's
// doing (I13).
func Looked(tx *store.WriteTx, id store.SessionID, known *store.Placed, r Reading) error {
	if err := Bind(tx, r); err != nil {
		return err
	}
	n, err := tx.Writable(id)
	if err != nil {
		return err
	}
	if err := gapOf(tx, n, r, ""); err != nil {
		return err
	}
	return tx.AppendChange(n, store.Change{
		Path: r.Path, Source: store.SourceExternal, Origin: store.External, Before: known.After, After: r.State,
	})
}

// Touched records the state in which the agent's tool left a path. A touch by the same source
// moves the after-state of the last row; another source adds a row.
func Touched(tx *store.WriteTx, id store.SessionID, known *store.Placed, r Reading, tool string) error {
	if err := Bind(tx, r); err != nil {
		return err
	}
	n, err := tx.Writable(id)
	if err != nil {
		return err
	}
	if err := gapOf(tx, n, r, tool); err != nil {
		return err
	}
	if known.Node.ID == n.ID && known.Source == store.SourceTool {
		return tx.SetAfter(n, r.Path, r.State)
	}
	return tx.AppendChange(n, store.Change{
		Path: r.Path, Source: store.SourceTool, Origin: store.Agent, Before: known.After, After: r.State,
	})
}

func gapOf(tx *store.WriteTx, n store.Node, r Reading, tool string) error {
	g, ok := r.Gap(tool)
	if !ok {
		return nil
	}
	return tx.AddGap(n, g)
}

// ErrLocked is returned when an operation holds the workspace for longer than the caller can wait.
var ErrLocked = errors.New("workspace is locked by an operation")
