package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// Recovered is an operation that a crash left unfinished and that was taken back.
type Recovered struct {
	Operation store.Operation
	Left      []store.Path // somebody changed them meanwhile; they were left as they are
}

// Recover takes back what crashed operations did. It runs only when the workspace lock is free
// at once: if it is held, the operation is alive. It is idempotent and resumes where an earlier
// recovery stopped.
func (e *Engine) Recover(ctx context.Context) ([]Recovered, error) {
	waiting, err := e.Unfinished(ctx)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	unlock, free, err := e.capture.TryExclusive()
	if err != nil || !free {
		return nil, err
	}
	defer unlock()
	return e.recoverLocked(ctx)
}

// Unfinished are the operations that wait for recovery, or are at work now.
func (e *Engine) Unfinished(ctx context.Context) ([]store.Operation, error) {
	var ops []store.Operation
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		var err error
		ops, err = tx.Unfinished()
		return err
	})
	return ops, err
}

func (e *Engine) recoverLocked(ctx context.Context) ([]Recovered, error) {
	ops, err := e.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	var all []Recovered
	for _, o := range ops {
		left, err := e.takeBack(ctx, o)
		if err != nil {
			return all, fmt.Errorf("recover operation %d: %w", o.ID, err)
		}
		all = append(all, Recovered{Operation: o, Left: left})
	}
	return all, nil
}

// rollBack takes back an operation of this process that failed, and says how it stands then.
func (e *Engine) rollBack(ctx context.Context, id store.OpID) (store.OpState, error) {
	var op store.Operation
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		var err error
		op, err = tx.Operation(id)
		return err
	})
	if err != nil || op.State != store.Applying {
		return op.State, err
	}
	if _, err := e.takeBack(ctx, op); err != nil {
		return store.Applying, fmt.Errorf("take operation %d back: %w", id, err)
	}
	return store.RolledBack, nil
}

// takeBack puts every path of an unfinished operation into the state from before it, then marks
// it rolled back. A path that is in neither state was changed by somebody else: it is left.
func (e *Engine) takeBack(ctx context.Context, op store.Operation) ([]store.Path, error) {
	var paths []store.OpPath
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		var err error
		paths, err = tx.OperationPaths(op.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	var names []store.Path
	for _, p := range paths {
		names = append(names, p.Path)
	}
	for _, id := range []string{stageID(op.ID), backID(op.ID)} {
		if err := e.capture.Root.Sweep(id, names); err != nil {
			return nil, err
		}
	}
	read, err := e.openAgain(ctx, op, paths, names)
	if err != nil {
		return nil, err
	}
	var (
		left  []store.Path
		steps []workspace.Step
	)
	for i, p := range paths {
		disk := read[i].State
		forward := workspace.Step{Path: p.Path, From: p.From, To: p.To}
		switch {
		case p.Left || disk == p.From:
		case disk == p.To || forward.Intermediate(disk):
			steps = append(steps, workspace.Step{Path: p.Path, From: disk, To: p.From, Sig: read[i].Sig})
		default:
			left = append(left, p.Path)
		}
	}
	for _, part := range parts(steps) {
		if _, err := e.writeFiles(ctx, backID(op.ID), part); err != nil {
			return nil, err
		}
	}
	e.options.Point("restored")
	op.State, op.Written, op.Deleted = store.RolledBack, 0, 0
	err = e.capture.Store.Update(ctx, func(tx *store.WriteTx) error { return tx.FinishOperation(op) })
	return left, err
}

// partSize is how many files a part of the way back has: enough for one sync of them all to cost
// little.
const partSize = 128

// parts splits the way back into steps that are carried out together. Each part is durable before
// the next one begins, so that a hook that has no time for all of them gets somewhere. Folders, and
// what lies below one that is a step, belong together.
func parts(steps []workspace.Step) [][]workspace.Step {
	all := map[store.Path]bool{}
	for _, s := range steps {
		all[s.Path] = true
	}
	var alone, together []workspace.Step
	for _, s := range steps {
		bound := s.From.Kind == store.Dir || s.To.Kind == store.Dir
		for up := s.Path.Parent(); up != "" && !bound; up = up.Parent() {
			bound = all[up]
		}
		if bound {
			together = append(together, s)
		} else {
			alone = append(alone, s)
		}
	}
	split := slices.Collect(slices.Chunk(alone, partSize))
	if len(together) > 0 {
		split = append(split, together)
	}
	return split
}

// openAgain reads the paths of an operation. Where one cannot be read, folders that the
// operation may have closed to their owner are opened first.
func (e *Engine) openAgain(ctx context.Context, op store.Operation, paths []store.OpPath, names []store.Path) ([]capture.Reading, error) {
	read, err := e.capture.Sum(ctx, names)
	if err != nil {
		return nil, err
	}
	var steps []workspace.Step
	closed := false
	for i, p := range paths {
		disk := read[i].State
		closed = closed || disk.Kind == store.Uncaptured && !p.Left
		if p.From.Kind == store.Dir && p.To.Kind == store.Dir && disk == p.To && disk != p.From {
			steps = append(steps, workspace.Step{Path: p.Path, From: disk, To: p.From, Sig: read[i].Sig})
		}
	}
	if !closed || len(steps) == 0 {
		return read, nil
	}
	if _, err := e.writeFiles(ctx, backID(op.ID), steps); err != nil {
		return nil, err
	}
	return e.capture.Sum(ctx, names)
}

func backID(id store.OpID) string { return stageID(id) + "-back" }

// idle refuses a move while something runs that it would pull the ground from under.
func (e *Engine) idle(tx *store.Tx, r Request, a *aim) error {
	if r.Force {
		return nil
	}
	all, err := tx.Activities()
	if err != nil {
		return err
	}
	for _, act := range all {
		if !a.files && act.Session.ID != a.session.ID {
			continue
		}
		b, err := e.busy(act)
		if err != nil {
			return err
		}
		if b != nil {
			return b
		}
	}
	return nil
}

// Idle returns a *BusyError while a turn, or a tool, of any session runs.
func (e *Engine) Idle(ctx context.Context) error {
	return e.capture.Store.View(ctx, func(tx *store.Tx) error {
		return e.idle(tx, Request{}, &aim{files: true})
	})
}

// idleAfter is how long the turn of an agent without a live process counts as running after
// its last event.
const idleAfter = 15e9

// busy says what a session is doing, nil when nothing.
func (e *Engine) busy(a store.Activity) (*BusyError, error) {
	now := e.capture.Store.Now()
	quiet := now.Sub(a.LastEvent)
	if len(a.Calls) > 0 && quiet < e.options.CallTimeout {
		c := a.Calls[0]
		b := &BusyError{Session: a.Session.ID, Tool: c.Tool, Age: now.Sub(c.Started)}
		if b.Tool == "" {
			b.Tool = "a tool"
		}
		if len(c.Paths) > 0 {
			b.Path = c.Paths[0]
		}
		return b, nil
	}
	if a.Session.OpenTurn == 0 {
		return nil, nil
	}
	alive, err := e.capture.TurnAlive(a.Session.ID)
	if err != nil {
		return nil, errors.Join(errors.New("ask for the turn's lock"), err)
	}
	if alive || quiet < idleAfter {
		return &BusyError{Session: a.Session.ID, Age: quiet}, nil
	}
	return nil, nil
}
