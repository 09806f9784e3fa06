package main

import (
	"encoding/json"

	"reasonix/agent"
	"reasonix/internal/llm"
	"reasonix/internal/tool"
	"reasonix/store"
)

// runJSON is a line of run --json. Event decides which members are there.
type runJSON struct {
	Event   string          `json:"event"`
	Session store.SessionID `json:"session"`
	Turn    int             `json:"turn"`
	Prompt  string          `json:"prompt,omitempty"`
	Text    string          `json:"text,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
	ID      string          `json:"id,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Kind    string          `json:"kind,omitempty"`
	Args    string          `json:"arguments,omitempty"`
	Title   string          `json:"title,omitempty"`
	Diff    string          `json:"diff,omitempty"`
	Command string          `json:"command,omitempty"`
	Failed  *bool           `json:"failed,omitempty"`
	Usage   *usageJSON      `json:"usage,omitempty"`
}

// usageJSON is what a turn cost, in tokens.
type usageJSON struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	CacheHit   int64 `json:"cache_hit_tokens"`
	CacheMiss  int64 `json:"cache_miss_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
}

// newRunJSON is the line for an event; nil for one that has none: the end has its own.
func newRunJSON(e agent.Event) *runJSON {
	line := &runJSON{Event: string(e.Kind), Session: e.Session, Turn: e.Turn}
	switch e.Kind {
	case agent.TurnStarted:
		line.Prompt = e.Text
	case agent.Reasoning, agent.Text, agent.Noticed, agent.Compacted:
		line.Text = e.Text
	case agent.Discarded:
		line.Text = e.Err.Error() + "; " + e.Text
	case agent.Messaged:
		line.Message = e.Message
	case agent.ToolStarted, agent.ToolEnded:
		line.tool(e)
	case agent.UsageTold:
		line.Usage = newUsageJSON(e.Usage)
	default:
		return nil
	}
	return line
}

func (r *runJSON) tool(e agent.Event) {
	t := e.Tool
	r.ID, r.Tool, r.Kind = t.ID, t.Name, kindName(t.Kind)
	if e.Kind == agent.ToolEnded {
		r.Text, r.Failed = e.Text, &t.Failed
		return
	}
	r.Args, r.Title, r.Diff, r.Command = t.Args, t.Preview.Title, t.Preview.Diff, t.Preview.Command
}

func kindName(k tool.Kind) string {
	switch k {
	case tool.Read:
		return "read"
	case tool.Edit:
		return "edit"
	case tool.Exec:
		return "exec"
	default:
		return "unknown"
	}
}

func newUsageJSON(u llm.Usage) *usageJSON {
	n := usageJSON(u)
	return &n
}
