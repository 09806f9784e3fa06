package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"reasonix/agent"
	"reasonix/store"
)

// workspaceOf makes a folder for an example, and an agent in it whose model answers from a script.
func workspaceOf(script string) (dir string, c *agent.Controller, done func()) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	model, err := agent.Script([]byte(script))
	if err != nil {
		panic(err)
	}
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		panic(err)
	}
	c, err = agent.New(agent.Options{
		Dir: files, Store: filepath.Join(dir, "store.db"), Model: model, Policy: agent.Full,
	})
	if err != nil {
		panic(err)
	}
	return files, c, func() { _ = c.Close(); _ = os.RemoveAll(dir) }
}

// Two turns, and back to before the second.
func Example() {
	dir, c, done := workspaceOf(`
{"tool_calls":[{"name":"write_file","arguments":{"path":"plan.txt","content":"tea\n"}}]}
{"text":"I wrote plan.txt."}
{"tool_calls":[{"name":"edit_file","arguments":{"path":"plan.txt","old_string":"tea","new_string":"coffee"}}]}
{"text":"Coffee it is."}`)
	defer done()
	show := func() {
		b, _ := os.ReadFile(filepath.Join(dir, "plan.txt"))
		fmt.Printf("plan.txt: %s", b)
	}

	for _, prompt := range []string{"plan the break", "rather coffee"} {
		out, err := c.Submit(context.Background(), prompt)
		if err != nil {
			panic(err)
		}
		fmt.Printf("turn %d %s: %s\n", out.Turn, out.Status, out.Text)
	}
	show()
	res, err := c.Rewind(1, agent.RewindBoth)
	if err != nil {
		panic(err)
	}
	fmt.Printf("rewound %d file; the prompt was %q\n", len(res.Written), res.Prompt)
	show()
	if _, err := c.UndoRewind(); err != nil {
		panic(err)
	}
	show()
	// Output:
	// turn 0 done: I wrote plan.txt.
	// turn 1 done: Coffee it is.
	// plan.txt: coffee
	// rewound 1 file; the prompt was "rather coffee"
	// plan.txt: tea
	// plan.txt: coffee
}

func ExampleController_Checkpoints() {
	_, c, done := workspaceOf(`
{"tool_calls":[{"name":"write_file","arguments":{"path":"a.txt","content":"a\n"}},{"name":"bash","arguments":{"command":"cp a.txt b.txt"}}]}
{"text":"done"}
{"text":"hello"}`)
	defer done()
	for _, prompt := range []string{"make two files", "greet me"} {
		if _, err := c.Submit(context.Background(), prompt); err != nil {
			panic(err)
		}
	}
	all, err := c.Checkpoints()
	if err != nil {
		panic(err)
	}
	for _, m := range all {
		fmt.Println(m.Turn, m.Prompt, m.Paths, m.Status)
	}
	// Output:
	// 0 make two files [a.txt b.txt] done
	// 1 greet me [] done
}

func ExampleController_Fork() {
	_, c, done := workspaceOf(`{"text":"one"}
{"text":"two"}
{"text":"another two"}`)
	defer done()
	for _, prompt := range []string{"first", "second"} {
		if _, err := c.Submit(context.Background(), prompt); err != nil {
			panic(err)
		}
	}
	parent := c.Session()
	branch, err := c.Fork(1)
	if err != nil {
		panic(err)
	}
	out, err := c.Submit(context.Background(), "second, otherwise")
	if err != nil {
		panic(err)
	}
	fmt.Println(out.Text, branch == c.Session())
	if _, err := c.Switch(string(parent)); err != nil {
		panic(err)
	}
	all, err := c.Sessions()
	if err != nil {
		panic(err)
	}
	fmt.Println(len(all), c.Session() == parent)
	// Output:
	// another two true
	// 2 true
}

func ExampleController_SetPreEditHook() {
	_, c, done := workspaceOf(`
{"tool_calls":[{"name":"write_file","arguments":{"path":"a.txt","content":"hello\n"}}]}
{"text":"done"}`)
	defer done()
	c.SetPreEditHook(func(e agent.Change) { fmt.Println("about to", e.Tool, e.Paths) })
	if _, err := c.Submit(context.Background(), "greet"); err != nil {
		panic(err)
	}
	// Output:
	// about to write_file [a.txt]
}

func ExampleController_Subscribe() {
	_, c, done := workspaceOf(`
{"tool_calls":[{"name":"bash","arguments":{"command":"echo hi"}}]}
{"text":"It said hi."}`)
	defer done()
	stop := c.Subscribe(func(e agent.Event) {
		switch e.Kind {
		case agent.TurnStarted:
			fmt.Println("started", e.Text)
		case agent.ToolStarted:
			fmt.Println("runs", e.Tool.Preview.Command)
		case agent.ToolEnded:
			fmt.Println("failed:", e.Tool.Failed)
		case agent.TurnEnded:
			fmt.Println("ended", e.Status == store.TurnDone)
		}
	})
	defer stop()
	if _, err := c.Submit(context.Background(), "say hi"); err != nil {
		panic(err)
	}
	// Output:
	// started say hi
	// runs echo hi
	// failed: false
	// ended true
}

// A session that is kept in memory only cannot be forked.
func ExampleController_Fork_inMemory() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	c, err := agent.New(agent.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, err = c.Fork(0)
	fmt.Println(errors.Is(err, agent.ErrInMemory))
	// Output:
	// true
}
