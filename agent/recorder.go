// Package agent records what a coding agent does: its turns, messages and edits. The Recorder
// is the seam through which every change of a workspace goes into the history, whether the
// agent is this program or another one that reports by hooks.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"reasonix/internal/capture"
	"reasonix/store"
)

// NoPrompt labels a turn that an edit opened without a prompt.
const NoPrompt = "(no prompt)"

// ErrInvalid is returned when an event carries something that cannot be recorded.
var ErrInvalid = errors.New("invalid event")

// Recorder writes the history of one workspace. It is safe for concurrent use, and beside
// other processes (I15). Every method's effect is durable when it returns nil; after an error
// nothing of it is there.
type Recorder struct {
	capture *capture.Capturer
}

// NewRecorder makes a recorder.
func NewRecorder(c *capture.Capturer) *Recorder { return &Recorder{capture: c} }

// Find finds the session that an agent feeds under its own id, or that is of ours by that id,
// which is how a fork is continued. It is store.ErrNoSession when there is none.
func (r *Recorder) Find(ctx context.Context, source, sourceID string) (s store.Session, err error) {
	if sourceID == "" {
		return s, fmt.Errorf("an event names its session: %w", ErrInvalid)
	}
	err = r.capture.Store.View(ctx, func(tx *store.Tx) (err error) {
		s, err = tx.SessionOf(source, sourceID)
		return err
	})
	return s, err
}

// Session is Find, and makes the session when there is none.
func (r *Recorder) Session(ctx context.Context, source, sourceID string) (store.Session, error) {
	s, err := r.Find(ctx, source, sourceID)
	if !errors.Is(err, store.ErrNoSession) {
		return s, err
	}
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return s, err
	}
	defer unlock()
	err = r.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		var err error
		if s, err = tx.SessionOf(source, sourceID); !errors.Is(err, store.ErrNoSession) {
			return err
		}
		s, err = tx.CreateSession(store.NewSession{Source: source, SourceID: sourceID})
		if err != nil {
			return err
		}
		return tx.SetCurrent(s.ID)
	})
	return s, err
}

// BeginTurn opens a turn. The same key again, while that turn is on the session's line, is the
// same turn. One that is still open, from a crash or an interruption, is closed first.
// Messages that come with it belong to the turn, so that rewinding to it drops them.
func (r *Recorder) BeginTurn(ctx context.Context, id store.SessionID, key, prompt string, messages []json.RawMessage) (store.Turn, error) {
	if len(key) > 1024 {
		return store.Turn{}, fmt.Errorf("the key of a turn has %d bytes, more than 1024: %w", len(key), ErrInvalid)
	}
	if !utf8.ValidString(prompt) {
		prompt = string([]rune(prompt)) // a label: invalid bytes become U+FFFD
	}
	ready, err := r.prepare(ctx, id, messages)
	if err != nil {
		return store.Turn{}, err
	}
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return store.Turn{}, err
	}
	defer unlock()
	if err := r.lookBetween(ctx, id, key); err != nil {
		return store.Turn{}, err
	}
	for {
		var (
			turn store.Turn
			open bool
		)
		err := r.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
			s, err := tx.Session(id)
			if err != nil {
				return err
			}
			if turn, err = tx.TurnByKey(s, key); err == nil || !errors.Is(err, store.ErrNoTurn) {
				return err
			}
			if open = s.OpenTurn != 0; open {
				return nil
			}
			if turn, err = tx.BeginTurn(id, key, prompt); err != nil {
				return err
			}
			if err := tx.AppendMessages(turn.Node, ready); err != nil {
				return err
			}
			return seen(tx, s)
		})
		if err != nil || !open {
			return turn, err
		}
		if err := r.capture.CloseTurn(ctx, id, store.TurnInterrupted); err != nil {
			return store.Turn{}, err
		}
	}
}

// lookBetween looks, before a turn begins, at what was done since the last one ended: it is not the
// agent's. A turn that is still open is looked at when it is closed.
func (r *Recorder) lookBetween(ctx context.Context, id store.SessionID, key string) error {
	begins := false
	err := r.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil || s.OpenTurn != 0 {
			return err
		}
		_, err = tx.TurnByKey(s, key)
		begins = errors.Is(err, store.ErrNoTurn)
		if begins {
			return nil
		}
		return err
	})
	if err != nil || !begins {
		return err
	}
	return r.capture.Look(ctx, id)
}

// Append adds messages to the conversation, byte for byte. Outside a turn they are the
// preamble, or belong to what follows the last turn.
func (r *Recorder) Append(ctx context.Context, id store.SessionID, messages []json.RawMessage) error {
	if len(messages) == 0 {
		return nil
	}
	ready, err := r.prepare(ctx, id, messages)
	if err != nil {
		return err
	}
	return r.update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		n, err := tx.WritableOf(s)
		if err != nil {
			return err
		}
		if err := tx.AppendMessages(n, ready); err != nil {
			return err
		}
		return seen(tx, s)
	})
}

// Compact lets messages stand for the range [from, to) of the full line in what a model is
// sent; to below 0 means all so far. The full line keeps its messages; undo-rewind takes the
// compaction back.
func (r *Recorder) Compact(ctx context.Context, id store.SessionID, from, to int64, messages []json.RawMessage) error {
	ready, err := r.prepare(ctx, id, messages)
	if err != nil {
		return err
	}
	return r.update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if to < 0 {
			to = s.Messages
		}
		c, err := tx.AddCompaction(id, from, to, ready)
		if err != nil {
			return err
		}
		_, err = tx.AddOperation(store.Operation{
			Session: id, Kind: store.OpCompact, Turn: -1, State: store.Applied, HeadFrom: s.Head, HeadTo: c.Node,
		}, nil)
		if err != nil {
			return err
		}
		return seen(tx, s)
	})
}

// EndTurn seals the session's turn; without an open one it does nothing.
func (r *Recorder) EndTurn(ctx context.Context, id store.SessionID, status store.Status) error {
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.capture.CloseTurn(ctx, id, status); err != nil {
		return err
	}
	return r.capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		return seen(tx, s)
	})
}

// AddGap records that something was not captured.
func (r *Recorder) AddGap(ctx context.Context, id store.SessionID, g store.Gap) error {
	return r.update(ctx, func(tx *store.WriteTx) error {
		if err := addGap(tx, id, g); err != nil {
			return err
		}
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		return seen(tx, s)
	})
}

func (r *Recorder) prepare(ctx context.Context, id store.SessionID, messages []json.RawMessage) ([]store.NewMessage, error) {
	return r.capture.Store.PrepareMessages(ctx, id, messages)
}

// update is a write transaction during which no operation moves a head.
func (r *Recorder) update(ctx context.Context, fn func(*store.WriteTx) error) error {
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return r.capture.Store.Update(ctx, fn)
}

// seen notes an event of the session, which is the current one by that.
func seen(tx *store.WriteTx, s store.Session) error {
	if err := tx.Touch(s.ID); err != nil || s.Current {
		return err
	}
	return tx.SetCurrent(s.ID)
}

func addGap(tx *store.WriteTx, id store.SessionID, g store.Gap) error {
	n, err := tx.Writable(id)
	if err != nil {
		return err
	}
	return tx.AddGap(n, g)
}
