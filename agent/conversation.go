package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"reasonix/internal/llm"
	"reasonix/store"
)

// interruptedText answers a call that never got its result.
const interruptedText = "Interrupted: this call has no result. It may have changed something; look before you rely on it."

// conversationOf are the messages that a model would be sent of the line of head. ErrForeign.
func conversationOf(tx *store.Tx, head store.NodeID) (all []store.Message, err error) {
	for m, err := range tx.Effective(head) {
		if err != nil {
			return nil, err
		}
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
		default:
			return nil, ErrForeign
		}
		m.JSON = bytes.Clone(m.JSON)
		all = append(all, m)
	}
	return all, nil
}

// conversation reads a session and its messages.
func (c *Controller) conversation(ctx context.Context, id store.SessionID) (s store.Session, all []store.Message, err error) {
	err = c.capture.Store.View(ctx, func(tx *store.Tx) error {
		if s, err = tx.Session(id); err != nil {
			return err
		}
		all, err = conversationOf(tx, s.Head)
		return err
	})
	return s, all, err
}

// peek is what has to be known of a message.
type peek struct {
	Role      string `json:"role"`
	CallID    string `json:"tool_call_id"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// sound gives messages as a server accepts them: each call answered before the conversation goes
// on, no answer without a call. Of a conversation that this program led it changes nothing. open
// are the calls that are unanswered at its end.
func sound(messages []store.Message) (all []json.RawMessage, open []string) {
	for _, m := range messages {
		var p peek
		if m.Role == "assistant" || m.Role == "tool" {
			_ = json.Unmarshal(m.JSON, &p) // one that cannot be read calls nothing
		}
		if m.Role == "tool" {
			at := slices.Index(open, p.CallID)
			if at < 0 {
				continue
			}
			open = slices.Delete(open, at, at+1)
		} else {
			for _, id := range open {
				all = append(all, answer(id, interruptedText))
			}
			open = nil
		}
		for _, t := range p.ToolCalls {
			open = append(open, t.ID)
		}
		all = append(all, m.JSON)
	}
	return all, open
}

// say is a message of a person, or for the model in a person's place.
func say(text string) json.RawMessage { return encode(chat{Role: "user", Content: text}) }

// answer is the result of a tool call.
func answer(id, text string) json.RawMessage {
	return encode(struct {
		Role    string `json:"role"`
		CallID  string `json:"tool_call_id"`
		Content string `json:"content"`
	}{"tool", id, text})
}

type chat struct {
	Role      string  `json:"role"`
	Content   string  `json:"content"`
	Reasoning *string `json:"reasoning_content,omitempty"`
}

// encode makes a message; texts always encode.
func encode(v any) json.RawMessage {
	b, err := llm.Encode(v)
	if err != nil {
		panic(fmt.Sprintf("encode a message: %v", err))
	}
	return b
}

// estimate is about how many tokens messages are, when no model has told: a token is rarely less
// than three bytes.
func estimate(messages []json.RawMessage) (n int64) {
	for _, m := range messages {
		n += int64(len(m)) / 3
	}
	return n
}
