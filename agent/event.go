package agent

import (
	"encoding/json"
	"slices"
	"sync"

	"reasonix/internal/llm"
	"reasonix/internal/tool"
	"reasonix/rewind"
	"reasonix/store"
)

// EventKind says what an Event tells.
type EventKind string

// The kinds of events. They are part of the documented interface.
const (
	TurnStarted  EventKind = "turn_started"
	Reasoning    EventKind = "reasoning"  // a piece of what the model thinks, in Text
	Text         EventKind = "text"       // a piece of its answer, in Text
	Discarded    EventKind = "discarded"  // the pieces since the last message are void; Err says why it is asked again
	Messaged     EventKind = "message"    // a message was added to the conversation, in Message
	ToolStarted  EventKind = "tool"       // Tool is about to run, after approval
	ToolEnded    EventKind = "tool_ended" // Tool has run, or was refused; its result is in Text
	UsageTold    EventKind = "usage"      // what the turn cost so far, in Usage
	Compacted    EventKind = "compacted"
	Noticed      EventKind = "notice" // something a person should know, in Text
	TurnEnded    EventKind = "turn_ended"
	SessionMoved EventKind = "moved" // a rewind, undo, redo, fork or switch, in Move
)

// Event is something that happened. Kind decides which other fields count.
type Event struct {
	Kind    EventKind
	Session store.SessionID
	Turn    int // -1 where it is about none
	Text    string
	Message json.RawMessage
	Tool    ToolEvent
	Usage   llm.Usage
	Status  store.Status // of TurnEnded
	Err     error        // of TurnEnded and Discarded; nil when all went well
	Move    rewind.Result
}

// ToolEvent is a tool call.
type ToolEvent struct {
	ID      string // of the model
	Name    string
	Kind    tool.Kind
	Args    string // as the model gave them
	Preview tool.Preview
	Failed  bool // of ToolEnded: it was refused, or an error
}

// stream hands events to those who listen.
type stream struct {
	mu   sync.Mutex // guards next and all
	next int
	all  []listener

	order sync.Mutex // one event at a time
}

type listener struct {
	id int
	fn func(Event)
}

// Subscribe has fn called with every event from now on, one at a time and in order, until stop.
// The agent waits for fn, so fn should only hand the event on; it must not call methods of the
// Controller that wait for a turn.
func (c *Controller) Subscribe(fn func(Event)) (stop func()) {
	s := &c.events
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	id := s.next
	s.all = append(s.all, listener{id, fn})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = slices.DeleteFunc(slices.Clone(s.all), func(l listener) bool { return l.id == id })
	}
}

func (s *stream) send(e Event) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	for _, l := range all {
		l.fn(e)
	}
}
