package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// chunk is one event of a stream, or, with Message in place of Delta, a whole answer.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *wireUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   delta           `json:"delta"`
	Message json.RawMessage `json:"message"`
	Finish  *string         `json:"finish_reason"`
}

// delta has its texts raw, see unquote.
type delta struct {
	Content   json.RawMessage `json:"content"`
	Reasoning json.RawMessage `json:"reasoning_content"`
	ToolCalls []toolDelta     `json:"tool_calls"`
}

type toolDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type wireUsage struct {
	Usage
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (w wireUsage) usage() Usage {
	u := w.Usage
	u.Reasoning = max(u.Reasoning, w.CompletionDetails.Reasoning)
	if u.CacheHit == 0 && u.CacheMiss == 0 {
		u.CacheHit = w.PromptDetails.Cached
		u.CacheMiss = max(u.Prompt-u.CacheHit, 0)
	}
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	return u
}

// maxCalls bounds the calls of one answer: an index comes from outside.
const maxCalls = 256

// assembly puts an answer together from its pieces.
type assembly struct {
	content, reasoning       []byte
	hasContent, hasReasoning bool
	calls                    []call
	finish                   string
	usage                    Usage
	emit                     func(Delta)
}

type call struct {
	id, name string
	args     []byte
	seen     bool
}

func (a *assembly) add(c chunk) error {
	if c.Usage != nil {
		a.usage = c.Usage.usage()
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // only one was asked for
		}
		if err := a.delta(ch.Delta); err != nil {
			return err
		}
		if ch.Finish != nil && *ch.Finish != "" {
			a.finish = *ch.Finish
		}
	}
	return nil
}

func (a *assembly) delta(d delta) error {
	if present(d.Reasoning) {
		part := unquote(d.Reasoning)
		a.reasoning, a.hasReasoning = append(a.reasoning, part...), true
		a.tell(Delta{Reasoning: string(part)}, len(part) > 0)
	}
	if present(d.Content) {
		part := unquote(d.Content)
		a.content, a.hasContent = append(a.content, part...), true
		a.tell(Delta{Content: string(part)}, len(part) > 0)
	}
	for _, t := range d.ToolCalls {
		if err := a.tool(t); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) tool(t toolDelta) error {
	i := max(len(a.calls)-1, 0) // a server without indexes goes on with the last one
	switch {
	case t.Index != nil:
		i = *t.Index
	case t.ID != "":
		i = len(a.calls)
	}
	if i < 0 || i >= maxCalls {
		return fmt.Errorf("a tool call with index %d", i)
	}
	for len(a.calls) <= i {
		a.calls = append(a.calls, call{})
	}
	c := &a.calls[i]
	if c.id == "" {
		c.id = t.ID
	}
	first := !c.seen && t.Function.Name != ""
	c.seen = c.seen || t.Function.Name != ""
	c.name += t.Function.Name
	c.args = append(c.args, unquote(t.Function.Arguments)...)
	a.tell(Delta{Tool: c.name}, first)
	return nil
}

func (a *assembly) tell(d Delta, worth bool) {
	if worth && a.emit != nil {
		a.emit(d)
	}
}

// message is an assistant message as it goes over the wire. The order of its members is ours,
// and never changes within a conversation.
type message struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Reasoning *string    `json:"reasoning_content,omitempty"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// reply is the whole answer.
func (a *assembly) reply() (Reply, error) {
	r := Reply{Content: whole(a.content), Reasoning: whole(a.reasoning), Finish: a.finish, Usage: a.usage}
	m := message{Role: "assistant", Content: r.Content}
	if a.hasReasoning {
		m.Reasoning = &r.Reasoning
	}
	for i, c := range a.calls {
		if c.id == "" {
			c.id = fmt.Sprintf("call_%d", i)
		}
		t := ToolCall{ID: c.id, Name: c.name, Arguments: whole(c.args)}
		r.ToolCalls = append(r.ToolCalls, t)
		m.ToolCalls = append(m.ToolCalls, wireCall{ID: t.ID, Type: "function", Function: wireFunction{t.Name, t.Arguments}})
	}
	var err error
	r.Message, err = Encode(m)
	return r, err
}

// wholeReply reads an answer that came in one piece. Its message is kept as it is.
func wholeReply(c chunk) (Reply, error) {
	if len(c.Choices) == 0 || len(c.Choices[0].Message) == 0 {
		return Reply{}, errors.New("an answer without a message")
	}
	var m struct {
		Content   string     `json:"content"`
		Reasoning string     `json:"reasoning_content"`
		ToolCalls []wireCall `json:"tool_calls"`
	}
	raw := c.Choices[0].Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return Reply{}, err
	}
	r := Reply{Message: bytes.Clone(raw), Content: m.Content, Reasoning: m.Reasoning}
	if c.Choices[0].Finish != nil {
		r.Finish = *c.Choices[0].Finish
	}
	if c.Usage != nil {
		r.Usage = c.Usage.usage()
	}
	for _, t := range m.ToolCalls {
		r.ToolCalls = append(r.ToolCalls, ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
	}
	return r, nil
}

// Encode is a value as JSON without escapes that only HTML needs, and without a newline.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }
