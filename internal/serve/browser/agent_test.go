package browser

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"reasonix/agent"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/serve"
)

// TestAgent has the agent answer from a script: its reply is seen as it comes, its turn is stopped, refused while
// another one runs, and rewound like any other; what went wrong is told.
func TestAgent(t *testing.T) {
	w := project(t)
	fake := fakellm.New(fakellm.Options{Replies: []fakellm.Reply{
		{Text: "I write <b>it</b> now.", ToolCalls: []fakellm.Call{{Name: "write_file", Arguments: json.RawMessage(`{"path":"made.txt","content":"hello\n"}`)}}},
		{Text: "made.txt is there."},
		{Text: "This takes a long time to be said, and is stopped in the middle of it.", Stall: 4},
		{Error: &fakellm.Failure{Status: 402, Message: "no money <i>left</i>"}},
	}})
	t.Cleanup(fake.Close)
	model, err := llm.New(llm.Options{HTTP: fake.Client(), Retries: -1})
	w.Must(err)
	runs := &real{options: agent.Options{Capture: w.Capture, Engine: w.Engine, Session: w.ID, Model: model, Policy: agent.Full}}
	t.Cleanup(runs.close)
	b := open(t, w, func(o *serve.Options) { o.Agent, o.Policy = runs, string(agent.Full) })
	b.wait(`document.querySelector("#policy").textContent.includes("run commands")`)
	send := func(prompt string) {
		eval[bool](b, `(document.querySelector("#prompt").value = `+js(prompt)+`, true)`)
		b.button("#composer", "Send")
	}

	send("make it")
	b.wait(`document.querySelector("#reply").textContent.includes("I write <b>it</b> now.")`)
	b.wait(`document.querySelector('[data-turn="4"].selected') && document.querySelector("#detail h1").textContent === "Turn 4done"`)
	b.wait(`document.querySelector("#reply").hidden && document.querySelector("#cancel").hidden`)
	if b.file("made.txt") != "hello\n" || eval[int](b, `document.querySelectorAll("#reply b").length`) != 0 {
		t.Errorf("made.txt: %q; the reply: %s", b.file("made.txt"), b.text("#reply"))
	}

	send("think")
	b.wait(`!document.querySelector("#reply").hidden && document.querySelector("#reply").textContent.includes("This takes")`)
	b.wait(`!document.querySelector("#cancel").hidden`)
	b.shot("agent")
	send("another")
	b.wait(`document.querySelector("#reply .bad")`)
	b.button("#composer", "Stop")
	b.wait(`document.querySelector("#detail h1").textContent === "Turn 5interrupted" && document.querySelector("#cancel").hidden`)

	b.pick(4)
	b.button("#detail .actions", "Restore both")
	b.button("#dialog", "Restore")
	b.wait(`document.querySelectorAll(".turn").length === 4`)
	if b.file("made.txt") != "absent" {
		t.Error("the agent's file outlived the rewind of its turn")
	}
	send("go on")
	b.wait(`document.querySelector("#reply .bad")?.textContent.includes("no money <i>left</i>")`)
	b.wait(`document.querySelector("#detail h1").textContent === "Turn 4failed"`)
	b.shot("agent-failed")
	b.size(390, 800)
	b.key("\x1b")
	b.wait(`getComputedStyle(document.querySelector(".side")).display !== "none"`)
	if !eval[bool](b, `(() => {
		const r = document.querySelector("#composer button").getBoundingClientRect();
		return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) === document.querySelector("#composer button");
	})()`) {
		t.Error("something covers what sends a prompt on a phone")
	}
	b.shot("agent-phone")
}

// real is the program's agent, which begins anew with each prompt: the session may have moved.
type real struct {
	options agent.Options
	mu      sync.Mutex // guards ctl
	ctl     *agent.Controller
}

func (r *real) Submit(ctx context.Context, prompt string, tell func(serve.Progress)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctl != nil && r.ctl.Running() {
		return 0, agent.ErrRunning
	}
	ctl, err := agent.New(r.options)
	if err != nil {
		return 0, err
	}
	r.ctl = ctl
	kinds := map[agent.EventKind]string{agent.Text: "text", agent.Reasoning: "reasoning", agent.Discarded: "discarded"}
	ctl.Subscribe(func(e agent.Event) {
		p := serve.Progress{Session: e.Session, Turn: e.Turn, Kind: kinds[e.Kind], Text: e.Text}
		if e.Kind == agent.TurnEnded && e.Err != nil {
			p.Kind, p.Text = "error", e.Err.Error()
		}
		if p.Kind != "" {
			tell(p)
		}
	})
	return ctl.Start(ctx, prompt)
}

func (r *real) Cancel(context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctl != nil && r.ctl.Cancel(), nil
}

func (r *real) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctl != nil {
		_ = r.ctl.Close()
	}
}
