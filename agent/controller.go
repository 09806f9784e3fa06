package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"reasonix/internal/capture"
	"reasonix/internal/llm"
	"reasonix/internal/tool"
	"reasonix/rewind"
	"reasonix/store"
)

// Source is what sessions of a Controller have as theirs.
const Source = "reasonix"

var (
	// ErrRunning is returned, as one that is rewind.ErrBusy too, for what has to wait until a turn
	// has ended.
	ErrRunning = fmt.Errorf("the agent is at work: %w", rewind.ErrBusy)
	// ErrInMemory is returned by Fork where nothing of the session outlives the Controller.
	ErrInMemory = errors.New("a session in memory cannot be forked: give the Controller a store")
	// ErrNoModel is returned by Submit, Compact and Summarize without Options.Model.
	ErrNoModel = errors.New("no model is configured")
	// ErrForeign is returned for a session whose messages are not those of a chat: another agent
	// recorded them in its own form.
	ErrForeign = errors.New("another agent recorded this session in a form of its own")
	// ErrBudget is returned by Submit when the turn used up its steps or tokens. It can be gone on
	// with by another prompt.
	ErrBudget = errors.New("the turn used up its budget")
	// ErrClosed is returned after Close, and by a turn that was closed from outside.
	ErrClosed = errors.New("closed")
)

// Model answers requests; Connect and Script make one.
type Model interface {
	Complete(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error)
}

// Options describe an agent and where it works.
type Options struct {
	// Dir is the workspace; "" means the current folder.
	Dir string
	// Store is the file that keeps the history, UserStore for the one that the reasonix command
	// uses for Dir, or "" for a history that ends with the Controller.
	Store string
	// Capture and Engine, when set, are an open workspace, in place of Dir and Store. The caller
	// closes it after the Controller.
	Capture *capture.Capturer
	Engine  *rewind.Engine

	// Session is the id of the one to go on with. "" means the workspace's current one when an agent
	// of this program feeds it, or it is a fork, and its messages are those of a chat; else a new
	// one, made by the first turn. So does New.
	Session store.SessionID
	New     bool

	Model Model
	// Tools are what the model may call; nil means those of this program.
	Tools []tool.Tool
	// Policy says what is done without asking Approve; "" means Ask.
	Policy Policy
	// Approve is asked what the Policy does not allow; nil refuses it. It is called by the
	// goroutine of the turn, and should return when ctx ends.
	Approve func(ctx context.Context, a Approval) (Decision, error)

	System   string // the system prompt of new sessions; "" means this program's
	Thinking string // "enabled" or "disabled"; "" leaves it to the server
	Effort   string // "low", "high" or "max"; "" leaves it to the server
	// MaxSteps is how many answers of the model one turn may take; 0 means 200.
	MaxSteps int
	// MaxTokens is how many tokens one turn may use, those that a cache holds not counted; 0 means
	// no bound.
	MaxTokens int64
	// Context is how many tokens a conversation may have; 0 means 1,000,000. At four fifths of it
	// the turns before the present one are compacted.
	Context int64

	// NewKey makes the keys of turns and sessions, each another one; nil means random ones.
	NewKey func() string
}

func (o Options) withDefaults() Options {
	if o.Policy == "" {
		o.Policy = Ask
	}
	if o.System == "" {
		o.System = System
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = 200
	}
	if o.Context == 0 {
		o.Context = 1_000_000
	}
	if o.NewKey == nil {
		o.NewKey = rand.Text
	}
	return o
}

// Change is an edit that is about to be made.
type Change struct {
	Session store.SessionID
	Turn    int
	Tool    string
	Paths   []string // relative to the workspace, with '/'
	Diff    string   // unified, as far as the tool can tell
}

// Controller is a coding agent over one workspace: it runs turns, every change of which is
// recorded before it is made, and moves between them. It is safe for concurrent use; one turn or
// move happens at a time, and others are refused meanwhile with ErrRunning. After a crash in any
// of its methods New finds everything consistent: a turn that ran is then interrupted.
type Controller struct {
	o        Options
	capture  *capture.Capturer
	engine   *rewind.Engine
	recorder *Recorder
	tools    map[string]tool.Tool
	schemas  []byte // the tools as the model is told of them, always the same bytes
	memory   bool
	shut     func() error
	events   stream

	mu      sync.Mutex // guards what follows
	session store.SessionID
	policy  Policy
	allowed map[tool.Kind]bool // what a person allowed for good
	hook    func(Change)
	busy    bool
	closed  bool
	cancel  context.CancelCauseFunc // of the turn that runs
	idle    chan struct{}           // closed when nothing runs
	size    int64                   // tokens of the conversation when a model last told
}

// New opens a workspace for an agent. What a crash left behind is put right first: an operation
// is taken back, a turn is closed as interrupted. The caller closes the Controller.
func New(o Options) (*Controller, error) {
	o = o.withDefaults()
	if err := o.Policy.check(); err != nil {
		return nil, err
	}
	c := &Controller{o: o, policy: o.Policy, allowed: map[tool.Kind]bool{}, idle: make(chan struct{})}
	close(c.idle)
	ctx := context.Background()
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	err := c.begin(ctx)
	if err != nil {
		return nil, errors.Join(err, c.shut())
	}
	return c, nil
}

func (c *Controller) begin(ctx context.Context) error {
	c.recorder = NewRecorder(c.capture)
	if err := c.prepareTools(); err != nil {
		return err
	}
	if _, err := c.engine.Recover(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if _, err := Settle(ctx, c.capture); err != nil {
		return err
	}
	return c.choose(ctx)
}

// choose picks the session to go on with.
func (c *Controller) choose(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.New && c.session == "" {
		return nil
	}
	return c.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Current()
		if c.o.Session != "" {
			s, err = tx.Session(c.o.Session)
		} else if errors.Is(err, store.ErrNoSession) {
			return nil
		}
		if err != nil {
			return err
		}
		if c.o.Session == "" && s.Source != Source && s.Source != "" {
			return nil // it is fed by another agent
		}
		_, err = conversationOf(tx, s.Head)
		if errors.Is(err, ErrForeign) && c.o.Session == "" {
			return nil
		}
		c.session = s.ID
		return err
	})
}

// Follow goes on with the workspace's current session, when another program switched or forked
// meanwhile and this one may feed it (see Options.Session). ErrRunning.
func (c *Controller) Follow() error {
	if err := c.enter(nil); err != nil {
		return err
	}
	defer c.leave()
	was := c.Session()
	if err := c.choose(context.Background()); err != nil || c.Session() == was {
		return err
	}
	c.stand(c.Session())
	return nil
}

// Session is the id of the session that the next turn goes on with; "" before the first turn of
// a new one.
func (c *Controller) Session() store.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Store is where the history is kept, for those who read it.
func (c *Controller) Store() *store.Store { return c.capture.Store }

// SetPreEditHook sets what is called before each edit of a tool, after it was approved and
// before its states are recorded; nil takes it away. It is called by the goroutine of the turn.
func (c *Controller) SetPreEditHook(hook func(Change)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

// SetPolicy changes what is done without asking, from the next tool call on.
func (c *Controller) SetPolicy(p Policy) error {
	if err := p.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy = p
	clear(c.allowed)
	return nil
}

// Policy is what is done without asking.
func (c *Controller) Policy() Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy
}

// Running reports whether a turn or a move is at work.
func (c *Controller) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy
}

// Cancel stops the turn that runs and reports whether there was one. The turn is interrupted
// then, its conversation consistent; Wait waits for that.
func (c *Controller) Cancel() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel == nil {
		return false
	}
	c.cancel(context.Canceled)
	return true
}

// Wait waits until nothing runs, or ctx ends.
func (c *Controller) Wait(ctx context.Context) error {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close cancels what runs, waits for it, and closes what New opened.
func (c *Controller) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.Cancel()
	err := c.Wait(context.Background())
	return errors.Join(err, c.shut())
}

// enter begins something that nothing else may run beside; the caller calls leave.
func (c *Controller) enter(cancel context.CancelCauseFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case c.busy:
		return ErrRunning
	}
	c.busy, c.cancel, c.idle = true, cancel, make(chan struct{})
	return nil
}

func (c *Controller) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.cancel = false, nil
	close(c.idle)
}

// lockTurn marks the session as driven by this process.
func (c *Controller) lockTurn(ctx context.Context, id store.SessionID) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err = c.capture.LockTurn(ctx, id)
	if errors.Is(err, capture.ErrLocked) {
		return nil, fmt.Errorf("%w: session %s in another process", ErrRunning, id)
	}
	return unlock, err
}
