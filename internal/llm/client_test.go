package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
)

// talk is a client of a fake server, over real connections.
type talk struct {
	t      *testing.T
	fake   *fakellm.Server
	client *llm.Client
	waits  []time.Duration
}

func newTalk(t *testing.T, o fakellm.Options, change func(*llm.Options)) *talk {
	t.Helper()
	k := &talk{t: t, fake: fakellm.New(o)}
	srv := httptest.NewServer(k.fake)
	t.Cleanup(func() { k.fake.Close(); srv.Close() })
	opts := llm.Options{
		BaseURL: srv.URL, Key: o.Key, Retries: 2, Jitter: func() float64 { return 0.5 },
		Wait: func(ctx context.Context, d time.Duration) error { k.waits = append(k.waits, d); return ctx.Err() },
	}
	if change != nil {
		change(&opts)
	}
	var err error
	if k.client, err = llm.New(opts); err != nil {
		t.Fatal(err)
	}
	return k
}

func raw(texts ...string) (all []json.RawMessage) {
	for _, text := range texts {
		all = append(all, json.RawMessage(text))
	}
	return all
}

const hello = `{"role":"user","content":"hello <b>"}`

// TestAwkwardAnswers puts answers together that are split in every way.
func TestAwkwardAnswers(t *testing.T) {
	long := strings.Repeat("häß\U0001F600\"\\\n", 40)
	args := json.RawMessage(`{"path":"ü\u00e9\ud83d\ude00","n":1}`)
	calls := []fakellm.Call{{ID: "a", Name: "read_file", Arguments: args}, {ID: "b", Name: "bash", Arguments: json.RawMessage(`{"command":"ls -l\n"}`)}}
	for name, r := range map[string]fakellm.Reply{
		"text":             {Text: long, Reasoning: long},
		"bytes":            {Text: long, Reasoning: long, SplitBytes: true},
		"calls":            {Reasoning: "hm", ToolCalls: calls},
		"calls with bytes": {Text: "so", ToolCalls: calls, SplitBytes: true},
		"whole":            {Text: long, Reasoning: "r", ToolCalls: calls, Whole: true},
		"empty":            {},
	} {
		for chunk := 1; chunk < 12; chunk += 2 {
			k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{r}, Chunk: chunk}, nil)
			var text, thought strings.Builder
			got, err := k.client.Complete(t.Context(), llm.Request{Messages: raw(hello)}, func(d llm.Delta) {
				text.WriteString(d.Content)
				thought.WriteString(d.Reasoning)
			})
			if err != nil {
				t.Fatalf("%s/%d: %v", name, chunk, err)
			}
			if got.Content != r.Text || got.Reasoning != r.Reasoning || text.String() != r.Text || thought.String() != r.Reasoning {
				t.Errorf("%s/%d: content %q, reasoning %q", name, chunk, got.Content, got.Reasoning)
			}
			if len(got.ToolCalls) != len(r.ToolCalls) {
				t.Fatalf("%s/%d: %d calls", name, chunk, len(got.ToolCalls))
			}
			for i, c := range got.ToolCalls {
				if w := r.ToolCalls[i]; c.ID != w.ID || c.Name != w.Name || c.Arguments != string(w.Arguments) {
					t.Errorf("%s/%d: call %+v", name, chunk, c)
				}
			}
			if got.Usage.Prompt == 0 || got.Usage.Total != got.Usage.Prompt+got.Usage.Completion || got.Usage.CacheMiss != got.Usage.Prompt {
				t.Errorf("%s/%d: usage %+v", name, chunk, got.Usage)
			}
		}
	}
}

// TestReplayIsByteForByte sends an answer back: the server sees the bytes that were kept, and
// counts the conversation so far as cached.
func TestReplayIsByteForByte(t *testing.T) {
	k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{
		{Reasoning: "", ToolCalls: []fakellm.Call{{ID: "c", Name: "x", Arguments: json.RawMessage(`{"a":"<&>\u2028"}`)}}},
		{Text: "done"},
	}}, nil)
	req := llm.Request{Messages: raw(` {"role" : "user","content":"odd  spacing"}`), Tools: json.RawMessage(`[{"type":"function","function":{"name":"x","parameters":{}}}]`)}
	first, err := k.client.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, first.Message, json.RawMessage(`{"role":"tool","tool_call_id":"c","content":"ok"}`))
	second, err := k.client.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := k.fake.Requests()
	for i, m := range all[1].Messages {
		if !bytes.Equal(bytes.TrimSpace(m), bytes.TrimSpace(req.Messages[i])) || !bytes.Contains(all[1].Body, req.Messages[i]) {
			t.Errorf("message %d: %s, want %s", i, m, req.Messages[i])
		}
	}
	if prefix := bytes.TrimSuffix(all[0].Body, []byte("]}")); !bytes.HasPrefix(all[1].Body, prefix) {
		t.Errorf("the second request does not begin as the first:\n%s\n%s", all[0].Body, all[1].Body)
	}
	if second.Usage.CacheHit == 0 {
		t.Errorf("nothing was cached: %+v", second.Usage)
	}
}

// TestReasoningOfOthers lets a conversation go on that a server without reasoning began.
func TestReasoningOfOthers(t *testing.T) {
	foreign := raw(hello, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"x","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"ok"}`)
	for _, thinking := range []string{"enabled", "disabled"} {
		k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{{Text: "on"}}}, nil)
		if _, err := k.client.Complete(t.Context(), llm.Request{Messages: foreign, Thinking: thinking}, nil); err != nil {
			t.Errorf("thinking %q: %v", thinking, err)
		}
		sent := string(k.fake.Requests()[0].Body)
		if strings.Contains(sent, `"reasoning_content":""`) == (thinking == "disabled") {
			t.Errorf("thinking %q: sent %s", thinking, sent)
		}
	}
	// Where nothing says that the server reasons, nothing is added; where it has reasoned, all is.
	for _, reasoned := range []bool{false, true} {
		k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{{Text: "on"}}}, nil)
		messages := foreign
		if reasoned {
			messages = append(raw(hello, `{"role":"assistant","content":"x","reasoning_content":"y"}`), foreign...)
		}
		_, err := k.client.Complete(t.Context(), llm.Request{Messages: messages}, nil)
		if refused := err != nil; refused == reasoned {
			t.Errorf("reasoned %v: %v", reasoned, err)
		}
	}
}

// TestErrors is the table of what a server may answer: what it is called, whether it is tried
// again, and that something can be done about it.
func TestErrors(t *testing.T) {
	secret := "sk-very-secret"
	fail := func(status int) fakellm.Reply {
		return fakellm.Reply{Error: &fakellm.Failure{Status: status, Message: "no " + secret}}
	}
	for _, c := range []struct {
		reply fakellm.Reply
		kind  llm.Kind
		tries int
	}{
		{fail(400), llm.BadRequest, 1},
		{fakellm.Reply{Error: &fakellm.Failure{Status: 400, Message: "This model's maximum context length is 10 tokens"}}, llm.TooLong, 1},
		{fail(401), llm.Unauthorized, 1},
		{fail(402), llm.NoBalance, 1},
		{fail(404), llm.NotFound, 1},
		{fail(422), llm.Invalid, 1},
		{fail(429), llm.RateLimited, 3},
		{fail(500), llm.ServerError, 3},
		{fail(503), llm.Overloaded, 3},
		{fakellm.Reply{Text: "a longer text", Cut: 2}, llm.Cut, 3},
		{fakellm.Reply{Text: "a longer text", Stall: 2}, llm.Stalled, 3},
		{fakellm.Reply{Text: "a longer text", Garbage: `{"choices":[{`}, llm.Malformed, 3},
		{fakellm.Reply{Text: "a longer text", Garbage: `{"error":{"message":"oh"}}`}, llm.ServerError, 3},
		{fakellm.Reply{Text: "half", Finish: llm.FinishNoResource}, llm.Overloaded, 3},
	} {
		k := newTalk(t, fakellm.Options{Key: secret, Replies: slices.Repeat([]fakellm.Reply{c.reply}, 3)}, func(o *llm.Options) {
			if c.kind == llm.Stalled {
				o.Idle = 50 * time.Millisecond
			}
		})
		again := 0
		_, err := k.client.Complete(t.Context(), llm.Request{Messages: raw(hello)}, func(d llm.Delta) {
			if d.Again != nil {
				again++
			}
		})
		var e *llm.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if e.Kind != c.kind || e.Tries != c.tries || again != c.tries-1 || len(k.fake.Requests()) != c.tries || e.Hint() == "" {
			t.Errorf("%s after %d tries, %d told: %v (%s); want %s after %d", e.Kind, e.Tries, again, e, e.Hint(), c.kind, c.tries)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the key is in the error: %v", err)
		}
	}
}

// TestRetries waits as the server asks, else twice as long each time, and then has the answer.
func TestRetries(t *testing.T) {
	k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{
		{Error: &fakellm.Failure{Status: 429, RetryAfter: 7}},
		{Text: "never to be seen", Cut: 3},
		{Error: &fakellm.Failure{Status: 503}},
		{Text: "here"},
	}}, func(o *llm.Options) { o.Retries = 3; o.Backoff = 100 * time.Millisecond })
	got, err := k.client.Complete(t.Context(), llm.Request{Messages: raw(hello)}, nil)
	if err != nil || got.Content != "here" || strings.Contains(string(got.Message), "never") {
		t.Fatalf("%+v, %v", got, err)
	}
	want := []time.Duration{7 * time.Second, 200 * time.Millisecond, 400 * time.Millisecond}
	if !slices.Equal(k.waits, want) {
		t.Errorf("waited %v, want %v", k.waits, want)
	}
}

// TestCancel ends a request in the middle and keeps what came.
func TestCancel(t *testing.T) {
	k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{{Text: "one two three four", Stall: 4}}}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("enough")
	got, err := k.client.Complete(ctx, llm.Request{Messages: raw(hello)}, func(d llm.Delta) {
		if d.Content != "" {
			cancel(mine)
		}
	})
	if !errors.Is(err, mine) || got.Content == "" || got.Message != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if len(k.fake.Requests()) != 1 {
		t.Error("a cancelled request was sent again")
	}
}

func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c, err := llm.New(llm.Options{BaseURL: srv.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Complete(t.Context(), llm.Request{Messages: raw(hello)}, nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Unreachable || e.Hint() == "" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"ftp://x", "nowhere", "http://", "::"} {
		if _, err := llm.New(llm.Options{BaseURL: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestFakeIsStrict shows that the fake refuses what a real server refuses.
func TestFakeIsStrict(t *testing.T) {
	call := `{"role":"assistant","content":"","reasoning_content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"x","arguments":"{}"}}]}`
	answer := `{"role":"tool","tool_call_id":"c","content":"ok"}`
	for name, messages := range map[string][]json.RawMessage{
		"no messages":       nil,
		"no answer":         raw(hello, call),
		"answer too late":   raw(hello, call, hello, answer),
		"answer to nothing": raw(hello, answer),
		"answered twice":    raw(hello, call, answer, answer),
		"unknown role":      raw(`{"role":"robot","content":"x"}`),
		"no content":        raw(`{"role":"user"}`),
	} {
		k := newTalk(t, fakellm.Options{Replies: []fakellm.Reply{{Text: "x"}}}, nil)
		_, err := k.client.Complete(t.Context(), llm.Request{Messages: messages}, nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.BadRequest || len(k.fake.Refused()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
