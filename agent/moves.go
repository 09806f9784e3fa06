package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/view"
	"reasonix/rewind"
	"reasonix/store"
)

// Mode says what a rewind takes back.
type Mode = store.Scope

// The modes.
const (
	RewindCode         Mode = store.Code
	RewindConversation Mode = store.Conversation
	RewindBoth         Mode = store.Both
)

// Latest stands for the number of the last turn.
const Latest = rewind.Latest

// Meta describes a checkpoint: the state at the start of a turn.
type Meta struct {
	Turn            int
	Prompt          string
	Time            time.Time
	Status          string   // open, done, interrupted or failed
	Paths           []string // that the agent changed in the turn
	Gaps            int      // what may have changed and was not captured
	Messages        int64
	CanCode         bool // a code rewind to here has something to take back
	CanConversation bool // a conversation rewind has
}

// Checkpoints are those of the session, oldest first; none before the first turn.
func (c *Controller) Checkpoints() ([]Meta, error) {
	id := c.Session()
	if id == "" {
		return nil, nil
	}
	page, err := view.New(c.capture).Checkpoints(context.Background(), id, view.Page{Before: -1})
	if err != nil {
		return nil, err
	}
	var all []Meta
	for _, p := range page.Oldest() {
		m := Meta{
			Turn: p.Turn, Prompt: p.Prompt, Time: time.UnixMilli(p.TimeMS), Status: p.Status, Gaps: len(p.Gaps),
			Messages: p.Messages, CanCode: p.CanCode, CanConversation: p.CanConversation,
		}
		for _, f := range p.Files {
			m.Paths = append(m.Paths, f.Path)
		}
		all = append(all, m)
	}
	return all, nil
}

// Sessions are all sessions of the workspace, the one last used first.
func (c *Controller) Sessions() (all []store.Session, err error) {
	err = c.capture.Store.View(context.Background(), func(tx *store.Tx) (err error) { all, err = tx.Sessions(); return err })
	return all, err
}

// MoveOption changes how a move treats files.
type MoveOption func(*rewind.Request)

// Force goes on over conflicts; what was forced over can be brought back by UndoRewind.
func Force(r *rewind.Request) { r.Force = true }

// SkipConflicts leaves files alone that somebody else changed.
func SkipConflicts(r *rewind.Request) { r.Skip = true }

// WithCode has Fork and Switch take the files along; Switch always does.
func WithCode(r *rewind.Request) { r.Code = true }

// Only restricts a move to these paths and what lies below them.
func Only(paths ...store.Path) MoveOption { return func(r *rewind.Request) { r.Only = paths } }

// Named names the session that a Fork makes.
func Named(name string) MoveOption { return func(r *rewind.Request) { r.Name = name } }

// Rewind takes files, conversation or both to where they were when a turn began. Errors:
// ErrRunning, store.ErrNoTurn, rewind.ErrConflict with a Result that lists the conflicts, and the
// others of rewind.Engine; whatever the error, nothing was changed.
func (c *Controller) Rewind(turn int, mode Mode, options ...MoveOption) (rewind.Result, error) {
	return c.move(rewind.Request{Kind: store.OpRewind, Turn: turn, Scope: mode}, options)
}

// PreviewRewind says what Rewind would do.
func (c *Controller) PreviewRewind(turn int, mode Mode, options ...MoveOption) (rewind.Result, error) {
	return c.Plan(rewind.Request{Kind: store.OpRewind, Turn: turn, Scope: mode}, options...)
}

// UndoRewind takes the newest rewind, redo or compaction back. rewind.ErrNothingToUndo.
func (c *Controller) UndoRewind(options ...MoveOption) (rewind.Result, error) {
	return c.move(rewind.Request{Kind: store.OpUndo}, options)
}

// RedoRewind takes the newest undo back. rewind.ErrNothingToRedo.
func (c *Controller) RedoRewind(options ...MoveOption) (rewind.Result, error) {
	return c.move(rewind.Request{Kind: store.OpRedo}, options)
}

// Fork makes a session that begins with the messages before a turn, and goes on with it. Files
// stay as they are unless WithCode is given. It returns the new session's id; ErrInMemory.
func (c *Controller) Fork(turn int, options ...MoveOption) (branchID store.SessionID, err error) {
	if c.memory {
		return "", ErrInMemory
	}
	res, err := c.move(rewind.Request{Kind: store.OpFork, Turn: turn}, options)
	return res.Branch, err
}

// Switch takes files and conversation to where another session stands; ref is an id, a beginning
// of one or a name, or "-" for the session before.
func (c *Controller) Switch(ref string, options ...MoveOption) (rewind.Result, error) {
	var s store.Session
	err := c.capture.Store.View(context.Background(), func(tx *store.Tx) (err error) {
		if ref == "-" {
			s, err = tx.Previous()
		} else {
			s, err = tx.FindSession(ref)
		}
		if err == nil {
			_, err = conversationOf(tx, s.Head)
		}
		return err
	})
	if err != nil {
		return rewind.Result{}, err
	}
	if s.Current {
		if err := c.enter(nil); err != nil {
			return rewind.Result{}, err
		}
		defer c.leave()
		c.stand(s.ID)
		return rewind.Result{Kind: store.OpSwitch, Session: s.ID, Turn: -1, Messages: s.Messages}, nil
	}
	return c.move(rewind.Request{Kind: store.OpSwitch, Session: s.ID}, options)
}

// Plan says what a move would do and changes nothing. A Request without a Session is about the
// Controller's. With rewind.ErrConflict the Result lists the conflicts.
func (c *Controller) Plan(r rewind.Request, options ...MoveOption) (rewind.Result, error) {
	plan, err := c.plan(context.Background(), r, options)
	if plan == nil {
		return rewind.Result{}, err
	}
	return plan.Result(), err
}

func (c *Controller) plan(ctx context.Context, r rewind.Request, options []MoveOption) (*rewind.Plan, error) {
	for _, o := range options {
		o(&r)
	}
	if r.Session == "" {
		r.Session = c.Session()
	}
	if r.Session == "" {
		return nil, fmt.Errorf("the session has no turns yet: %w", noneOf(r.Kind))
	}
	return c.engine.Plan(ctx, r)
}

// noneOf is what a move finds where nothing is recorded.
func noneOf(k store.OpKind) error {
	switch k {
	case store.OpUndo:
		return rewind.ErrNothingToUndo
	case store.OpRedo:
		return rewind.ErrNothingToRedo
	default:
		return store.ErrNoTurn
	}
}

func (c *Controller) move(r rewind.Request, options []MoveOption) (rewind.Result, error) {
	if err := c.enter(nil); err != nil {
		return rewind.Result{}, err
	}
	defer c.leave()
	ctx := context.Background()
	plan, err := c.plan(ctx, r, options)
	if err != nil {
		if plan != nil && errors.Is(err, rewind.ErrConflict) {
			return plan.Result(), err
		}
		return rewind.Result{}, err
	}
	res, err := c.engine.Apply(ctx, plan)
	if err != nil {
		return rewind.Result{}, err
	}
	switch r.Kind {
	case store.OpFork:
		c.stand(res.Branch)
	case store.OpSwitch:
		c.stand(res.Session)
	default:
		c.stand(c.Session())
	}
	c.events.send(Event{Kind: SessionMoved, Session: c.Session(), Turn: res.Turn, Move: res})
	return res, nil
}

// stand goes on with a session, whose size in tokens has to be found out anew.
func (c *Controller) stand(id store.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.size = id, 0
}
