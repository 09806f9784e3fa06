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

// Outcome is how a turn ended.
type Outcome struct {
	Session store.SessionID
	Turn    int
	Status  store.Status // done, interrupted or failed
	Text    string       // the model's last answer
	Steps   int          // answers that the model gave
	Usage   llm.Usage    // of all of them
}

// Submit runs a turn: it asks the model, does what the model asks for, and so on until the model
// stops. With every error the turn is closed, its conversation is consistent, and nothing that
// happened is lost: Retry, or another prompt, goes on. Errors: ErrRunning, ErrNoModel, ErrBudget,
// *llm.Error, and the cause with which ctx ended or Cancel was called (context.Canceled).
func (c *Controller) Submit(ctx context.Context, prompt string) (Outcome, error) {
	r, err := c.start(ctx, prompt)
	if err != nil {
		return Outcome{Session: r.id, Turn: r.turn}, err
	}
	return r.run()
}

// Start is Submit that returns the number of the turn once it has begun; how it ends is told by
// TurnEnded. The turn does not end with ctx, but by Cancel.
func (c *Controller) Start(ctx context.Context, prompt string) (turn int, err error) {
	r, err := c.start(context.WithoutCancel(ctx), prompt)
	if err != nil {
		return 0, err
	}
	go func() { _, _ = r.run() }() // told by the event
	return r.turn, nil
}

// Retry takes the last turn back, files and conversation, and submits its prompt again.
func (c *Controller) Retry(ctx context.Context, options ...MoveOption) (Outcome, error) {
	res, err := c.Rewind(Latest, RewindBoth, options...)
	if err != nil {
		return Outcome{}, err
	}
	return c.Submit(ctx, res.Prompt)
}

// turn is a turn that runs. It is for one goroutine.
type turn struct {
	c        *Controller
	ctx      context.Context // ends when the turn is cancelled
	keep     context.Context // does not: what was done has to be recorded
	id       store.SessionID
	turn     int
	key      string
	from     int64 // index of the turn's first message
	messages []json.RawMessage
	steps    int
	usage    llm.Usage
	text     string
	end      func()
	squeezed bool // what came before the turn was compacted, more cannot be done
}

func (c *Controller) start(ctx context.Context, prompt string) (t *turn, err error) {
	t = &turn{c: c, turn: -1, keep: context.WithoutCancel(ctx)}
	switch {
	case c.o.Model == nil:
		return t, ErrNoModel
	case strings.TrimSpace(prompt) == "":
		return t, fmt.Errorf("the prompt is empty: %w", ErrInvalid)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if err := c.enter(cancel); err != nil {
		cancel(nil)
		return t, err
	}
	t.ctx, t.end = ctx, func() { cancel(nil); c.leave() }
	defer func() {
		if err != nil {
			t.end()
		}
	}()
	if t.id, err = c.ensure(t.keep); err != nil {
		return t, err
	}
	unlock, err := c.lockTurn(t.keep, t.id)
	if err != nil {
		return t, err
	}
	end := t.end
	t.end = func() { unlock(); end() }
	return t, t.begin(prompt)
}

// begin opens the turn.
func (t *turn) begin(prompt string) error {
	c := t.c
	// A turn of ours that is open without this lock being held was left by a crash; one of another
	// program is closed by BeginTurn.
	if err := settle(t.keep, c.recorder, t.id, store.TurnInterrupted); err != nil {
		return err
	}
	t.key = turnKey + c.o.NewKey()
	begun, err := c.recorder.BeginTurn(t.keep, t.id, t.key, prompt, nil)
	if err != nil {
		return err
	}
	t.turn, t.from = begun.Number(), begun.MsgIndex
	c.events.send(Event{Kind: TurnStarted, Session: t.id, Turn: t.turn, Text: prompt})
	note, err := c.outside(t.keep, t.id, t.turn)
	if err == nil {
		var first []json.RawMessage
		if note != "" {
			first = append(first, say(note))
		}
		err = t.add(append(first, say(prompt))...)
	}
	if err != nil {
		return errors.Join(err, c.recorder.EndTurn(t.keep, t.id, store.TurnFailed))
	}
	return nil
}

// ensure makes the session when there is none yet. Its first message is the system prompt, which
// so stays the same as long as the session lives.
func (c *Controller) ensure(ctx context.Context) (store.SessionID, error) {
	if id := c.Session(); id != "" {
		return id, nil
	}
	s, err := c.recorder.Session(ctx, Source, c.o.NewKey())
	if err != nil {
		return "", err
	}
	system := encode(chat{Role: "system", Content: c.o.System})
	if err := c.recorder.Append(ctx, s.ID, []json.RawMessage{system}); err != nil {
		return "", err
	}
	c.stand(s.ID)
	return s.ID, nil
}

// add puts messages into the conversation, durably. ErrClosed when the turn is no more: then they
// belong nowhere.
func (t *turn) add(messages ...json.RawMessage) error {
	if err := t.isOpen(); err != nil {
		return err
	}
	if err := t.c.recorder.Append(t.keep, t.id, messages); err != nil {
		return err
	}
	t.messages = append(t.messages, messages...)
	for _, m := range messages {
		t.c.events.send(Event{Kind: Messaged, Session: t.id, Turn: t.turn, Message: m})
	}
	return nil
}

// run runs the turn to its end.
func (t *turn) run() (Outcome, error) {
	defer t.end()
	err := t.loop()
	status := store.TurnDone
	switch {
	case err == nil:
	case t.ctx.Err() != nil:
		status, err = store.TurnInterrupted, context.Cause(t.ctx)
	case errors.Is(err, ErrBudget), errors.Is(err, ErrClosed):
		status = store.TurnInterrupted
	default:
		status = store.TurnFailed
	}
	switch {
	case err == nil:
		if err = t.c.recorder.EndTurn(t.keep, t.id, status); err != nil {
			status = store.TurnFailed
		}
	case !errors.Is(err, ErrClosed):
		// What cannot be put right now is put right by Settle, since the turn stays open then.
		err = errors.Join(err, settle(t.keep, t.c.recorder, t.id, status))
	}
	t.c.events.send(Event{Kind: TurnEnded, Session: t.id, Turn: t.turn, Status: status, Usage: t.usage, Err: err, Text: t.text})
	return Outcome{Session: t.id, Turn: t.turn, Status: status, Text: t.text, Steps: t.steps, Usage: t.usage}, err
}

// loop goes back and forth between model and tools until the model stops.
func (t *turn) loop() error {
	if err := t.load(); err != nil {
		return err
	}
	for {
		if err := t.mayGoOn(); err != nil {
			return err
		}
		if err := t.squeeze(); err != nil {
			return err
		}
		reply, err := t.ask()
		if err != nil {
			return err
		}
		if len(reply.ToolCalls) == 0 {
			t.finished(reply.Finish)
			return nil
		}
		if err := t.calls(reply.ToolCalls); err != nil {
			return err
		}
	}
}

// load reads the conversation so far.
func (t *turn) load() error {
	_, all, err := t.c.conversation(t.keep, t.id)
	if err != nil {
		return err
	}
	var open []string
	t.messages, open = sound(all)
	for _, id := range open {
		t.messages = append(t.messages, answer(id, interruptedText))
	}
	if len(all) == 0 || all[0].Role != "system" {
		t.messages = append([]json.RawMessage{encode(chat{Role: "system", Content: t.c.o.System})}, t.messages...)
	}
	return nil
}

// mayGoOn says whether another answer may be asked for.
func (t *turn) mayGoOn() error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if err := t.isOpen(); err != nil {
		return err
	}
	switch used := t.usage.Total - t.usage.CacheHit; {
	case t.steps >= t.c.o.MaxSteps:
		return fmt.Errorf("%w: %d steps", ErrBudget, t.steps)
	case t.c.o.MaxTokens > 0 && used >= t.c.o.MaxTokens:
		return fmt.Errorf("%w: %d tokens", ErrBudget, used)
	}
	return nil
}

// isOpen makes sure that nobody closed the turn meanwhile, by a rewind with force.
func (t *turn) isOpen() error {
	return t.c.capture.Store.View(t.keep, func(tx *store.Tx) error {
		s, err := tx.Session(t.id)
		if err != nil {
			return err
		}
		if s.OpenTurn != 0 {
			now, err := tx.OpenTurn(s)
			if err != nil || now.Key == t.key {
				return err
			}
		}
		return fmt.Errorf("the turn was ended from outside: %w", ErrClosed)
	})
}

// ask has the model answer and keeps the answer.
func (t *turn) ask() (llm.Reply, error) {
	reply, err := t.complete()
	var e *llm.Error
	if errors.As(err, &e) && e.Kind == llm.TooLong && !t.squeezed {
		if err := t.compactBefore(); err != nil {
			return reply, err
		}
		reply, err = t.complete()
	}
	if err != nil {
		if t.ctx.Err() != nil && reply.Content != "" {
			// The person has seen it, so the model should know.
			return reply, errors.Join(err, t.add(partial(reply)))
		}
		return reply, err
	}
	t.steps++
	t.text = reply.Content
	t.usage.Add(reply.Usage)
	t.c.grew(reply.Usage)
	if err := t.add(reply.Message); err != nil {
		return reply, err
	}
	t.c.events.send(Event{Kind: UsageTold, Session: t.id, Turn: t.turn, Usage: t.usage})
	return reply, nil
}

// partial is an answer that was stopped: its text and thoughts, without calls.
func partial(r llm.Reply) json.RawMessage {
	m := chat{Role: "assistant", Content: r.Content}
	if r.Reasoning != "" {
		m.Reasoning = &r.Reasoning
	}
	return encode(m)
}

func (t *turn) complete() (llm.Reply, error) {
	return t.c.o.Model.Complete(t.ctx, llm.Request{
		Messages: t.messages, Tools: t.c.schemas, Thinking: t.c.o.Thinking, Effort: t.c.o.Effort,
	}, t.tell)
}

func (t *turn) tell(d llm.Delta) {
	e := Event{Session: t.id, Turn: t.turn}
	switch {
	case d.Again != nil:
		e.Kind, e.Err = Discarded, d.Again
		e.Text = fmt.Sprintf("trying again in %v", d.Wait)
	case d.Content != "":
		e.Kind, e.Text = Text, d.Content
	case d.Reasoning != "":
		e.Kind, e.Text = Reasoning, d.Reasoning
	default:
		return
	}
	t.c.events.send(e)
}

// finished tells when the model did not stop by itself.
func (t *turn) finished(why string) {
	var text string
	switch why {
	case llm.FinishLength:
		text = "the answer was cut off at the model's limit of length"
	case llm.FinishFilter:
		text = "the server's content filter cut the answer off"
	default:
		return
	}
	t.c.events.send(Event{Kind: Noticed, Session: t.id, Turn: t.turn, Text: text})
}

// grew notes the size of the conversation as the model told it.
func (c *Controller) grew(u llm.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = u.Prompt + u.Completion
}
