package fakellm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Reply is one scripted answer. docs/agent.md describes the file form: one of these as JSON a
// line.
type Reply struct {
	// When makes this a reply for a request whose newest message holds the text; replies without
	// it are given in order.
	When      string `json:"when,omitempty"`
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	ToolCalls []Call `json:"tool_calls,omitempty"`
	// Finish is the finish_reason; "" means tool_calls or stop, as it fits.
	Finish string `json:"finish,omitempty"`
	// Usage replaces the usage that is computed from the messages.
	Usage *Usage `json:"usage,omitempty"`

	// Error answers with an HTTP status of an error instead.
	Error *Failure `json:"error,omitempty"`
	// Cut breaks the connection after so many events; Stall goes silent after so many.
	Cut   int `json:"cut,omitempty"`
	Stall int `json:"stall,omitempty"`
	// Whole answers in one piece, after blank lines, whatever was asked for.
	Whole bool `json:"whole,omitempty"`
	// Garbage is sent as an event in the middle.
	Garbage string `json:"garbage,omitempty"`
	// SplitBytes splits texts within characters, as some servers do.
	SplitBytes bool `json:"split_bytes,omitempty"`
	// NoIDs leaves the ids of tool calls out.
	NoIDs bool `json:"no_ids,omitempty"`
}

// Call is a tool call of a reply.
type Call struct {
	ID   string `json:"id,omitempty"` // "" makes one up that no other call has
	Name string `json:"name"`
	// Arguments are a JSON object, or a string that is sent as it is, which need be no JSON.
	Arguments json.RawMessage `json:"arguments"`
}

// Failure is an error that a server answers with.
type Failure struct {
	Status     int    `json:"status"`
	Message    string `json:"message,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds
}

// Usage is what a reply claims to have cost.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
}

// ErrScript is returned for a script that cannot be used.
var ErrScript = errors.New("invalid script")

// Load reads a script.
func Load(file string) ([]Reply, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	all, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// Parse reads the text of a script: one reply as a JSON object a line. Empty lines, and lines
// that begin with #, are passed over. Errors are ErrScript with the number of the line.
func Parse(text []byte) ([]Reply, error) {
	var all []Reply
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		var r Reply
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrScript, number, err)
		}
		if d.More() {
			return nil, fmt.Errorf("%w: line %d: more than one object", ErrScript, number)
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrScript, number, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (r Reply) check() error {
	if r.Error != nil && (r.Error.Status < 400 || r.Error.Status > 599) {
		return fmt.Errorf("an error has a status from 400 to 599, not %d", r.Error.Status)
	}
	if r.Cut < 0 || r.Stall < 0 {
		return errors.New("cut and stall count events from 1")
	}
	for _, c := range r.ToolCalls {
		if c.Name == "" {
			return errors.New("a tool call without a name")
		}
		if _, err := c.arguments(); err != nil {
			return err
		}
	}
	return nil
}

// arguments is what goes over the wire.
func (c Call) arguments() (string, error) {
	raw := bytes.TrimSpace(c.Arguments)
	switch {
	case len(raw) == 0:
		return "{}", nil
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case raw[0] == '{':
		return string(raw), nil
	}
	return "", fmt.Errorf("the arguments of %s are no object and no string", c.Name)
}
