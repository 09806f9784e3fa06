package serve

import (
	"context"
	"errors"
	"time"

	"reasonix/internal/report"
	"reasonix/store"
)

// watcher turns what changes in the store, by whatever process, into events. Looking whether
// there was any commit costs next to nothing; only then the sessions are read and compared with
// what they were.
type watcher struct {
	store *store.Store
	hub   *hub
	poked chan struct{}
}

func newWatcher(s *store.Store, h *hub) *watcher {
	return &watcher{store: s, hub: h, poked: make(chan struct{}, 1)}
}

// poke makes the watcher look at once.
func (w *watcher) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// run watches until ctx is done. An error of the store is told once, and tried again.
func (w *watcher) run(ctx context.Context, every time.Duration, log func(string, ...any)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for ctx.Err() == nil {
		err := w.watch(ctx, tick.C)
		if err != nil && ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			log("watch the store: %v", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// watch looks at each tick until an error.
func (w *watcher) watch(ctx context.Context, tick <-chan time.Time) error {
	changes, err := w.store.Watch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }() // it only reads
	var was *seen
	for {
		if changed, err := changes.Changed(ctx); err != nil {
			return err
		} else if changed || was == nil {
			if was, err = w.look(ctx, was); err != nil {
				return err
			}
		}
		select {
		case <-tick:
		case <-w.poked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// seen is what the watcher saw when it last looked.
type seen struct {
	sessions map[store.SessionID]store.Session
	open     map[store.SessionID]store.Turn // turns that run
	calls    map[callKey]store.Running
	newest   store.NodeID // of all turns: what is newer has begun since
	op       store.OpID   // operations up to this one were told
	waiting  map[store.OpID]bool
}

type callKey struct {
	session store.SessionID
	node    store.NodeID
	key     string
	began   int64
}

// look reads what there is now, publishes how it differs from was, and returns it. Without a was
// nothing is published.
func (w *watcher) look(ctx context.Context, was *seen) (*seen, error) {
	now := &seen{
		sessions: map[store.SessionID]store.Session{}, open: map[store.SessionID]store.Turn{},
		calls: map[callKey]store.Running{}, waiting: map[store.OpID]bool{},
	}
	var events []told
	err := w.store.View(ctx, func(tx *store.Tx) (err error) {
		events, err = now.read(tx, was)
		return err
	})
	if err != nil {
		return was, err
	}
	if was != nil && len(events) == 0 {
		events = []told{{"changed", struct{}{}}}
	}
	if was != nil {
		for _, e := range events {
			w.hub.publish(e.name, e.data)
		}
	}
	return now, nil
}

// told is an event that is about to be published.
type told struct {
	name string
	data any
}

// read fills in what is there now and gives the events that lead there from was, in an order in
// which a person would tell them.
func (n *seen) read(tx *store.Tx, was *seen) ([]told, error) {
	first := was == nil
	if first {
		was = &seen{}
	}
	n.newest = was.newest
	all, err := tx.Sessions()
	if err != nil {
		return nil, err
	}
	moves, err := n.operations(tx, was, all)
	if err != nil {
		return nil, err
	}
	var events []told
	for _, s := range all {
		n.sessions[s.ID] = s
		old, known := was.sessions[s.ID]
		if known && same(old, s) {
			if t, ok := was.open[s.ID]; ok {
				n.open[s.ID] = t
			}
			continue
		}
		more, err := n.turns(tx, was, old, s)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	calls, err := n.running(tx, was)
	if err != nil {
		return nil, err
	}
	return append(append(moves, events...), calls...), nil
}

func same(a, b store.Session) bool {
	return a.Head == b.Head && a.OpenTurn == b.OpenTurn && a.Turns == b.Turns && a.Messages == b.Messages && a.Updated.Equal(b.Updated)
}

// movedJSON is the data of an event about an operation: the operation and where its session then
// stands.
type movedJSON struct {
	report.Operation
	Turns    int             `json:"turns"`
	Messages int64           `json:"messages"`
	Branch   store.SessionID `json:"branchId,omitempty"` // of a fork: the new session; the other one is its parent
}

// operations are the events of what was applied since.
func (n *seen) operations(tx *store.Tx, was *seen, all []store.Session) (events []told, err error) {
	n.op = was.op
	low := was.op
	for id := range was.waiting {
		low = min(low, id-1)
	}
	ops, err := tx.OperationsAfter(low)
	if err != nil {
		return nil, err
	}
	taken := map[store.SessionID]bool{} // forks that were told
	for _, o := range ops {
		known := o.ID <= was.op && !was.waiting[o.ID]
		n.op = max(n.op, o.ID)
		if o.State == store.Applying {
			n.waiting[o.ID] = true
		}
		if known || o.State != store.Applied {
			continue
		}
		data := movedJSON{Operation: report.NewOperation(o)}
		for _, s := range all {
			if s.ID == o.Session {
				data.Turns, data.Messages = s.Turns, s.Messages
			}
		}
		if o.Kind == store.OpFork {
			data.Branch = branchOf(o, all, was, taken)
			taken[data.Branch] = true
		}
		events = append(events, told{nameOf(o.Kind), data})
	}
	return events, nil
}

// branchOf finds the session that a fork made: the oldest of the new ones that fit.
func branchOf(o store.Operation, all []store.Session, was *seen, taken map[store.SessionID]bool) store.SessionID {
	var found store.Session
	for _, s := range all {
		_, old := was.sessions[s.ID]
		if old || taken[s.ID] || s.Parent != o.Session || s.ForkTurn != o.Turn {
			continue
		}
		if found.ID == "" || s.Created.Before(found.Created) {
			found = s
		}
	}
	return found.ID
}

// nameOf is the event of an operation.
func nameOf(k store.OpKind) string {
	switch k {
	case store.OpRewind, store.OpUndo, store.OpRedo:
		return "rewound"
	case store.OpFork:
		return "forked"
	case store.OpSwitch:
		return "switched"
	case store.OpCompact, store.OpImport, store.OpGC, store.OpDelete:
	}
	return "changed"
}

// turnEvent is the data of the events about turns.
type turnEvent struct {
	Session store.SessionID `json:"session"`
	Turn    int             `json:"turn"`
	Prompt  string          `json:"prompt"`
	Status  string          `json:"status"` // open when it began
}

// messageEvent says that a conversation grew.
type messageEvent struct {
	Session  store.SessionID `json:"session"`
	From     int64           `json:"from"`     // index of the first new message
	Messages int64           `json:"messages"` // of the whole conversation
}

// maxTold is how many turns of one session are told one by one; a session that grew by more was
// imported, or the watcher was asleep.
const maxTold = 50

// turns are the events of one session that changed.
func (n *seen) turns(tx *store.Tx, was *seen, old, s store.Session) (events []told, err error) {
	last, err := tx.Turns(s.Head, -1, maxTold)
	if err != nil {
		return nil, err
	}
	var ended []told
	ran, running := was.open[s.ID]
	for i := len(last) - 1; i >= 0; i-- {
		t := last[i]
		n.newest = max(n.newest, t.Node.ID)
		data := turnEvent{Session: s.ID, Turn: t.Number(), Prompt: t.Prompt, Status: t.Status.String()}
		isNew := t.Node.ID > was.newest
		if isNew {
			begun := data
			begun.Status = store.TurnOpen.String()
			events = append(events, told{"turn_started", begun})
		}
		if t.Status == store.TurnOpen {
			n.open[s.ID] = t
		} else if isNew || running && t.Node.ID == ran.Node.ID {
			ended = append(ended, told{"turn_ended", data})
		}
		running = running && t.Node.ID != ran.Node.ID
	}
	if running { // it was rewound away
		ended = append(ended, told{"turn_ended", turnEvent{s.ID, ran.Number(), ran.Prompt, store.TurnInterrupted.String()}})
	}
	if s.Messages > old.Messages && old.ID != "" {
		events = append(events, told{"message", messageEvent{s.ID, old.Messages, s.Messages}})
	}
	return append(events, ended...), nil
}

// toolEvent says that a tool call began or ended.
type toolEvent struct {
	Session store.SessionID `json:"session"`
	Call    string          `json:"call"`
	Tool    string          `json:"tool"`
	Kind    string          `json:"kind"`  // edit or exec
	State   string          `json:"state"` // started or ended
	Paths   []string        `json:"paths"`
}

// running are the events of tool calls.
func (n *seen) running(tx *store.Tx, was *seen) (events []told, err error) {
	all, err := tx.Running()
	if err != nil && !errors.Is(err, store.ErrNoSession) {
		return nil, err
	}
	for _, c := range all {
		if c.Ended {
			continue
		}
		k := callKey{c.Session, c.Node, c.Key, c.Started.UnixNano()}
		n.calls[k] = c
		if _, known := was.calls[k]; !known {
			events = append(events, told{"tool", newToolEvent(c, "started")})
		}
	}
	for k, c := range was.calls {
		if _, still := n.calls[k]; !still {
			events = append(events, told{"tool", newToolEvent(c, "ended")})
		}
	}
	return events, nil
}

func newToolEvent(c store.Running, state string) toolEvent {
	out := toolEvent{Session: c.Session, Call: c.Key, Tool: c.Tool, Kind: "edit", State: state, Paths: []string{}}
	if c.Kind == store.ExecCall {
		out.Kind = "exec"
	}
	for _, p := range c.Paths[:min(len(c.Paths), maxFiles)] {
		out.Paths = append(out.Paths, report.Text(p))
	}
	return out
}
