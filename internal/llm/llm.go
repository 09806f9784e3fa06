// Package llm talks to a model over HTTP: chat completions, streamed as server-sent events.
//
// Messages are raw JSON. What a model sent is assembled once, kept by the caller, and sent back
// as the same bytes: providers require that of reasoning, and their caches are keyed by it. So
// nothing here ever re-encodes a message.
package llm

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// What is used where nothing is set.
const (
	DefaultBaseURL = "https://api.deepseek.com"
	DefaultModel   = "deepseek-flash"
)

// The reasons for which a model stops.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
	FinishFilter    = "content_filter"
	// FinishNoResource is a reply that the server broke off; Complete asks again.
	FinishNoResource = "insufficient_system_resource"
)

// Options say whom to talk to and how patiently. The zero value talks to DeepSeek.
type Options struct {
	BaseURL string // without /chat/completions; "" means DefaultBaseURL
	Model   string // "" means DefaultModel
	// Key is the secret of the account. It goes into one header and nowhere else: errors that
	// quote it are cut.
	Key string
	// Idle is how long a server may send nothing, not even a sign of life; 0 means 2 minutes.
	Idle time.Duration
	// Begin is how long a server may take to begin an answer; 0 means 10 minutes, since it queues.
	Begin time.Duration
	// Retries is how often a request is sent again after a passing failure; 0 means 5, below 0
	// never.
	Retries int
	// Backoff is the wait before the first retry, in the middle; each next one is twice as long,
	// up to a minute. 0 means 1 second.
	Backoff time.Duration
	// HTTP makes the requests; nil means a client without a total time limit.
	HTTP *http.Client
	// Wait sleeps between retries; nil means a timer that ctx ends.
	Wait func(ctx context.Context, d time.Duration) error
	// Jitter gives a number from 0 up to, not including, 1; nil means a random one.
	Jitter func() float64
}

func (o Options) withDefaults() Options {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/chat/completions")
	if o.Model == "" {
		o.Model = DefaultModel
	}
	if o.Idle == 0 {
		o.Idle = 2 * time.Minute
	}
	if o.Begin == 0 {
		o.Begin = 10 * time.Minute
	}
	if o.Retries == 0 {
		o.Retries = 5
	}
	if o.Backoff == 0 {
		o.Backoff = time.Second
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

// Request is what a model is asked.
type Request struct {
	Messages []json.RawMessage // sent as they are
	Tools    json.RawMessage   // a JSON array as the protocol has it; nil means none
	// NoTools forbids the model to call the tools that it is shown. Showing them all the same
	// keeps the beginning of the request, and so the server's cache, as it was.
	NoTools   bool
	MaxTokens int    // of the answer; 0 leaves it to the server
	Thinking  string // "enabled" or "disabled"; "" leaves it to the server
	Effort    string // "low", "high" or "max"; "" leaves it to the server
}

// ToolCall is a call that a model asks for.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // should be a JSON object; models err
}

// Reply is a whole answer.
type Reply struct {
	// Message is the assistant message to keep, and to send back byte for byte.
	Message   json.RawMessage
	Content   string
	Reasoning string
	ToolCalls []ToolCall
	Finish    string // one of the Finish… constants, or what else the server said
	Usage     Usage
}

// Usage is what a request cost, in tokens.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	CacheHit   int64 `json:"prompt_cache_hit_tokens"`
	CacheMiss  int64 `json:"prompt_cache_miss_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
}

// Add adds the cost of another request.
func (u *Usage) Add(v Usage) {
	u.Prompt += v.Prompt
	u.Completion += v.Completion
	u.Total += v.Total
	u.CacheHit += v.CacheHit
	u.CacheMiss += v.CacheMiss
	u.Reasoning += v.Reasoning
}

// Delta is a piece of an answer on its way.
type Delta struct {
	Content   string
	Reasoning string
	Tool      string // a call of this tool has begun
	// Again says that all pieces so far are void, since the request is sent once more in Wait.
	Again *Error
	Wait  time.Duration
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
