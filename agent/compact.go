package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/llm"
	"reasonix/store"
)

// Side says which part of a conversation Summarize is about.
type Side uint8

// The sides.
const (
	From Side = 1 // the turn and all after it
	UpTo Side = 2 // all before the turn
)

// ErrNothingToCompact is returned where there is too little to summarize.
var ErrNothingToCompact = errors.New("there is nothing to compact")

// Compact has the model summarize the conversation so far; later turns are sent the summary in
// its place. focus, which may be empty, says what matters. The history keeps all messages:
// UndoRewind, or a rewind to before, brings them back to the model too.
func (c *Controller) Compact(ctx context.Context, focus string) error {
	return c.alone(ctx, func(ctx context.Context, id store.SessionID) error {
		return c.summarize(ctx, id, 0, -1, focus)
	})
}

// Summarize is Compact for a part of the conversation.
func (c *Controller) Summarize(ctx context.Context, turn int, side Side) error {
	return c.alone(ctx, func(ctx context.Context, id store.SessionID) error {
		var at int64
		err := c.capture.Store.View(ctx, func(tx *store.Tx) error {
			s, err := tx.Session(id)
			if err != nil {
				return err
			}
			if turn == Latest {
				turn = s.Turns - 1
			}
			t, err := tx.Turn(s.Head, turn)
			at = t.MsgIndex
			return err
		})
		if err != nil {
			return err
		}
		if side == From {
			return c.summarize(ctx, id, at, -1, "")
		}
		return c.summarize(ctx, id, 0, at, "")
	})
}

// alone runs something that asks the model, outside of any turn.
func (c *Controller) alone(ctx context.Context, do func(context.Context, store.SessionID) error) error {
	if c.o.Model == nil {
		return ErrNoModel
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := c.enter(cancel); err != nil {
		return err
	}
	defer c.leave()
	id := c.Session()
	if id == "" {
		return ErrNothingToCompact
	}
	unlock, err := c.lockTurn(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := settle(context.WithoutCancel(ctx), c.recorder, id, store.TurnInterrupted); err != nil {
		return err
	}
	return do(ctx, id)
}

// summarize lets a summary stand for the messages from up to, not including, to (below 0: all so
// far). System messages at the beginning stay.
func (c *Controller) summarize(ctx context.Context, id store.SessionID, from, to int64, focus string) error {
	s, all, err := c.conversation(ctx, id)
	if err != nil {
		return err
	}
	if to < 0 {
		to = s.Messages
	}
	var head, part []store.Message
	for i, m := range all {
		switch {
		case m.Role == "system" && i == len(head):
			head = append(head, m)
			from = max(from, m.Index+1)
		case within(all, i, from, to):
			part = append(part, m)
		}
	}
	if len(part) < 2 {
		return ErrNothingToCompact
	}
	messages, _ := sound(append(head, part...))
	text, err := c.summaryOf(ctx, messages, focus)
	if err != nil {
		return err
	}
	err = c.recorder.Compact(context.WithoutCancel(ctx), id, from, to, []json.RawMessage{say(text)})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.size = 0
	c.mu.Unlock()
	c.events.send(Event{Kind: Compacted, Session: id, Turn: -1, Text: text})
	return nil
}

// within reports whether a message of the effective conversation lies in a range of the full line.
// One of an earlier summary, which has no index, lies where its neighbours are.
func within(all []store.Message, i int, from, to int64) bool {
	index := all[i].Index
	for j := i; index < 0 && j < len(all); j++ {
		index = all[j].Index - 1
	}
	if index < 0 { // a summary at the end
		return to > from
	}
	return index >= from && index < to
}

const summaryPrompt = `Summarize the conversation above for yourself: you will go on with this summary in its place. Say what
the user wants, in the user's words where they matter; what was decided and why; which files were read,
changed, created or deleted, and what is in them that matters; commands that were run and what came of
them; what went wrong and how it was solved; what is done and what comes next. Do not call tools. Write
nothing but the summary.`

const summaryHead = "Summary of the conversation before this point, which was too long to keep:\n\n"

// summaryOf asks for a summary of messages. The request begins as those of turns do, so that the
// server has read most of it already.
func (c *Controller) summaryOf(ctx context.Context, messages []json.RawMessage, focus string) (string, error) {
	ask := summaryPrompt
	if focus = strings.TrimSpace(focus); focus != "" {
		ask += "\nWhat matters most: " + focus
	}
	reply, err := c.o.Model.Complete(ctx, llm.Request{
		Messages: append(messages, say(ask)), Tools: c.schemas, NoTools: true, Thinking: c.o.Thinking, Effort: c.o.Effort,
	}, nil)
	if err != nil {
		return "", fmt.Errorf("summarize: %w", err)
	}
	if strings.TrimSpace(reply.Content) == "" {
		return "", errors.New("summarize: the model gave no summary; nothing was changed")
	}
	return summaryHead + reply.Content, nil
}

// squeeze compacts what came before the turn when the conversation comes near the model's limit.
func (t *turn) squeeze() error {
	t.c.mu.Lock()
	size := t.c.size
	t.c.mu.Unlock()
	if size == 0 {
		size = estimate(t.messages)
	}
	if t.squeezed || size < t.c.o.Context/5*4 {
		return nil
	}
	return t.compactBefore()
}

// compactBefore compacts what came before the turn, once a turn.
func (t *turn) compactBefore() error {
	t.squeezed = true
	err := t.c.summarize(t.ctx, t.id, 0, t.from, "")
	if errors.Is(err, ErrNothingToCompact) {
		return nil // the server will say when it is too much
	}
	if err != nil {
		return err
	}
	return t.load()
}
