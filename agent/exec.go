package agent

import (
	"context"

	"reasonix/store"
)

// Exec is a command that the agent runs: what it will change is not known beforehand.
type Exec struct {
	Call string // the agent's own id of the call; may be empty
	Tool string // label
}

// BeforeExec records that a command begins. Workspaces are not scanned yet: the turn gets the
// gap GapShellNotScanned. The session is busy until AfterExec. Without an open turn it opens one.
func (r *Recorder) BeforeExec(ctx context.Context, id store.SessionID, e Exec) (Captured, error) {
	c := Captured{Gaps: []store.Gap{e.gap()}}
	err := r.update(ctx, func(tx *store.WriteTx) error {
		s, err := openTurn(tx, id)
		if err != nil {
			return err
		}
		n, err := tx.WritableOf(s)
		if err != nil {
			return err
		}
		c.Turn = n.Turn
		if err := tx.AddGap(n, e.gap()); err != nil {
			return err
		}
		if err := tx.AddCall(id, store.Call{Key: e.Call, Kind: store.ExecCall, Tool: e.Tool, Node: n.ID}); err != nil {
			return err
		}
		return seen(tx, s)
	})
	return c, err
}

// AfterExec records that a command has ended: the one with the call's id, or without one the
// newest that is open.
func (r *Recorder) AfterExec(ctx context.Context, id store.SessionID, e Exec) (Captured, error) {
	c := Captured{Gaps: []store.Gap{e.gap()}}
	err := r.update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		n, err := tx.WritableOf(s)
		if err != nil {
			return err
		}
		c.Turn = n.Turn
		if err := tx.AddGap(n, e.gap()); err != nil {
			return err
		}
		calls, err := tx.Calls(id)
		if err != nil {
			return err
		}
		for i := len(calls) - 1; i >= 0; i-- {
			if calls[i].Kind == store.ExecCall && (e.Call == "" || calls[i].Key == e.Call) {
				if err := tx.EndCall(calls[i]); err != nil {
					return err
				}
				break
			}
		}
		return seen(tx, s)
	})
	return c, err
}

func (e Exec) gap() store.Gap {
	tool := e.Tool
	if tool == "" {
		tool = "shell"
	}
	return store.Gap{Reason: store.GapShellNotScanned, Tool: tool}
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
