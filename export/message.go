package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"reasonix/store"
)

// messages writes the full line, one message a line, so that every boundary is an index into
// it, compacted or not.
func (w *writer) messages(ctx context.Context) error {
	return w.out.file(w.stage("jsonl"), func(f *bufio.Writer) error {
		return w.store.View(ctx, func(tx *store.Tx) error {
			for m, err := range tx.Messages(w.session.Head, 0, w.session.Messages) {
				if err != nil {
					return err
				}
				line, as := line(m.JSON)
				if !as {
					w.result.Converted++
				}
				if _, err := f.Write(line); err != nil {
					return err
				}
				if err := f.WriteByte('\n'); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// shape are the fields of a message whose types the form insists on.
type shape struct {
	Role             string     `json:"role"`
	Content          string     `json:"content,omitempty"`
	Images           []string   `json:"images,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`
	Name             string     `json:"name,omitempty"`
}

type toolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// line is a message as the form has it: the bytes as they came, with newlines between tokens
// folded, where they are such a message already, else what can be carried over.
func line(raw []byte) (out []byte, asItCame bool) {
	var s shape
	if err := json.Unmarshal(raw, &s); err == nil && isRole(s.Role) && !hasFunctionCalls(raw, s) {
		return fold(raw), true
	}
	out, err := json.Marshal(convert(raw))
	if err != nil { // a struct of strings always marshals
		return []byte(`{"role":"user"}`), false
	}
	return out, false
}

func isRole(role string) bool {
	return role == "system" || role == "user" || role == "assistant" || role == "tool"
}

// hasFunctionCalls reports whether tool calls are in the shape of the chat-completions
// protocol, {"function":{"name","arguments"}}: they would be read as calls without a name.
func hasFunctionCalls(raw []byte, s shape) bool {
	for _, c := range s.ToolCalls {
		if c.Name == "" {
			return bytes.Contains(raw, []byte(`"function"`))
		}
	}
	return false
}

// fold puts JSON on one line. A string holds no bare newline, so each one lies between tokens.
func fold(raw []byte) []byte {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	folded := bytes.Clone(raw)
	for i, c := range folded { // byte by byte: a string may hold bytes that are no UTF-8
		if c == '\r' || c == '\n' {
			folded[i] = ' '
		}
	}
	return folded
}

// convert carries over what the form has a place for.
func convert(raw []byte) shape {
	var m struct {
		Role       json.RawMessage   `json:"role"`
		Content    json.RawMessage   `json:"content"`
		Reasoning  json.RawMessage   `json:"reasoning_content"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
		ToolCallID json.RawMessage   `json:"tool_call_id"`
		Name       json.RawMessage   `json:"name"`
	}
	if json.Unmarshal(raw, &m) != nil {
		m.Content = raw // tool_calls that are no list: the message is kept as its text
	}
	s := shape{Role: text(m.Role), ReasoningContent: text(m.Reasoning), ToolCallID: text(m.ToolCallID), Name: text(m.Name)}
	switch s.Role {
	case "developer":
		s.Role = "system"
	case "function":
		s.Role = "tool"
	case "model":
		s.Role = "assistant"
	default:
		if !isRole(s.Role) {
			s.Role = "user"
		}
	}
	for _, c := range m.ToolCalls {
		s.ToolCalls = append(s.ToolCalls, callOf(c))
	}
	var parts []json.RawMessage
	if json.Unmarshal(m.Content, &parts) != nil {
		s.Content = text(m.Content)
		return s
	}
	var content []string
	for _, p := range parts {
		if t, ok := s.part(p); ok {
			content = append(content, t)
		}
	}
	s.Content = strings.Join(content, "\n")
	return s
}

// part takes one part of a content that is a list; ok is false when it is no text.
func (s *shape) part(raw json.RawMessage) (t string, ok bool) {
	var p struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return text(raw), true
	}
	switch p.Type {
	case "text", "input_text", "output_text":
		return p.Text, true
	case "thinking":
		s.ReasoningContent += p.Thinking
		return "", false
	case "tool_use":
		s.ToolCalls = append(s.ToolCalls, toolCall{ID: p.ID, Name: p.Name, Arguments: text(p.Input)})
		return "", false
	case "tool_result":
		s.Role, s.ToolCallID = "tool", p.ToolUseID
		var inner []json.RawMessage
		if json.Unmarshal(p.Content, &inner) != nil {
			return text(p.Content), true
		}
		var all []string
		for _, i := range inner {
			if t, ok := s.part(i); ok {
				all = append(all, t)
			}
		}
		return strings.Join(all, "\n"), true
	}
	return text(raw), true
}

func callOf(raw json.RawMessage) toolCall {
	var c struct {
		ID        json.RawMessage `json:"id"`
		Name      json.RawMessage `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Function  struct {
			Name      json.RawMessage `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return toolCall{Arguments: text(raw)}
	}
	if len(c.Function.Name) > 0 {
		c.Name, c.Arguments = c.Function.Name, c.Function.Arguments
	}
	return toolCall{ID: text(c.ID), Name: text(c.Name), Arguments: text(c.Arguments)}
}

// text is a JSON string's value; of anything else its JSON, and nothing of null.
func text(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
