package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reasonix/store"
)

// Side is what is compared: the start of a turn of a session, or the disk.
type Side struct {
	Session store.SessionID
	Turn    int // the number after the last turn means where that one ended
	Disk    bool
}

// ErrNoPath is returned for a path that the history knows nothing of.
var ErrNoPath = errors.New("nothing was recorded of the path")

// Pairs are the paths that differ between two sides, by path; the disk can be the second side
// only. only, when not empty, names the paths to compare and folders of them. Of the disk,
// paths that the history knows are read. Errors: store.ErrNoSession, store.ErrNoTurn, and
// ErrNoPath for one of only.
func (v *Viewer) Pairs(ctx context.Context, a, b Side, only []store.Path) ([]Pair, error) {
	all := map[store.Path]Pair{}
	err := v.capture.Store.View(ctx, func(tx *store.Tx) error {
		from, err := pointOf(tx, a)
		if err != nil {
			return err
		}
		if !b.Disk {
			to, err := pointOf(tx, b)
			if err != nil {
				return err
			}
			if err := between(tx, from, to, all); err != nil {
				return err
			}
			return recorded(tx, only, all, []store.SessionID{a.Session, b.Session})
		}
		if err := known(tx, from, all); err != nil {
			return err
		}
		return recorded(tx, only, all, []store.SessionID{a.Session})
	})
	if err != nil {
		return nil, err
	}
	if len(only) > 0 {
		for p := range all {
			if !slices.ContainsFunc(only, func(o store.Path) bool { return within(p, o) }) {
				delete(all, p)
			}
		}
	}
	if b.Disk {
		if err := v.onDisk(ctx, all); err != nil {
			return nil, err
		}
	}
	var out []Pair
	for _, p := range all {
		if p.Before != p.After {
			out = append(out, p)
		}
	}
	sortPairs(out)
	return out, nil
}

func within(p, o store.Path) bool { return o == "." || p == o || p.Below(o) }

// recorded refuses names that select nothing: they look like "no difference", and are a slip.
func recorded(tx *store.Tx, only []store.Path, all map[store.Path]Pair, sessions []store.SessionID) error {
	var states []map[store.Path]store.State
	for _, o := range only {
		found := o == "."
		for p := range all {
			found = found || within(p, o)
		}
		if !found && states == nil { // it may be the same on both sides
			for _, id := range sessions {
				session, err := tx.Session(id)
				if err != nil {
					return err
				}
				s, err := tx.States(session.Head)
				if err != nil {
					return err
				}
				states = append(states, s)
			}
		}
		for _, s := range states {
			for p := range s {
				found = found || within(p, o)
			}
		}
		if !found {
			return fmt.Errorf("%s: %w", o, ErrNoPath)
		}
	}
	return nil
}

// JoinRenames shows a path that went and one that came with the same bytes as one.
func JoinRenames(all []Pair) []Pair { return joinRenames(slices.Clone(all)) }

// point is a place on a line: a node and, for a tip, what is not as that node has it.
type point struct {
	node  store.NodeID
	moves []store.Move
}

func pointOf(tx *store.Tx, s Side) (point, error) {
	session, err := tx.Session(s.Session)
	if err != nil {
		return point{}, err
	}
	if s.Turn == session.Turns {
		moves, err := tx.TipMoves(session.Head)
		return point{node: session.Head, moves: moves}, err
	}
	t, err := tx.Turn(session.Head, s.Turn)
	return point{node: t.Node.Parent}, err
}

// between fills in the states at two points.
func between(tx *store.Tx, a, b point, all map[store.Path]Pair) error {
	moves, err := tx.Transition(a.node, b.node)
	if err != nil {
		return err
	}
	for _, m := range moves {
		all[m.Path] = Pair{Path: m.Path, Before: m.Expect, After: m.Want}
	}
	for _, m := range a.moves {
		p, ok := all[m.Path]
		if !ok {
			p = Pair{Path: m.Path, After: m.Expect}
		}
		p.Before = m.Want
		all[m.Path] = p
	}
	for _, m := range b.moves {
		p, ok := all[m.Path]
		if !ok {
			p = Pair{Path: m.Path, Before: m.Expect}
		}
		p.After = m.Want
		all[m.Path] = p
	}
	return nil
}

// known fills in the states at a point of every path that the history knows there or on the
// way to where the disk stands.
func known(tx *store.Tx, a point, all map[store.Path]Pair) error {
	states, err := tx.States(a.node)
	if err != nil {
		return err
	}
	for p, s := range states {
		all[p] = Pair{Path: p, Before: s}
	}
	stands, err := tx.Current()
	switch {
	case errors.Is(err, store.ErrNoSession): // it was deleted; what lies above is known all the same
	case err != nil:
		return err
	default:
		return between(tx, a, point{node: stands.Head}, all)
	}
	return between(tx, a, point{node: a.node}, all)
}

// onDisk replaces the second states by what is on disk.
func (v *Viewer) onDisk(ctx context.Context, all map[store.Path]Pair) error {
	paths := make([]store.Path, 0, len(all))
	for p := range all {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	read, err := v.capture.Sum(ctx, paths)
	if err != nil {
		return err
	}
	for _, r := range read {
		p := all[r.Path]
		p.After = r.State
		all[r.Path] = p
	}
	return nil
}
