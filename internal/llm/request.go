package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// body is a request as it goes over the wire. Messages come last, so that two requests of one
// conversation are alike from the first byte to where the shorter one ends.
func (c *Client) body(r Request) ([]byte, error) {
	var b bytes.Buffer
	model, err := Encode(c.o.Model)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, `{"model":%s,"stream":true,"stream_options":{"include_usage":true}`, model)
	if r.Thinking != "" {
		fmt.Fprintf(&b, `,"thinking":{"type":%q}`, r.Thinking)
	}
	if r.Effort != "" {
		fmt.Fprintf(&b, `,"reasoning_effort":%q`, r.Effort)
	}
	if r.MaxTokens > 0 {
		fmt.Fprintf(&b, `,"max_tokens":%d`, r.MaxTokens)
	}
	if len(r.Tools) > 0 {
		b.WriteString(`,"tools":`)
		b.Write(r.Tools)
		if r.NoTools {
			b.WriteString(`,"tool_choice":"none"`)
		}
	}
	b.WriteString(`,"messages":[`)
	reasons := c.reasons(r)
	for i, m := range r.Messages {
		if i > 0 {
			b.WriteByte(',')
		}
		if reasons {
			m = withReasoning(m)
		}
		b.Write(m)
	}
	b.WriteString("]}")
	return b.Bytes(), nil
}

// reasons reports whether the server is one that wants its reasoning back. Others may refuse a
// member that they do not know.
func (c *Client) reasons(r Request) bool {
	switch r.Thinking {
	case "enabled":
		return true
	case "disabled":
		return false
	}
	return strings.Contains(c.o.BaseURL, "deepseek") || slices.ContainsFunc(r.Messages, func(m json.RawMessage) bool {
		return bytes.Contains(m, []byte(`"reasoning_content"`))
	})
}

// withReasoning gives an assistant message that calls tools and came from a server that does not
// reason an empty reasoning, which one that does insists on. Others stay as they are.
func withReasoning(m json.RawMessage) json.RawMessage {
	var peek struct {
		Role      string          `json:"role"`
		Reasoning json.RawMessage `json:"reasoning_content"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	if !bytes.Contains(m, []byte(`"tool_calls"`)) || json.Unmarshal(m, &peek) != nil {
		return m
	}
	if peek.Role != "assistant" || len(peek.ToolCalls) == 0 || string(peek.ToolCalls) == "null" || peek.Reasoning != nil {
		return m
	}
	end := bytes.LastIndexByte(m, '}')
	return append(append(bytes.Clone(m[:end]), `,"reasoning_content":""`...), m[end:]...)
}
