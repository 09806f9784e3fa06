package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reasonix/store"
)

// CloseTurn seals the turn that a session has open, if any. Calls that are still open get
// their after-states from the disk, and what somebody else did to the turn's paths since the
// agent touched them becomes external rows.
//
// Where a command has run, the workspace is scanned first.
func (c *Capturer) CloseTurn(ctx context.Context, id store.SessionID, status store.Status) error {
	var open bool
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		open = s.OpenTurn != 0
		return err
	})
	if err != nil || !open {
		return err
	}
	if err := c.Look(ctx, id); err != nil {
		return fmt.Errorf("close turn: %w", err)
	}
	for {
		var was ending
		err := c.Store.View(ctx, func(tx *store.Tx) (err error) { was, err = endingOf(tx, id); return err })
		if err != nil || was.turn == 0 {
			return err
		}
		read, err := c.Read(ctx, was.paths)
		if err != nil {
			return fmt.Errorf("close turn: %w", err)
		}
		done := false
		err = c.Store.Update(ctx, func(tx *store.WriteTx) error {
			now, err := endingOf(&tx.Tx, id)
			if err != nil {
				return err
			}
			// What was recorded since the disk was read is newer than what was read.
			if done = now.equal(was); !done {
				return nil
			}
			for i, r := range read {
				if err := settle(tx, id, was.known[i], r, was.called[r.Path]); err != nil {
					return err
				}
			}
			return tx.EndTurn(id, status)
		})
		c.discard(ctx, read)
		if err != nil || done {
			return err
		}
	}
}

// ending is what closing a turn has to look at.
type ending struct {
	turn   store.NodeID
	paths  []store.Path    // of the open node and of open calls, sorted
	known  []*store.Placed // the newest row of each
	called map[store.Path]bool
}

func (e ending) equal(o ending) bool {
	return e.turn == o.turn && slices.Equal(e.paths, o.paths) && maps.Equal(e.called, o.called) &&
		slices.EqualFunc(e.known, o.known, sameRow)
}

func sameRow(a, b *store.Placed) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Node.ID == b.Node.ID && a.Seq == b.Seq && a.After == b.After
}

func endingOf(tx *store.Tx, id store.SessionID) (ending, error) {
	e := ending{called: map[store.Path]bool{}}
	s, err := tx.Session(id)
	if err != nil || s.OpenTurn == 0 {
		return e, err
	}
	e.turn = s.OpenTurn
	if s.Open != 0 {
		n, err := tx.Node(s.Open)
		if err != nil {
			return e, err
		}
		rows, err := tx.NodeChanges(n)
		if err != nil {
			return e, err
		}
		for _, r := range rows {
			e.paths = append(e.paths, r.Path)
		}
	}
	calls, err := tx.Calls(id)
	if err != nil {
		return e, err
	}
	for _, call := range calls {
		for _, p := range call.Paths {
			e.paths, e.called[p] = append(e.paths, p), true
		}
	}
	slices.Sort(e.paths)
	e.paths = slices.Compact(e.paths)
	known, err := tx.Known(s.Head, e.paths)
	for _, p := range e.paths {
		e.known = append(e.known, known[p])
	}
	return e, err
}

// settle records what a path is when its turn ends.
func settle(tx *store.WriteTx, id store.SessionID, known *store.Placed, r Reading, called bool) error {
	if known == nil || known.After == r.State {
		return nil
	}
	if !called {
		return Looked(tx, id, known, r)
	}
	return Touched(tx, id, known, r, "")
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
