package rewind

import (
	"context"

	"reasonix/store"
)

// DeleteSession deletes a session: its history goes with the next collection that finds the deletion
// too old to be undone. Files stay as they are. force closes a turn that runs. Errors: ErrBusy,
// store.ErrNoSession, store.ErrCurrent.
func (e *Engine) DeleteSession(ctx context.Context, id store.SessionID, force bool) (op store.OpID, err error) {
	unlock, err := e.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	err = e.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		switch {
		case err != nil:
			return err
		case s.Current:
			return store.ErrCurrent
		case force:
			return nil
		}
		all, err := tx.Activities()
		for _, a := range all {
			if a.Session.ID != id {
				continue
			}
			if busy, err := e.busy(a); err != nil || busy != nil {
				return orBusy(busy, err)
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := e.capture.CloseTurn(ctx, id, store.TurnInterrupted); err != nil {
		return 0, err
	}
	err = e.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		op, err = tx.DeleteSession(id)
		return err
	})
	return op, err
}

func orBusy(busy *BusyError, err error) error {
	if err != nil {
		return err
	}
	return busy
}
