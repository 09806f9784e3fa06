package agent

import (
	"context"

	"reasonix/internal/capture"
	"reasonix/store"
)

// Exec is a command that the agent runs: what it will change is not known beforehand.
type Exec struct {
	Call string // the agent's own id of the call; may be empty
	Tool string // label
}

// BeforeExec scans the workspace, so that AfterExec can tell what the command changed; what
// somebody else has changed since the last scan becomes external rows. Where nothing is to be
// scanned the turn gets the gap GapShellNotScanned. The session is busy until AfterExec. Without
// an open turn it opens one.
//
// When it returns nil, the state of everything that a scan covers is committed (I1).
func (r *Recorder) BeforeExec(ctx context.Context, id store.SessionID, e Exec) (Captured, error) {
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return Captured{}, err
	}
	defer unlock()
	if err := r.openTurn(ctx, id); err != nil {
		return Captured{}, err
	}
	c, _, err := r.scan(ctx, id, e, false)
	if err != nil {
		return Captured{}, err
	}
	err = r.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		s, err := openTurn(tx, id)
		if err != nil {
			return err
		}
		n, err := tx.WritableOf(s)
		if err != nil {
			return err
		}
		c.Turn = n.Turn
		if err := r.notScanned(tx, n, e); err != nil {
			return err
		}
		if err := tx.AddCall(id, store.Call{Key: e.Call, Kind: store.ExecCall, Tool: e.Tool, Node: n.ID}); err != nil {
			return err
		}
		return seen(tx, s)
	})
	return c, err
}

// AfterExec scans the workspace and records what the command that has ended changed: the one
// with the call's id, or without one the newest that is open. One that nobody announced, or
// whose turn was closed meanwhile, is recorded too, with the gap GapLateWrite.
func (r *Recorder) AfterExec(ctx context.Context, id store.SessionID, e Exec) (Captured, error) {
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return Captured{}, err
	}
	defer unlock()
	var call *store.Call
	err = r.capture.Store.View(ctx, func(tx *store.Tx) (err error) { call, err = running(tx, id, e); return err })
	if err != nil {
		return Captured{}, err
	}
	c, complete, err := r.scan(ctx, id, e, call == nil)
	if err != nil {
		return Captured{}, err
	}
	err = r.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		head, err := tx.Node(s.Head)
		if err != nil {
			return err
		}
		c.Turn = head.Turn
		if len(c.Gaps) > 0 && r.capture.Scanning.Never != "" {
			n, err := tx.WritableOf(s)
			if err != nil {
				return err
			}
			if err := r.notScanned(tx, n, e); err != nil {
				return err
			}
		}
		call, err := running(&tx.Tx, id, e)
		switch {
		case err != nil:
			return err
		case call == nil:
		case complete:
			err = tx.EndCall(*call)
		default:
			err = tx.LeaveUnscanned(*call)
		}
		if err != nil {
			return err
		}
		return seen(tx, s)
	})
	return c, err
}

// running is the open call of a command that an event is about; nil when there is none.
func running(tx *store.Tx, id store.SessionID, e Exec) (*store.Call, error) {
	calls, err := tx.Calls(id)
	if err != nil {
		return nil, err
	}
	for i := len(calls) - 1; i >= 0; i-- {
		if c := &calls[i]; c.Kind == store.ExecCall && !c.Ended && (e.Call == "" || c.Key == e.Call) {
			return c, nil
		}
	}
	return nil, nil
}

// scan looks for what was changed; complete is also true where nothing is scanned.
func (r *Recorder) scan(ctx context.Context, id store.SessionID, e Exec, ended bool) (c Captured, complete bool, err error) {
	if r.capture.Scanning.Never != "" {
		return Captured{Gaps: []store.Gap{r.gap(e)}}, true, nil
	}
	var found capture.Scanned
	if found, err = r.capture.Scan(ctx, id, ended); err != nil {
		return Captured{}, false, err
	}
	return Captured{Paths: found.Changed, Gaps: found.Gaps}, found.Complete, nil
}

func (r *Recorder) notScanned(tx *store.WriteTx, n store.Node, e Exec) error {
	if r.capture.Scanning.Never == "" {
		return nil
	}
	return tx.AddGap(n, r.gap(e))
}

func (r *Recorder) gap(e Exec) store.Gap {
	tool := e.Tool
	if tool == "" {
		tool = "shell"
	}
	return store.Gap{Reason: store.GapShellNotScanned, Tool: tool, Detail: r.capture.Scanning.Never}
}

// openTurn opens a turn where none is, before a scan whose findings belong to it.
func (r *Recorder) openTurn(ctx context.Context, id store.SessionID) error {
	open := false
	err := r.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		open = s.OpenTurn != 0
		return err
	})
	if err != nil || open {
		return err
	}
	return r.capture.Store.Update(ctx, func(tx *store.WriteTx) error { _, err := openTurn(tx, id); return err })
}

// openTurn reads a session that is about to be worked in; without an open turn one is opened.
func openTurn(tx *store.WriteTx, id store.SessionID) (store.Session, error) {
	s, err := tx.Session(id)
	if err != nil || s.OpenTurn != 0 {
		return s, err
	}
	if _, err := tx.BeginTurn(id, "", NoPrompt); err != nil {
		return s, err
	}
	return tx.Session(id)
}
