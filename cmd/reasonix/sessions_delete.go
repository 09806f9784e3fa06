package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/store"
)

type deletionJSON struct {
	Operation *string         `json:"operation"`
	Session   store.SessionID `json:"session"`
	Undoes    *string         `json:"undoes,omitempty"`
}

func (a *app) deleteSession(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("sessions delete takes one session")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := w.session(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	op, err := w.Rewind.DeleteSession(c.Context, s.ID, c.Bool("force"))
	if err != nil {
		return fmt.Errorf("delete session %s: %w", s.ID, err)
	}
	return a.emit(deletionJSON{Operation: opID(op), Session: s.ID}, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "deleted session %s (%s, %s)\nundo with: reasonix undo-rewind --op %d\n",
			sessionName(s), count(s.Turns, "turn"), count(int(s.Messages), "message"), op)
		return err
	})
}

// deletion is the deletion that an undo is to take back: the one named by its operation or its
// session, or the newest one where nothing of the current session was done since. No deletion is
// an operation of id 0.
func (w *world) deletion(ctx context.Context, ref string, op store.OpID) (of store.Operation, err error) {
	err = w.Store.View(ctx, func(tx *store.Tx) error {
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

func (a *app) restoreSession(c *cli.Context, w *world, of store.Operation, err error) error {
	if err != nil {
		return err
	}
	out := deletionJSON{Session: of.Session, Undoes: opID(of.ID)}
	if !c.Bool("dry-run") {
		err = w.Store.Update(c.Context, func(tx *store.WriteTx) error {
			id, err := tx.RestoreSession(of)
			out.Operation = opID(id)
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.emit(out, func(to io.Writer) error {
		verb := "brought back"
		if c.Bool("dry-run") {
			verb = "would bring back"
		}
		_, err := fmt.Fprintf(to, "%s session %s, which operation %d had deleted\n", verb, of.Session, of.ID)
		return err
	})
}
