package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/tool"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// TestErrors is the table of what can go wrong with the model: the turn is failed, says why and
// what to do, keeps what was done, and can be retried.
func TestErrors(t *testing.T) {
	fail := func(status int) fakellm.Reply { return fakellm.Reply{Error: &fakellm.Failure{Status: status}} }
	for kind, reply := range map[llm.Kind]fakellm.Reply{
		llm.BadRequest:   fail(400),
		llm.Unauthorized: fail(401),
		llm.NoBalance:    fail(402),
		llm.Invalid:      fail(422),
		llm.RateLimited:  fail(429),
		llm.ServerError:  fail(500),
		llm.Overloaded:   fail(503),
		llm.Cut:          {Text: "some text that is cut", Cut: 3},
		llm.Stalled:      {Text: "some text and then nothing", Stall: 3},
		llm.Malformed:    {Text: "some text", Garbage: "{"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			k := newTalk(t, agent.Options{})
			model, err := llm.New(llm.Options{HTTP: k.fake.Client(), Retries: -1, Idle: 200 * time.Millisecond})
			k.Must(err)
			k.o.Model = model
			k.Must(k.agent.Close())
			k.open()
			k.submit("before", calls(write("a", "1\n")), said("ok"))
			k.fake.Add(calls(write("a", "2\n")), reply)
			out, err := k.agent.Submit(t.Context(), "it breaks")
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != kind || e.Hint() == "" || out.Status != store.TurnFailed {
				t.Fatalf("%s, %v", out.Status, err)
			}
			k.has("a", "2\n")
			k.answered()
			if s := k.status(1); s != "failed" {
				t.Errorf("the turn is %s", s)
			}
			k.fake.Add(calls(write("a", "3\n")), said("better"))
			out, err = k.agent.Retry(t.Context())
			if err != nil || out.Turn != 1 || out.Text != "better" {
				t.Errorf("retry: %+v, %v", out, err)
			}
			k.has("a", "3\n")
			k.answered()
			all := k.fake.Requests()
			if strings.Contains(string(all[len(all)-1].Body), "cut") {
				t.Error("an answer that was cut is in the conversation")
			}
		})
	}
}

// TestCancel stops a turn in a reply, in a command, and while a person is asked: it is interrupted,
// every call is answered, it can be rewound exactly, and the next turn goes on.
func TestCancel(t *testing.T) {
	for name, c := range map[string]struct {
		replies []fakellm.Reply
		at      agent.EventKind
		policy  agent.Policy
	}{
		"reply":   {[]fakellm.Reply{calls(write("a", "2\n")), {Text: "one two three four five", Stall: 5}}, agent.Text, agent.Full},
		"command": {[]fakellm.Reply{calls(write("a", "2\n"), shell("echo x > b; sleep 60"), write("c", "3\n"))}, agent.ToolStarted, agent.Full},
		"asked":   {[]fakellm.Reply{calls(write("a", "2\n"), write("c", "3\n"))}, "", agent.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			var k *talk
			k = newTalk(t, agent.Options{Policy: c.policy, Approve: func(ctx context.Context, _ agent.Approval) (agent.Decision, error) {
				if asked++; asked == 3 {
					k.agent.Cancel()
					<-ctx.Done()
					return agent.Decision{}, ctx.Err()
				}
				return agent.Decision{Allow: true}, nil
			}})
			k.submit("before", calls(write("a", "1\n")), said("ok"))
			start := k.files()
			k.fake.Add(c.replies...)
			stop := k.agent.Subscribe(func(e agent.Event) {
				if e.Kind == c.at && (e.Kind != agent.ToolStarted || e.Tool.Name == "bash") {
					k.agent.Cancel()
				}
			})
			out, err := k.agent.Submit(t.Context(), "stop me")
			stop()
			if !errors.Is(err, context.Canceled) || out.Status != store.TurnInterrupted {
				t.Fatalf("%s, %v", out.Status, err)
			}
			k.answered()
			k.has("a", "2\n")
			k.has("c", "")
			if s := k.status(1); s != "interrupted" {
				t.Errorf("the turn is %s", s)
			}
			k.submit("on", said("fine"))
			k.answered()
			_, err = k.agent.Rewind(1, agent.RewindBoth)
			k.Must(err)
			if got := k.files(); fmt.Sprint(got) != fmt.Sprint(start) {
				t.Errorf("rewound: %v, want %v", got, start)
			}
		})
	}
}

// TestPolicies: what is asked, what a refusal does, and that "always" is for one kind of calls.
func TestPolicies(t *testing.T) {
	replies := func() []fakellm.Reply {
		return []fakellm.Reply{
			calls(call("list_dir", map[string]string{"path": "."}), write("a", "1\n"), shell("echo x > b")),
			calls(write("c", "1\n"), shell("echo y > d")), said("ok"),
		}
	}
	for name, c := range map[string]struct {
		policy agent.Policy
		answer func(agent.Approval) agent.Decision
		asked  string
		files  string
	}{
		"nobody there": {agent.Ask, nil, "", ""},
		"refused":      {agent.Ask, func(agent.Approval) agent.Decision { return agent.Decision{Reason: "not now"} }, "write_file bash write_file bash", ""},
		"allowed":      {agent.Ask, func(agent.Approval) agent.Decision { return agent.Decision{Allow: true} }, "write_file bash write_file bash", "a b c d"},
		"always": {agent.Ask, func(a agent.Approval) agent.Decision {
			return agent.Decision{Allow: a.Kind == tool.Edit, Always: true}
		}, "write_file bash bash", "a c"},
		"auto-edit": {agent.AutoEdit, func(agent.Approval) agent.Decision { return agent.Decision{} }, "bash bash", "a c"},
		"full":      {agent.Full, func(agent.Approval) agent.Decision { return agent.Decision{} }, "", "a b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			o := agent.Options{Policy: c.policy}
			if c.answer != nil {
				o.Approve = func(_ context.Context, a agent.Approval) (agent.Decision, error) {
					asked = append(asked, a.Tool)
					if a.Preview.Diff == "" && a.Preview.Command == "" {
						t.Errorf("nothing to look at: %+v", a)
					}
					return c.answer(a), nil
				}
			}
			k := newTalk(t, o)
			k.submit("go", replies()...)
			var files []string
			for _, f := range []string{"a", "b", "c", "d"} {
				if _, err := os.Stat(k.Abs(f)); err == nil {
					files = append(files, f)
				}
			}
			if strings.Join(asked, " ") != c.asked || strings.Join(files, " ") != c.files {
				t.Errorf("asked %v, files %v", asked, files)
			}
			if all := k.fake.Requests(); name == "refused" && !strings.Contains(string(all[1].Body), "not now") {
				t.Error("the model was not told why")
			}
			k.answered()
		})
	}
}

// waiting is a reading tool that waits until so many of its calls run.
type waiting struct {
	mu      sync.Mutex
	running int
	all     chan struct{}
	want    int
}

func (w *waiting) Name() string            { return "wait" }
func (w *waiting) Description() string     { return "waits" }
func (w *waiting) Schema() json.RawMessage { return json.RawMessage(`{"type":"object"}`) }
func (w *waiting) Kind() tool.Kind         { return tool.Read }
func (w *waiting) Prepare(context.Context, json.RawMessage) (tool.Call, error) {
	return w, nil
}
func (w *waiting) Paths() []string { return nil }
func (w *waiting) Preview(context.Context) (tool.Preview, error) {
	return tool.Preview{Title: "wait"}, nil
}

func (w *waiting) Run(ctx context.Context) (tool.Result, error) {
	w.mu.Lock()
	if w.running++; w.running == w.want {
		close(w.all)
	}
	w.mu.Unlock()
	select {
	case <-w.all:
		return tool.Result{Text: "all here"}, nil
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
}

// TestParallelReads: neighbours that only read run at once, answers stay in order.
func TestParallelReads(t *testing.T) {
	w := &waiting{all: make(chan struct{}), want: 4}
	k := newTalk(t, agent.Options{Tools: []tool.Tool{w}})
	one := call("wait", nil)
	replies := numbered(0, []fakellm.Reply{calls(one, one, one, one), said("ok")})
	k.submit("go", replies...)
	var got []string
	for _, m := range k.fake.Requests()[1].Messages {
		var p struct {
			ID string `json:"tool_call_id"`
		}
		k.Must(json.Unmarshal(m, &p))
		if p.ID != "" {
			got = append(got, p.ID)
		}
	}
	if want := []string{"call_0_0_0", "call_0_0_1", "call_0_0_2", "call_0_0_3"}; !slices.Equal(got, want) {
		t.Errorf("answered %v", got)
	}
}

// TestPreEditHook is told of an edit while the files are still as they were.
func TestPreEditHook(t *testing.T) {
	k := newTalk(t, agent.Options{})
	var told []string
	k.agent.SetPreEditHook(func(c agent.Change) {
		b, _ := os.ReadFile(k.Abs(c.Paths[0]))
		told = append(told, fmt.Sprintf("%d %s %v %q %v", c.Turn, c.Tool, c.Paths, b, strings.Contains(c.Diff, "+2")))
	})
	k.submit("one", calls(write("a", "1\n")), said("ok"))
	k.submit("two", calls(write("a", "2\n"), shell("true")), said("ok"))
	k.agent.SetPreEditHook(nil)
	k.submit("three", calls(write("a", "3\n")), said("ok"))
	want := []string{`0 write_file [a] "" false`, `1 write_file [a] "1\n" true`}
	if !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

// TestBudgets: a turn that does not come to an end is stopped and can be gone on with.
func TestBudgets(t *testing.T) {
	for name, o := range map[string]agent.Options{"steps": {MaxSteps: 3}, "tokens": {MaxTokens: 1500}} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, o)
			for range 50 {
				k.fake.Add(calls(shell("echo x >> log")))
			}
			out, err := k.agent.Submit(t.Context(), "for ever")
			if !errors.Is(err, agent.ErrBudget) || out.Status != store.TurnInterrupted || out.Steps == 0 {
				t.Fatalf("%+v, %v", out, err)
			}
			if name == "steps" && out.Steps != 3 {
				t.Errorf("%d steps", out.Steps)
			}
			k.answered()
			_, err = k.agent.Rewind(0, agent.RewindBoth)
			k.Must(err)
			k.has("log", "")
		})
	}
}

// TestClosedFromOutside: a rewind with force ends the turn that runs; the agent changes nothing
// more.
func TestClosedFromOutside(t *testing.T) {
	var k *talk
	k = newTalk(t, agent.Options{Policy: agent.Ask, Approve: func(ctx context.Context, a agent.Approval) (agent.Decision, error) {
		if strings.Contains(a.Args, "second") {
			p, err := k.Engine.Plan(ctx, rewind.Request{Kind: store.OpRewind, Session: k.agent.Session(), Turn: 0, Scope: store.Both, Force: true})
			k.Must(err)
			_, err = k.Engine.Apply(ctx, p)
			k.Must(err)
		}
		return agent.Decision{Allow: true}, nil
	}})
	k.fake.Add(calls(write("first", "1")), calls(write("second", "2")), said("never"))
	out, err := k.agent.Submit(t.Context(), "go")
	if !errors.Is(err, agent.ErrClosed) || out.Status != store.TurnInterrupted {
		t.Fatalf("%+v, %v", out, err)
	}
	k.has("first", "")
	k.has("second", "")
	k.answered()
}

// TestFinish tells a person of an answer that the model did not end itself.
func TestFinish(t *testing.T) {
	k := newTalk(t, agent.Options{})
	var notices []string
	k.agent.Subscribe(func(e agent.Event) {
		if e.Kind == agent.Noticed {
			notices = append(notices, e.Text)
		}
	})
	k.submit("long", fakellm.Reply{Text: "and so", Finish: llm.FinishLength})
	k.submit("bad", fakellm.Reply{Text: "and", Finish: llm.FinishFilter})
	if len(notices) != 2 {
		t.Errorf("%q", notices)
	}
}

// TestLeftover: what a crash left of a file that was being written is in nobody's way.
func TestLeftover(t *testing.T) {
	k := newTalk(t, agent.Options{})
	k.Put(workspace.StagedName(tool.StageID, "a"), "half a fi", 0o600)
	start := k.files()
	k.submit("go", calls(write("a", "whole\n")), said("ok"))
	k.has("a", "whole\n")
	if got := k.files(); len(got) != len(start) {
		t.Errorf("%v", got)
	}
}
