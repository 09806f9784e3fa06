// Package move is how rewinds, undos, redos, switches and forks are asked for, by whatever way: a
// request is planned, told, and applied unless only the plan is wanted. What a move is and does
// lies in package rewind.
package move

import (
	"context"
	"errors"
	"maps"
	"slices"

	"reasonix/internal/capture"
	"reasonix/internal/view"
	"reasonix/rewind"
	"reasonix/store"
)

// Mover makes the moves of one workspace. It is safe for concurrent use.
type Mover struct {
	Capture *capture.Capturer
	Engine  *rewind.Engine
}

// Do plans a request and, unless dry is set, applies it. Conflicts are rewind.ErrConflict and
// come with a Result that lists them; with any other error the Result has no Session. Errors are
// those of rewind.Engine's Plan and Apply; whatever they are, nothing was changed.
func (m Mover) Do(ctx context.Context, r rewind.Request, dry bool) (rewind.Result, error) {
	return m.DoShown(ctx, r, dry, nil)
}

// DoShown is Do for a plan that somebody has seen: ok, when it is not nil, says whether the plan
// is still what was shown, else nothing is done and the error is rewind.ErrStale.
func (m Mover) DoShown(ctx context.Context, r rewind.Request, dry bool, ok func(rewind.Result) bool) (rewind.Result, error) {
	res, err := m.once(ctx, r, dry, ok)
	for again := 0; again < 3 && errors.Is(err, rewind.ErrStale) && ok == nil; again++ {
		// Nobody was shown the plan. What made it stale may have been its own doing, since closing a
		// turn records what the turn's command has done, or another operation that was at work.
		res, err = m.once(ctx, r, dry, ok)
	}
	return res, err
}

func (m Mover) once(ctx context.Context, r rewind.Request, dry bool, ok func(rewind.Result) bool) (rewind.Result, error) {
	plan, err := m.Engine.Plan(ctx, r)
	if plan == nil && err != nil {
		return rewind.Result{}, err
	}
	res := plan.Result()
	// Afterwards it is no longer known what a path that was left would have become.
	folders, ferr := m.folders(ctx, res)
	if ferr != nil {
		return rewind.Result{}, ferr
	}
	res.Folders = folders
	if err == nil && ok != nil && !ok(res) {
		return rewind.Result{}, rewind.ErrStale
	}
	if err == nil && !dry {
		if res, err = m.Engine.Apply(ctx, plan); err != nil && res.Session == "" {
			return rewind.Result{}, err
		}
		res.Folders = folders
	}
	return res, err
}

// folders are the paths of a planned result that are, were, or would become folders.
func (m Mover) folders(ctx context.Context, res rewind.Result) (map[store.Path]bool, error) {
	paths := slices.Clone(res.Left)
	for _, c := range res.Conflicts {
		paths = append(append(paths, c.Path), c.Entries...)
	}
	for _, n := range res.NotCovered {
		paths = append(paths, n.Path)
	}
	all := map[store.Path]bool{}
	maps.Copy(all, res.Folders)
	if len(paths) == 0 {
		return all, nil
	}
	for _, p := range paths {
		if k, blocked, err := m.Capture.Kind(ctx, p); err == nil && !blocked && k == store.Dir {
			all[p] = true // what cannot be looked at is told elsewhere
		}
	}
	var s store.Session
	err := m.Capture.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s, err = tx.Session(res.Session); err != nil {
			return err
		}
		for _, p := range paths {
			row, err := tx.Newest(s.Head, p)
			if err != nil {
				return err
			}
			all[p] = all[p] || row != nil && (row.Before.Kind == store.Dir || row.After.Kind == store.Dir)
		}
		return nil
	})
	if err != nil || res.Kind != store.OpRewind {
		return all, err
	}
	pairs, err := view.New(m.Capture).Pairs(ctx, view.Side{Session: s.ID, Turn: res.Turn}, view.Side{Session: s.ID, Turn: s.Turns}, nil)
	for _, p := range pairs {
		if _, asked := all[p.Path]; asked && (p.Before.Kind == store.Dir || p.After.Kind == store.Dir) {
			all[p.Path] = true
		}
	}
	return all, err
}
