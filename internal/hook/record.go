package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/retain"
	"reasonix/store"
)

// record gives an event to the recorder.
func (r *run) record(ctx context.Context, e Event) error {
	session := r.recorder.Session
	if !e.begins() {
		session = r.recorder.Find
	}
	s, err := session(ctx, e.source(), e.Session)
	if err != nil {
		return fmt.Errorf("find session: %w", err)
	}
	r.session = s.ID
	r.reply.Session, r.reply.Turn = string(s.ID), s.Turns-1
	switch e.Kind {
	case BeginTurn:
		turn, err := r.recorder.BeginTurn(ctx, s.ID, e.TurnKey, e.Prompt, e.Messages)
		if err == nil {
			r.reply.Turn = turn.Number()
		}
		return err
	case Compact:
		return r.recorder.Compact(ctx, s.ID, e.From, e.To, e.Messages)
	case EndTurn, SessionEnd:
		// The messages still belong to the turn.
		return errors.Join(r.recorder.Append(ctx, s.ID, e.Messages), r.end(ctx, s, e))
	case BeforeEdit, AfterEdit, BeforeExec, AfterExec, BeforeTool, AfterTool, Message, SessionStart:
		// An edit may open a turn, to which the messages belong then. What cannot be captured
		// is no reason to lose them.
		return errors.Join(r.tool(ctx, e), r.recorder.Append(ctx, s.ID, e.Messages))
	}
	return fmt.Errorf("%w: unknown event %s", ErrMalformed, short(string(e.Kind)))
}

func (e *Event) source() string {
	if e.Source == "" {
		return "generic"
	}
	return e.Source
}

func (r *run) end(ctx context.Context, s store.Session, e Event) error {
	status := e.Status
	if e.Kind == SessionEnd {
		status = store.TurnDone
	}
	if err := r.recorder.EndTurn(ctx, s.ID, status); err != nil {
		return err
	}
	r.collect(ctx)
	return nil
}

// collectTime is how much of an event's time collection may take, which goes on at the next one.
const collectTime = 500 * time.Millisecond

// collect lets go of what is too old or too much, when that is due. The event is recorded whatever
// becomes of it.
func (r *run) collect(ctx context.Context) {
	c := retain.Collector{Capture: r.capture}
	if _, _, err := c.Auto(ctx, r.Retain, collectTime); err != nil {
		r.warn("collect: %v", err)
	}
}

// tool records what a tool call does or did to files.
func (r *run) tool(ctx context.Context, e Event) error {
	before := e.Kind == BeforeEdit || e.Kind == BeforeTool || e.Kind == BeforeExec
	does, paths := otherTool, e.Paths
	switch e.Kind {
	case BeforeEdit, AfterEdit:
		does = editTool
	case BeforeExec, AfterExec:
		does = execTool
	case BeforeTool, AfterTool:
		if does, paths = use(e.Tool, e.Input); does == editTool && len(paths) == 0 && (before || e.Call == "") {
			return r.gap(ctx, store.Gap{Reason: store.GapInvalidPath, Tool: e.Tool, Detail: "the input names no path"})
		}
	case BeginTurn, Message, EndTurn, Compact, SessionStart, SessionEnd:
	}
	switch does {
	case execTool:
		return r.exec(ctx, agent.Exec{Call: e.Call, Tool: e.Tool}, before)
	case editTool:
		return r.edit(ctx, agent.Edit{Call: e.Call, Tool: e.Tool, Cwd: r.cwd, Paths: paths, Given: e.Given}, before)
	case otherTool:
	}
	return nil
}

func (r *run) edit(ctx context.Context, e agent.Edit, before bool) error {
	r.paths = e.Paths
	if before && r.wide {
		r.warnings("the workspace is %s: edits that tools announce are captured, it is never scanned", r.root)
	}
	do := r.recorder.AfterEdit
	if before {
		do = r.recorder.BeforeEdit
	}
	c, err := do(ctx, r.session, e)
	if err != nil && before && len(e.Paths) > 1 && !isLate(err) {
		return r.oneByOne(ctx, e)
	}
	if err != nil {
		return err
	}
	r.captured(c)
	return nil
}

// oneByOne captures what can be of paths that could not all be. The tool runs in either case.
func (r *run) oneByOne(ctx context.Context, e agent.Edit) error {
	paths := e.Paths
	var failed []string
	var errs []error
	for _, p := range paths {
		e.Paths = []string{p}
		c, err := r.recorder.BeforeEdit(ctx, r.session, e)
		if err != nil {
			failed, errs = append(failed, p), append(errs, err)
			continue
		}
		r.captured(c)
	}
	r.paths = failed
	return errors.Join(errs...)
}

func (r *run) captured(c agent.Captured) {
	r.reply.Turn = c.Turn
	r.reply.Captured += len(c.Paths)
	for _, g := range c.Gaps {
		r.warn("not captured: %s: %s", g.Reason, short(string(g.Path)))
	}
}

func (r *run) exec(ctx context.Context, e agent.Exec, before bool) error {
	do := r.recorder.AfterExec
	if before {
		do = r.recorder.BeforeExec
	}
	c, err := do(ctx, r.session, e)
	if err != nil {
		return err
	}
	r.reply.Turn = c.Turn
	if !before {
		r.reply.Captured += len(c.Paths)
	}
	for _, g := range c.Gaps {
		what := g.Tool
		if g.Path != "" {
			what = short(string(g.Path))
		}
		r.warnings("not captured: %s: %s", g.Reason, what)
	}
	return nil
}

func (r *run) gap(ctx context.Context, g store.Gap) error {
	err := r.recorder.AddGap(ctx, r.session, g)
	if err == nil {
		r.warnings("not captured: %s: %s", g.Reason, g.Tool)
	}
	return err
}

func isLate(err error) bool {
	return errors.Is(err, capture.ErrLocked) || errors.Is(err, context.DeadlineExceeded)
}

// missed notes that an event was not recorded: an operation held the workspace, time ran out, or
// something failed. The gap goes on the node at the session's head as it is: making one, or moving the
// head, is what the lock is for.
func (r *run) missed(e Event, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.reserve)
	defer cancel()
	if r.session == "" { // a recovery may have used up the time to find it
		s, err := r.recorder.Find(ctx, e.source(), e.Session)
		if err != nil {
			r.warn("that the event was missed could not be recorded: %v", err)
			return
		}
		r.session = s.ID
		r.reply.Session, r.reply.Turn = string(s.ID), s.Turns-1
	}
	if len(r.paths) == 0 {
		r.paths = e.Paths
	}
	g := store.Gap{Reason: store.GapFailed, Tool: e.Tool, Detail: string(e.Kind)}
	switch {
	case errors.Is(cause, capture.ErrLocked):
		g.Reason = store.GapLocked
	case isLate(cause):
		g.Reason = store.GapDeadline
	}
	gaps := []store.Gap{g}
	if len(r.paths) > 0 {
		gaps = nil
	}
	for _, name := range r.paths {
		if p, err := r.place.Root.Resolve(r.cwd, name); err == nil {
			g.Path = p
			gaps = append(gaps, g)
		}
	}
	err := r.place.Store.Update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Session(r.session)
		if err != nil {
			return err
		}
		head, err := tx.Node(s.Head)
		if err != nil {
			return err
		}
		for _, g := range gaps {
			if err := tx.AddGap(head, g); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.warn("the gap %s could not be recorded: %v", g.Reason, err)
	}
}
