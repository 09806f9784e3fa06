package rewind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// Apply makes the move of a plan. Files and head are afterwards together as the plan said, or,
// after any error, as before; after a crash Recover sees to that. Errors: ErrStale when head
// or files are no longer as planned, ErrBusy, and what the system says.
func (e *Engine) Apply(ctx context.Context, p *Plan) (Result, error) {
	if p.used {
		return Result{}, fmt.Errorf("a plan is good for one use: %w", ErrStale)
	}
	if len(p.draft.result.Conflicts) > 0 {
		return p.draft.result, ErrConflict
	}
	p.used = true
	unlock, err := e.lock(ctx)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	e.options.Point("locked")
	if _, err := e.recoverLocked(ctx); err != nil {
		return Result{}, err
	}
	if err := e.closeTurns(ctx, p); err != nil {
		return Result{}, err
	}
	d, err := e.again(ctx, p)
	if err != nil {
		return Result{}, err
	}
	e.options.Point("planned")
	if len(d.steps) == 0 {
		return e.moveHead(ctx, p.request, d)
	}
	return e.moveAll(ctx, p.request, d)
}

// lock waits for captures and other operations to end, but not for ever: whoever holds the
// workspace for longer may never let go.
func (e *Engine) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.LockWait)
	defer cancel()
	return e.capture.LockExclusive(ctx)
}

// closeTurns closes the turns that would go on recording under the operation's feet. That
// they may be closed was checked with idle, here once more under the lock.
func (e *Engine) closeTurns(ctx context.Context, p *Plan) error {
	var open []store.SessionID
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		if err := e.idle(tx, p.request, p.draft.aim); err != nil {
			return err
		}
		all, err := tx.Activities()
		if err != nil {
			return err
		}
		for _, a := range all {
			own := a.Session.ID == p.draft.aim.session.ID || a.Session.ID == p.draft.aim.moving.ID
			busy, err := e.busy(a)
			if err != nil {
				return err
			}
			if own || (p.draft.aim.files && busy != nil) {
				open = append(open, a.Session.ID)
			}
		}
		return nil
	})
	for _, id := range open {
		if err == nil {
			err = e.capture.CloseTurn(ctx, id, store.TurnInterrupted)
		}
	}
	return err
}

// again makes the plan anew, under the lock, and compares it with the one that was shown.
func (e *Engine) again(ctx context.Context, p *Plan) (*draft, error) {
	var a *aim
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		var err error
		a, err = resolve(tx, p.request)
		return err
	})
	if err != nil {
		return nil, err
	}
	d, err := e.draft(ctx, p.request, a, p.draft.seen)
	if err != nil {
		return nil, err
	}
	was := p.draft
	// Closing a turn may have recorded what was seen on the way, below the head of the plan.
	closed := a.session.OpenTurn != was.aim.session.OpenTurn
	same := a.target == was.aim.target && a.of.ID == was.aim.of.ID &&
		a.session.Turns == was.aim.session.Turns && a.session.Messages == was.aim.session.Messages &&
		(closed || a.moving.Head == was.aim.moving.Head)
	if !same || len(d.result.Conflicts) > 0 || !maps.Equal(d.steps, was.steps) || !maps.Equal(d.left, was.left) {
		return nil, ErrStale
	}
	return d, nil
}

// moveHead makes a move that writes no file: one transaction.
func (e *Engine) moveHead(ctx context.Context, r Request, d *draft) (Result, error) {
	contents, err := e.contents(ctx, d)
	if err != nil {
		return Result{}, err
	}
	res := d.result
	err = e.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		if err := bind(tx, contents); err != nil {
			return err
		}
		m, err := d.commitMove(tx, r)
		if err != nil {
			return err
		}
		op := d.operation(r)
		op.State, op.HeadFrom, op.HeadTo = store.Applied, m.from, m.to
		res.Branch = m.branch
		res.Operation, err = tx.AddOperation(op, d.opPaths())
		return err
	})
	return res, err
}

// moveAll makes a move that writes files: intent, files, commit.
func (e *Engine) moveAll(ctx context.Context, r Request, d *draft) (Result, error) {
	contents, err := e.contents(ctx, d) // I7
	if err != nil {
		return Result{}, err
	}
	op := d.operation(r)
	err = e.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		if err := bind(tx, contents); err != nil {
			return err
		}
		op.State, op.HeadFrom = store.Applying, d.aim.from
		op.ID, err = tx.AddOperation(op, d.opPaths())
		return err
	})
	if err != nil {
		return Result{}, err
	}
	e.options.Point("intended")
	res := d.result
	res.Operation = op.ID
	kept, err := e.writeFiles(ctx, stageID(op.ID), d.fileSteps())
	if err == nil {
		e.options.Point("written")
		err = e.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
			for _, p := range kept {
				if err := tx.KeepPath(op.ID, p); err != nil {
					return err
				}
				d.keep(p)
			}
			m, err := d.commitMove(tx, r)
			if err != nil {
				return err
			}
			op.State, op.HeadFrom, op.HeadTo = store.Applied, m.from, m.to
			res.Branch = m.branch
			return tx.FinishOperation(op)
		})
	}
	if err == nil {
		e.options.Point("committed")
		res.Left = slices.Sorted(maps.Keys(d.left))
		return res, nil
	}
	// What was done is taken back even when ctx is the reason; the commit may have happened
	// although it was reported as failed, which rollBack finds out.
	back := context.WithoutCancel(ctx)
	done, rerr := e.rollBack(back, op.ID)
	if rerr == nil && done == store.Applied {
		return res, nil
	}
	var stale *workspace.StaleError
	if errors.As(err, &stale) {
		err = fmt.Errorf("%w: %w", ErrStale, err)
	}
	return Result{}, errors.Join(err, rerr)
}

// contents prepares what is on disk and not stored yet, of every path that the operation will
// write or that a row will be about.
func (e *Engine) contents(ctx context.Context, d *draft) ([]capture.Reading, error) {
	var lacking []store.Path
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		for _, p := range slices.Sorted(maps.Keys(d.seen)) {
			s := d.seen[p].State
			if !s.HasContent() {
				continue
			}
			stored, err := tx.HasBlob(s.Blob)
			if err != nil {
				return err
			}
			if !stored {
				lacking = append(lacking, p)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	read, err := e.capture.Read(ctx, lacking)
	if err != nil {
		return nil, err
	}
	for _, r := range read {
		if r.State != d.seen[r.Path].State {
			return nil, fmt.Errorf("%s changed meanwhile: %w", r.Path, ErrStale)
		}
	}
	return read, nil
}

func bind(tx *store.WriteTx, read []capture.Reading) error {
	for _, r := range read {
		if err := capture.Bind(tx, r); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles stages and applies steps, in order of their paths; kept are folders that were not
// empty after all.
func (e *Engine) writeFiles(ctx context.Context, id string, steps []workspace.Step) ([]store.Path, error) {
	staged, err := e.capture.Root.Stage(ctx, id, steps, e.capture.Store.Blobs().Open)
	if err != nil {
		return nil, err
	}
	e.options.Point("staged")
	if err := staged.Apply(ctx); err != nil {
		return nil, errors.Join(err, staged.Discard())
	}
	return staged.Kept(), nil
}

func stageID(id store.OpID) string { return fmt.Sprintf("operation-%d", id) }
