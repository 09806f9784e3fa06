package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"reasonix/internal/capture"
	"reasonix/internal/tool"
	"reasonix/store"
)

// turnKey begins the keys of turns that a Controller opened.
const turnKey = "reasonix-agent-"

// Settle closes the turns of Controllers whose processes died: their open calls are answered in
// the conversation, what they left on disk is recorded, and they are interrupted, so that they can
// be rewound at once. It returns the sessions that it put right. Turns of processes that live, and
// those of other agents, are left alone.
func Settle(ctx context.Context, c *capture.Capturer) ([]store.SessionID, error) {
	var open []store.SessionID
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		all, err := tx.Activities()
		for _, a := range all {
			if a.Session.OpenTurn == 0 {
				continue
			}
			t, err := tx.OpenTurn(a.Session)
			if err != nil {
				return err
			}
			if strings.HasPrefix(t.Key, turnKey) {
				open = append(open, a.Session.ID)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for interrupted turns: %w", err)
	}
	var done []store.SessionID
	for _, id := range open {
		alive, err := c.TurnAlive(id)
		if err != nil || alive {
			if err != nil {
				return done, err
			}
			continue
		}
		unlock, err := c.LockTurn(ctx, id)
		if errors.Is(err, capture.ErrLocked) || readOnly(err) {
			continue // it came to life; or somebody else has to do it
		}
		if err != nil {
			return done, err
		}
		err = settle(ctx, NewRecorder(c), id, store.TurnInterrupted)
		unlock()
		if readOnly(err) {
			continue
		}
		if err != nil {
			return done, fmt.Errorf("close the interrupted turn of session %s: %w", id, err)
		}
		done = append(done, id)
	}
	return done, nil
}

// readOnly reports whether this user may not write the store: reading it goes on.
func readOnly(err error) bool {
	return errors.Is(err, store.ErrReadOnly) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// settle answers what is unanswered at the end of a session's conversation, removes what an edit
// left unfinished on disk, and closes the turn, if one is open. The caller holds the turn's lock.
func settle(ctx context.Context, r *Recorder, id store.SessionID, status store.Status) error {
	var (
		missing []json.RawMessage
		edited  []store.Path // by calls that have not ended
	)
	err := r.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		messages, err := conversationOf(tx, s.Head)
		if err != nil {
			return err
		}
		_, open := sound(messages)
		for _, call := range open {
			missing = append(missing, answer(call, interruptedText))
		}
		running, err := tx.Calls(id)
		for _, call := range running {
			edited = append(edited, call.Paths...)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.capture.Root.Sweep(tool.StageID, edited); err != nil {
		return fmt.Errorf("remove what an edit left: %w", err)
	}
	if err := r.Append(ctx, id, missing); err != nil {
		return err
	}
	return r.EndTurn(ctx, id, status)
}
