package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reasonix/agent"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/worldtest"
	"reasonix/store"
)

// talk is a Controller over a real workspace and a fake server.
type talk struct {
	*worldtest.World
	fake  *fakellm.Server
	agent *agent.Controller
	o     agent.Options
	keys  int
}

func newTalk(t *testing.T, o agent.Options) *talk {
	t.Helper()
	k := &talk{World: worldtest.New(t), fake: fakellm.New(fakellm.Options{})}
	t.Cleanup(k.fake.Close)
	model, err := llm.New(llm.Options{HTTP: k.fake.Client(), Retries: -1})
	k.Must(err)
	if o.Model == nil {
		o.Model = model
	}
	if o.Policy == "" {
		o.Policy = agent.Full
	}
	o.Capture, o.Engine = k.Capture, k.Engine
	o.NewKey = func() string { k.keys++; return fmt.Sprintf("key%d", k.keys) }
	o.New = true
	k.o = o
	k.open()
	t.Cleanup(func() {
		k.Must(k.agent.Close())
		if refused := k.fake.Refused(); len(refused) > 0 {
			t.Errorf("the server refused requests as malformed: %v", refused)
		}
	})
	return k
}

func (k *talk) open() {
	k.T.Helper()
	var err error
	k.agent, err = agent.New(k.o)
	k.Must(err)
}

// submit runs a turn that has to succeed, with these replies.
func (k *talk) submit(prompt string, replies ...fakellm.Reply) agent.Outcome {
	k.T.Helper()
	k.fake.Add(replies...)
	out, err := k.agent.Submit(k.T.Context(), prompt)
	if err != nil || out.Status != store.TurnDone {
		k.T.Fatalf("%s: %s, %v", prompt, out.Status, err)
	}
	if n := k.fake.Left(); n > 0 {
		k.T.Fatalf("%s: %d replies were not asked for", prompt, n)
	}
	return out
}

func (k *talk) has(name, want string) {
	k.T.Helper()
	b, err := os.ReadFile(filepath.Join(k.Dir, filepath.FromSlash(name)))
	if errors.Is(err, os.ErrNotExist) && want == "" {
		return
	}
	if err != nil || string(b) != want {
		k.T.Errorf("%s: %q, %v; want %q", name, b, err, want)
	}
}

func (k *talk) status(turn int) string {
	k.T.Helper()
	all, err := k.agent.Checkpoints()
	k.Must(err)
	return all[turn].Status
}

func call(name string, args any) fakellm.Call {
	b, _ := json.Marshal(args)
	return fakellm.Call{Name: name, Arguments: b}
}

func write(name, content string) fakellm.Call {
	return call("write_file", map[string]string{"path": name, "content": content})
}

func shell(command string) fakellm.Call { return call("bash", map[string]string{"command": command}) }

func calls(all ...fakellm.Call) fakellm.Reply {
	return fakellm.Reply{Reasoning: "let me see", ToolCalls: all}
}

func said(s string) fakellm.Reply { return fakellm.Reply{Text: s, Reasoning: "hm"} }

// TestTurn runs tools of each kind, and rewinds what they did.
func TestTurn(t *testing.T) {
	k := newTalk(t, agent.Options{})
	out := k.submit("make it",
		calls(write("a.txt", "one\n"), call("read_file", map[string]string{"path": "a.txt"}), call("list_dir", map[string]string{"path": "."})),
		calls(shell("echo two > b.txt")),
		said("made"))
	if out.Text != "made" || out.Steps != 3 || out.Turn != 0 || out.Usage.Total == 0 {
		t.Errorf("%+v", out)
	}
	k.has("a.txt", "one\n")
	k.has("b.txt", "two\n")
	all, err := k.agent.Checkpoints()
	k.Must(err)
	if len(all) != 1 || fmt.Sprint(all[0].Paths) != "[a.txt b.txt]" || all[0].Status != "done" || all[0].Prompt != "make it" {
		t.Errorf("%+v", all)
	}
	_, err = k.agent.Rewind(0, agent.RewindBoth)
	k.Must(err)
	k.has("a.txt", "")
	k.has("b.txt", "")
	_, err = k.agent.UndoRewind()
	k.Must(err)
	k.has("b.txt", "two\n")
	_, err = k.agent.RedoRewind()
	k.Must(err)
	k.has("a.txt", "")
	_, err = k.agent.UndoRewind()
	k.Must(err)
	id, err := k.agent.Fork(0)
	k.Must(err)
	if id != k.agent.Session() {
		t.Errorf("the fork is %s, the session %s", id, k.agent.Session())
	}
	k.submit("in the fork", said("yes"))
	_, err = k.agent.Switch("-")
	k.Must(err)
	if k.agent.Session() == id {
		t.Error("still in the fork")
	}
}

// TestFollow: a switch by another program is followed when that is asked for.
func TestFollow(t *testing.T) {
	k := newTalk(t, agent.Options{})
	k.submit("one", said("yes"))
	first := k.agent.Session()
	other, err := agent.New(agent.Options{Capture: k.Capture, Engine: k.Engine, Model: k.o.Model})
	k.Must(err)
	branch, err := other.Fork(1)
	k.Must(err)
	if k.agent.Session() != first {
		t.Error("followed without being asked")
	}
	k.Must(k.agent.Follow())
	if k.agent.Session() != branch {
		t.Errorf("the session is %s, not %s", k.agent.Session(), branch)
	}
	k.submit("in the fork", said("fine"))
}

// TestRefusals: what has to wait while a turn runs, and what cannot be done at all.
func TestRefusals(t *testing.T) {
	k := newTalk(t, agent.Options{})
	if _, err := k.agent.Rewind(0, agent.RewindBoth); !errors.Is(err, store.ErrNoTurn) {
		t.Errorf("a rewind of nothing: %v", err)
	}
	if err := k.agent.Compact(t.Context(), ""); !errors.Is(err, agent.ErrNothingToCompact) {
		t.Errorf("a compaction of nothing: %v", err)
	}
	if _, err := k.agent.Submit(t.Context(), " \n"); !errors.Is(err, agent.ErrInvalid) {
		t.Errorf("an empty prompt: %v", err)
	}
	k.fake.Add(fakellm.Reply{Text: "a long answer", Stall: 4})
	seen := make(chan struct{})
	stop := k.agent.Subscribe(func(e agent.Event) {
		if e.Kind == agent.Text {
			select {
			case <-seen:
			default:
				close(seen)
			}
		}
	})
	defer stop()
	turn, err := k.agent.Start(t.Context(), "go")
	k.Must(err)
	<-seen
	for name, do := range map[string]func() error{
		"submit":    func() error { _, err := k.agent.Submit(t.Context(), "x"); return err },
		"rewind":    func() error { _, err := k.agent.Rewind(turn, agent.RewindCode); return err },
		"undo":      func() error { _, err := k.agent.UndoRewind(); return err },
		"redo":      func() error { _, err := k.agent.RedoRewind(); return err },
		"fork":      func() error { _, err := k.agent.Fork(0); return err },
		"compact":   func() error { return k.agent.Compact(t.Context(), "") },
		"summarize": func() error { return k.agent.Summarize(t.Context(), 0, agent.From) },
	} {
		if err := do(); !errors.Is(err, agent.ErrRunning) {
			t.Errorf("%s while a turn runs: %v", name, err)
		}
	}
	other, err := agent.New(agent.Options{Capture: k.Capture, Engine: k.Engine, Model: k.o.Model})
	k.Must(err)
	if _, err := other.Submit(t.Context(), "me too"); !errors.Is(err, agent.ErrRunning) {
		t.Errorf("another one in the same session: %v", err)
	}
	if !k.agent.Cancel() {
		t.Error("nothing to cancel")
	}
	k.Must(k.agent.Wait(t.Context()))
	if s := k.status(turn); s != "interrupted" {
		t.Errorf("the turn is %s", s)
	}
	if k.agent.Cancel() {
		t.Error("something to cancel")
	}
	k.submit("go on", said("fine"))
}

func TestInMemory(t *testing.T) {
	dir := t.TempDir()
	model, err := agent.Script([]byte(`{"tool_calls":[{"name":"write_file","arguments":{"path":"x","content":"1"}}]}
{"text":"ok"}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := agent.New(agent.Options{Dir: dir, Model: model, Policy: agent.AutoEdit})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fork(0); !errors.Is(err, agent.ErrInMemory) {
		t.Errorf("fork: %v", err)
	}
	if _, err := c.Rewind(0, agent.RewindBoth); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("x is there: %v", err)
	}
	file := c.Store().Path()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store is still there: %v", err)
	}
	if _, err := c.Submit(context.Background(), "x"); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
