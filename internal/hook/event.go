// Package hook records what a coding agent reports in single events: one JSON object on
// standard input of one short process, mapped to calls of the recorder.
//
// An Adapter turns an agent's own JSON into an Event; everything after that is the same for
// all agents. Nothing here may disturb the agent: errors become a line in hook.log, and the
// caller decides whether they become an exit code.
package hook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"reasonix/store"
)

// ErrMalformed is returned when an event cannot be understood; nothing of it was recorded.
var ErrMalformed = errors.New("malformed event")

// Kind is what an event reports.
type Kind string

// The kinds of events, as the generic contract names them.
const (
	BeginTurn    Kind = "begin-turn"
	Message      Kind = "message"
	BeforeEdit   Kind = "before-edit"
	AfterEdit    Kind = "after-edit"
	BeforeExec   Kind = "before-exec"
	AfterExec    Kind = "after-exec"
	BeforeTool   Kind = "before-tool"
	AfterTool    Kind = "after-tool"
	EndTurn      Kind = "end-turn"
	Compact      Kind = "compact"
	SessionStart Kind = "session-start"
	SessionEnd   Kind = "session-end"
)

var kinds = []Kind{
	BeginTurn, Message, BeforeEdit, AfterEdit, BeforeExec, AfterExec, BeforeTool, AfterTool,
	EndTurn, Compact, SessionStart, SessionEnd,
}

// Event is what an agent reports, whichever agent it is.
type Event struct {
	Kind    Kind
	Source  string   // the agent's name
	Session string   // its own id of the session
	Cwd     string   // absolute; "" when it did not say
	Roots   []string // absolute workspace roots, as far as it knows them
	TurnKey string   // unique for each prompt; may be empty
	Call    string   // its own id of the tool call; may be empty
	Tool    string
	Input   json.RawMessage // of the tool: what BeforeTool and AfterTool are resolved with
	Paths   []string        // any bytes, absolute or relative to Cwd
	// Given are contents that the recorder cannot read itself, by the names in Paths; nil
	// means absent.
	Given    map[string][]byte
	Prompt   string
	Messages []json.RawMessage // appended to the conversation; of Compact: what stands for the range
	From, To int64             // the range of Compact; To below 0 means all so far
	Status   store.Status      // of EndTurn
}

// Adapter reads an agent's JSON. Unknown fields are ignored and missing ones are accepted as
// far as the event makes sense without them; its errors match ErrMalformed.
type Adapter func(raw []byte) (Event, error)

// generic is the wire form of the contract that any agent can speak.
type generic struct {
	Version  *int              `json:"v"`
	Source   string            `json:"source"`
	Event    string            `json:"event"`
	Session  string            `json:"session"`
	Cwd      name              `json:"cwd"`
	Roots    []name            `json:"roots"`
	TurnKey  string            `json:"turn_key"`
	Call     string            `json:"call"`
	Tool     string            `json:"tool"`
	Input    json.RawMessage   `json:"input"`
	Paths    []name            `json:"paths"`
	Pre      map[string]given  `json:"pre"`
	Prompt   string            `json:"prompt"`
	Messages []json.RawMessage `json:"messages"`
	Status   string            `json:"status"`
	From     *int64            `json:"from_idx"`
	To       *int64            `json:"to_idx"`
}

// given is a content that comes with the event.
type given struct {
	B64    *string `json:"b64"`
	Absent bool    `json:"absent"`
}

// Generic reads an event of the generic contract.
func Generic(raw []byte) (Event, error) {
	var g generic
	// A byte order mark is what some shells put in front of what they pipe.
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), &g); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if g.Version != nil && *g.Version != 1 {
		return Event{}, fmt.Errorf("%w: version %d is not known, only 1", ErrMalformed, *g.Version)
	}
	e := Event{
		Kind: Kind(g.Event), Source: g.Source, Session: g.Session, Cwd: string(g.Cwd), TurnKey: g.TurnKey,
		Call: g.Call, Tool: g.Tool, Input: g.Input, Prompt: g.Prompt, Messages: g.Messages, To: -1,
	}
	for _, p := range g.Paths {
		e.Paths = append(e.Paths, string(p))
	}
	for _, r := range g.Roots {
		e.Roots = append(e.Roots, string(r))
	}
	if g.From != nil {
		e.From = *g.From
	}
	if g.To != nil {
		e.To = *g.To
	}
	if err := e.give(g.Pre); err != nil {
		return Event{}, err
	}
	var ok bool
	if e.Status, ok = statuses[g.Status]; !ok {
		return Event{}, fmt.Errorf("%w: unknown status %s", ErrMalformed, short(g.Status))
	}
	return e, e.check()
}

var statuses = map[string]store.Status{
	"": store.TurnDone, "completed": store.TurnDone, "aborted": store.TurnInterrupted, "error": store.TurnFailed,
}

func (e *Event) give(pre map[string]given) error {
	for path, g := range pre {
		if e.Given == nil {
			e.Given = map[string][]byte{}
		}
		switch {
		case g.Absent == (g.B64 != nil):
			return fmt.Errorf("%w: pre of %s is neither a content nor absent", ErrMalformed, short(path))
		case g.Absent:
			e.Given[path] = nil
		default:
			b, err := base64.StdEncoding.DecodeString(*g.B64)
			if err != nil {
				return fmt.Errorf("%w: pre of %s is not base64", ErrMalformed, short(path))
			}
			if b == nil {
				b = []byte{}
			}
			e.Given[path] = b
		}
	}
	return nil
}

// check refuses what cannot be recorded, whichever adapter it came from.
func (e *Event) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	switch {
	case e.Kind == "":
		return bad("it does not say which event it is")
	case !slices.Contains(kinds, e.Kind):
		return bad("unknown event %s", short(string(e.Kind)))
	case e.Session == "":
		return bad("it does not name its session")
	case len(e.Session) > 1024:
		return bad("the session's id has more than 1024 bytes")
	case len(e.Source) > 64:
		return bad("the source has more than 64 bytes")
	case len(e.Call) > 1024, len(e.Tool) > 1024, len(e.TurnKey) > 1024:
		return bad("a call's id or tool, or a turn's key, has more than 1024 bytes")
	case e.Cwd != "" && !filepath.IsAbs(e.Cwd):
		return bad("cwd %s is not absolute", short(e.Cwd))
	case e.Kind == BeforeEdit && len(e.Paths) == 0, e.Kind == AfterEdit && len(e.Paths) == 0 && e.Call == "":
		return bad("%s names no path", e.Kind)
	case (e.Kind == BeforeTool || e.Kind == AfterTool) && e.Tool == "":
		return bad("%s names no tool", e.Kind)
	}
	for i, m := range e.Messages {
		if b := bytes.TrimSpace(m); len(b) == 0 || b[0] != '{' {
			return bad("message %d is not an object", i)
		}
	}
	for _, r := range e.Roots {
		if !filepath.IsAbs(r) {
			return bad("root %s is not absolute", short(r))
		}
	}
	return nil
}

// begins reports whether the event may be the first of its session. A conversation that is not
// there has no range to stand for.
func (e *Event) begins() bool { return e.Kind != Compact }

// short quotes a part of an event for a message, which must not repeat whole events.
func short(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Sprintf("%q", s)
}
