package view

import (
	"context"
	"slices"

	"reasonix/store"
)

// StateAt is what a path was on a side, which cannot be the disk: the last state known there,
// else the first one known afterwards (I4). It is not Known when the line never knew the path.
func (v *Viewer) StateAt(ctx context.Context, side Side, p store.Path) (s store.State, err error) {
	err = v.capture.Store.View(ctx, func(tx *store.Tx) error {
		at, err := pointOf(tx, side)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(at.moves, func(m store.Move) bool { return m.Path == p }); i >= 0 {
			s = at.moves[i].Want
			return nil
		}
		row, err := tx.Newest(at.node, p)
		if err != nil {
			return err
		}
		if row != nil {
			s = row.After
			return nil
		}
		session, err := tx.Session(side.Session)
		if err != nil {
			return err
		}
		later, err := tx.History(session.Head, p)
		if n := len(later); n > 0 {
			s = later[n-1].Before
		}
		return err
	})
	return s, err
}

// History is every recorded version of one path.
type History struct {
	Name
	Session  store.SessionID `json:"session"`
	Versions []Version       `json:"versions"` // newest first
}

// Version is one change of a path.
type Version struct {
	Turn   int             `json:"turn"`         // that it belongs to or follows; -1 before turn 0
	In     store.SessionID `json:"in,omitempty"` // the session whose turn that is, when it is another one
	TimeMS int64           `json:"time_ms"`      // of the node that holds it
	Source string          `json:"source"`       // tool, shell, external, restore, carry or import
	Origin string          `json:"origin"`       // agent or external
	Change string          `json:"change"`
	Before State           `json:"before"`
	After  State           `json:"after"`

	Pair Pair `json:"-"`
}

// History reads the versions of a path on the line of a session. Errors: store.ErrNoSession.
func (v *Viewer) History(ctx context.Context, id store.SessionID, p store.Path) (History, error) {
	h := History{Name: NameOf(p, store.File), Session: id, Versions: []Version{}}
	err := v.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		root, err := tx.Node(s.Root)
		if err != nil {
			return err
		}
		rows, err := tx.History(s.Head, p)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Before == r.After {
				continue // announced, and not changed
			}
			ver := Version{
				Turn: r.Node.Turn, TimeMS: r.Node.Created.UnixMilli(), Source: r.Source.String(), Origin: r.Origin.String(),
				Change: kindOf(r.Before, r.After), Before: stateOf(r.Before), After: stateOf(r.After),
				Pair: Pair{Path: p, Before: r.Before, After: r.After},
			}
			if r.Node.Depth < root.Depth { // above its own beginning: another session's
				if ver.In, err = tx.RecordedBy(r.Node); err != nil {
					return err
				}
			}
			h.Versions = append(h.Versions, ver)
		}
		return nil
	})
	return h, err
}
