package move

import (
	"context"
	"errors"

	"reasonix/store"
)

// Deletion is the deletion of a session that an undo is to take back: the one named by its
// operation op or its session ref, or the newest one where nothing of the current session was
// done since. No deletion is an operation of id 0.
func Deletion(ctx context.Context, from *store.Store, ref string, op store.OpID) (of store.Operation, err error) {
	err = from.View(ctx, func(tx *store.Tx) error {
		if op != 0 {
			named, err := tx.Operation(op)
			if err == nil && named.Kind == store.OpDelete && named.UndoneBy == 0 {
				of = named
			}
			return nil //nolint:nilerr // the undo itself says what is wrong with the operation
		}
		newest, err := tx.NewestDeletion()
		if err != nil {
			return unless(err, store.ErrNoOperation)
		}
		if ref != "" {
			if string(newest.Session) == ref {
				of = newest
			}
			return nil
		}
		cur, err := tx.Current()
		if err != nil {
			of = newest
			return unless(err, store.ErrNoSession)
		}
		own, err := tx.NewestStanding(cur.ID, store.OpRewind, store.OpUndo, store.OpRedo, store.OpCompact)
		if err := unless(err, store.ErrNoOperation); err != nil {
			return err
		}
		if own.ID < newest.ID {
			of = newest
		}
		return nil
	})
	return of, err
}

func unless(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// RestoreSession takes a deletion back; the operation that does so is returned.
func RestoreSession(ctx context.Context, in *store.Store, of store.Operation) (id store.OpID, err error) {
	err = in.Update(ctx, func(tx *store.WriteTx) error {
		id, err = tx.RestoreSession(of)
		return err
	})
	return id, err
}
