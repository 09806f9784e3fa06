package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"reasonix/internal/llm"
	"reasonix/internal/tool"
)

// maxParallel is how many reading tools run at once.
const maxParallel = 8

// prepareTools knows the tools by name, and how the model is told of them.
func (c *Controller) prepareTools() error {
	tools := c.o.Tools
	if tools == nil {
		file := c.capture.Store.Path()
		tools = tool.All(tool.Options{Root: c.capture.Root.Path(), Protected: []string{file, file + "-wal", file + "-shm"}})
	}
	c.tools = map[string]tool.Tool{}
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type entry struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var all []entry
	for _, t := range tools {
		if c.tools[t.Name()] != nil {
			return fmt.Errorf("two tools have the name %s: %w", t.Name(), ErrInvalid)
		}
		c.tools[t.Name()] = t
		all = append(all, entry{"function", function{t.Name(), t.Description(), t.Schema()}})
	}
	if len(all) == 0 {
		return nil
	}
	var err error
	c.schemas, err = llm.Encode(all)
	return err
}

// request is a call of the model on its way.
type request struct {
	llm.ToolCall
	key   string // our own: the model's ids may come again
	tool  tool.Tool
	kind  tool.Kind
	text  string // the result
	err   bool
	fatal error // the turn cannot go on
}

// calls does what the model asked for, in its order; neighbours that only read run at once. Each
// call is answered, whatever happens: the conversation is consistent at every moment in which the
// turn can end.
func (t *turn) calls(asked []llm.ToolCall) error {
	all := make([]*request, len(asked))
	for i, a := range asked {
		all[i] = &request{ToolCall: a, key: fmt.Sprintf("%s-%d-%d", t.key, t.steps, i), tool: t.c.tools[a.Name]}
		if all[i].tool != nil {
			all[i].kind = all[i].tool.Kind()
		}
	}
	var fatal error
	for len(all) > 0 {
		n := 1
		for all[0].kind == tool.Read && n < len(all) && all[n].kind == tool.Read {
			n++
		}
		if fatal == nil && t.ctx.Err() == nil {
			t.batch(all[:n])
		} else {
			for _, r := range all[:n] {
				r.text, r.err = "Not run: the turn was interrupted before.", true
			}
		}
		for _, r := range all[:n] {
			fatal = errors.Join(fatal, r.fatal)
			if err := t.add(answer(r.ID, r.text)); err != nil {
				return errors.Join(fatal, err)
			}
		}
		all = all[n:]
	}
	return fatal
}

func (t *turn) batch(all []*request) {
	var g errgroup.Group
	g.SetLimit(maxParallel)
	for _, r := range all {
		g.Go(func() error { t.call(r); return nil })
	}
	_ = g.Wait() // results are in the requests
}

// call runs one call; its result, good or bad, is a text for the model.
func (t *turn) call(r *request) {
	e := ToolEvent{ID: r.ID, Name: r.Name, Kind: r.kind, Args: r.Arguments}
	res, err := t.attempt(r, &e)
	switch {
	case err == nil:
		r.text, r.err = res.Text, res.Failed
	case t.ctx.Err() != nil:
		r.text, r.err = interruptedText, true
	default:
		r.text, r.err = "Error: "+err.Error(), true
	}
	if r.text == "" {
		r.text = "(no output)"
	}
	r.text = strings.ToValidUTF8(r.text, "\uFFFD")
	e.Failed = r.err
	t.c.events.send(Event{Kind: ToolEnded, Session: t.id, Turn: t.turn, Tool: e, Text: r.text})
}

func (t *turn) attempt(r *request, e *ToolEvent) (res tool.Result, err error) {
	if r.tool == nil {
		return res, fmt.Errorf("there is no tool %q", r.Name)
	}
	args := r.Arguments
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	if !json.Valid([]byte(args)) {
		return res, errors.New("the arguments are no valid JSON; send them again, whole")
	}
	call, err := r.tool.Prepare(t.ctx, json.RawMessage(args))
	if err != nil {
		return res, err
	}
	if e.Preview, err = call.Preview(t.ctx); err != nil {
		return res, err
	}
	refused, err := t.c.approve(t.ctx, Approval{ID: r.ID, Tool: r.Name, Kind: r.kind, Args: args, Preview: e.Preview})
	if err != nil || refused != "" {
		return tool.Result{Text: refused, Failed: true}, err
	}
	if r.kind != tool.Read { // a person may have taken long to answer
		if err := t.isOpen(); err != nil {
			r.fatal = err
			return res, err
		}
	}
	t.c.events.send(Event{Kind: ToolStarted, Session: t.id, Turn: t.turn, Tool: *e})
	switch r.kind {
	case tool.Edit:
		return t.edit(r, call, e.Preview)
	case tool.Exec:
		return t.exec(r, call)
	default:
		return call.Run(t.ctx)
	}
}

// edit runs a call between the records of its files' states. What cannot be recorded is not done.
func (t *turn) edit(r *request, call tool.Call, p tool.Preview) (res tool.Result, err error) {
	paths := call.Paths()
	t.c.mu.Lock()
	hook := t.c.hook
	t.c.mu.Unlock()
	if hook != nil {
		hook(Change{Session: t.id, Turn: t.turn, Tool: r.Name, Paths: paths, Diff: p.Diff})
	}
	e := Edit{Call: r.key, Tool: r.Name, Paths: paths}
	if _, err := t.c.recorder.BeforeEdit(t.ctx, t.id, e); err != nil {
		return res, t.unrecorded(r, err)
	}
	res, err = call.Run(t.ctx)
	if _, aerr := t.c.recorder.AfterEdit(t.keep, t.id, e); aerr != nil {
		r.fatal = fmt.Errorf("record what %s did: %w", r.Name, aerr)
	}
	return res, err
}

// exec is edit for a command.
func (t *turn) exec(r *request, call tool.Call) (res tool.Result, err error) {
	e := Exec{Call: r.key, Tool: r.Name}
	if _, err := t.c.recorder.BeforeExec(t.ctx, t.id, e); err != nil {
		return res, t.unrecorded(r, err)
	}
	res, err = call.Run(t.ctx)
	if _, aerr := t.c.recorder.AfterExec(t.keep, t.id, e); aerr != nil {
		r.fatal = fmt.Errorf("record what %s did: %w", r.Name, aerr)
	}
	return res, err
}

// unrecorded is a call that was not run, because the state before it could not be recorded.
func (t *turn) unrecorded(r *request, err error) error {
	if t.ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		r.fatal = fmt.Errorf("record the state before %s: %w", r.Name, err)
	}
	return fmt.Errorf("not run, because the state before it could not be recorded: %w", err)
}
