package fakellm

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// wire is a message as it is checked.
type wire struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning *string         `json:"reasoning_content"`
	CallID    string          `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// check says why a request is refused; "" when it is sound.
func check(r Request) string {
	switch {
	case r.Model == "":
		return "missing field: model"
	case len(r.Messages) == 0:
		return "missing field: messages"
	case !utf8.Valid(r.Body):
		return "the body is not UTF-8"
	}
	if why := checkTools(r.Tools); why != "" {
		return why
	}
	var open []string // calls that are not answered yet
	for i, raw := range r.Messages {
		var m wire
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Sprintf("messages[%d]: %v", i, err)
		}
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Sprintf("messages[%d]: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'; missing: %v", i, open)
		}
		switch m.Role {
		case "system", "user":
			if string(m.Content) == "" || string(m.Content) == "null" {
				return fmt.Sprintf("messages[%d]: missing field: content", i)
			}
		case "assistant":
			if len(m.ToolCalls) > 0 && m.Reasoning == nil && r.Thinking.Type != "disabled" {
				return "The `reasoning_content` in the thinking mode must be passed back to the API."
			}
			for _, c := range m.ToolCalls {
				if c.ID == "" || c.Type != "function" || c.Function.Name == "" || c.Function.Arguments == nil {
					return fmt.Sprintf("messages[%d]: malformed tool call", i)
				}
				open = append(open, c.ID)
			}
			if len(m.ToolCalls) == 0 && (m.Content == nil || string(m.Content) == "null") {
				return fmt.Sprintf("messages[%d]: missing field: content", i)
			}
		case "tool":
			at := slices.Index(open, m.CallID)
			if at < 0 {
				return fmt.Sprintf("messages[%d]: the tool message answers no call: %q", i, m.CallID)
			}
			open = slices.Delete(open, at, at+1)
		default:
			return fmt.Sprintf("messages[%d]: unknown role %q", i, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("the last tool calls are not answered: %v", open)
	}
	return ""
}

func checkTools(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var all []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return "tools: " + err.Error()
	}
	if len(all) > 128 {
		return "tools: more than 128"
	}
	for i, t := range all {
		var schema map[string]any
		if t.Type != "function" || t.Function.Name == "" || json.Unmarshal(t.Function.Parameters, &schema) != nil {
			return fmt.Sprintf("tools[%d]: malformed", i)
		}
	}
	return ""
}
