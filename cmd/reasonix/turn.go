package main

import (
	"context"
	"errors"
	"fmt"

	"reasonix/internal/move"
	"reasonix/rewind"
	"reasonix/store"
)

// turnRef is a TURN as a person writes it.
type turnRef struct {
	Session string // "" when it names none
	Turn    int    // from 0, or rewind.Latest
}

// parseTurn reads "3", "-1", "latest" or "SESSION:3".
func parseTurn(text string) (turnRef, error) {
	session, n, ok := move.ParseTurn(text)
	if !ok {
		return turnRef{}, &usage{text: quote(text) + " is no turn", hint: hintTurn}
	}
	return turnRef{session, n}, nil
}

const hintTurn = "a TURN is a number, -1, latest or the name of a pin; SESSION:TURN names another session's"

// isTurn reports whether a word has the form of a TURN that needs no look into the store.
func isTurn(text string) bool {
	_, err := parseTurn(text)
	return err == nil
}

// namesTurn reports whether a word is a TURN: it has the form of one, or is the name of a pin.
func (a *app) namesTurn(ctx context.Context, text string) bool {
	if isTurn(text) {
		return true
	}
	_, err := a.pinned(ctx, text)
	return err == nil
}

// pinned looks a pin up, before the command has opened its store.
func (a *app) pinned(ctx context.Context, name string) (pin store.Pin, err error) {
	p, err := a.find()
	if err != nil {
		return pin, err
	}
	s, err := store.Open(ctx, p.Store, store.Options{ReadOnly: true, Now: a.now})
	if err != nil {
		return pin, err
	}
	defer s.Close()
	err = s.View(ctx, func(tx *store.Tx) (err error) { pin, err = tx.Pin(name); return err })
	return pin, err
}

// atPin resolves the name of a pin. The turn must still be on its session's line.
func (a *app) atPin(ctx context.Context, w *world, name string) (s store.Session, n int, err error) {
	err = w.Store.View(ctx, func(tx *store.Tx) error {
		pin, err := tx.Pin(name)
		if err != nil {
			return err
		}
		if s, err = tx.Session(pin.Session); err != nil {
			return err
		}
		n = pin.Turn
		on, err := tx.IsAncestor(pin.Node, s.Head)
		if err == nil && !on {
			err = withHint(fmt.Errorf("pin %q names a turn that was rewound away: %w", name, store.ErrNoTurn),
				"reasonix undo-rewind brings rewound turns back")
		}
		return err
	})
	return s, n, err
}

// at resolves a TURN: the session it is about and the turn's number. The number after the
// last turn is allowed and stands for where that one ended.
func (a *app) at(ctx context.Context, w *world, text string) (store.Session, int, error) {
	ref, err := parseTurn(text)
	if err != nil {
		s, n, perr := a.atPin(ctx, w, text)
		if errors.Is(perr, store.ErrNoPin) {
			return s, n, err
		}
		return s, n, perr
	}
	if ref.Session == "" {
		ref.Session = a.sessionRef
	}
	s, err := w.session(ctx, ref.Session)
	if err != nil {
		return s, 0, err
	}
	n := ref.Turn
	if n == rewind.Latest {
		n = s.Turns - 1
	}
	if n < 0 || n > s.Turns {
		return s, 0, noTurn(ctx, w, s, n)
	}
	return s, n, nil
}

func noTurn(ctx context.Context, w *world, s store.Session, n int) error {
	away, err := w.rewoundAway(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case s.Turns == 0 && away:
		err = fmt.Errorf("session %s has no turns: they were rewound: %w", s.ID, store.ErrNoTurn)
	case s.Turns == 0:
		err = fmt.Errorf("session %s has no turns yet: %w", s.ID, store.ErrNoTurn)
	case s.Turns == 1:
		err = fmt.Errorf("session %s has only turn 0, not %d: %w", s.ID, n, store.ErrNoTurn)
	default:
		err = fmt.Errorf("session %s has turns 0 to %d, not %d: %w", s.ID, s.Turns-1, n, store.ErrNoTurn)
	}
	if away {
		return withHint(err, "reasonix log lists the turns; reasonix undo-rewind brings rewound ones back")
	}
	return err
}

// rewoundAway reports whether an undo would bring turns back.
func (w *world) rewoundAway(ctx context.Context, s store.Session) (away bool, err error) {
	err = w.Store.View(ctx, func(tx *store.Tx) error {
		op, err := tx.NewestStanding(s.ID, store.OpRewind, store.OpRedo)
		if errors.Is(err, store.ErrNoOperation) {
			return nil
		}
		if err != nil {
			return err
		}
		before, err := tx.Node(op.HeadFrom)
		away = before.Turn+1 > s.Turns
		return err
	})
	return away, err
}
