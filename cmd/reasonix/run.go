package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"reasonix/agent"
	"reasonix/internal/tool"
	"reasonix/store"
)

func runCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "have the agent do one turn",
		ArgsUsage: "PROMPT",
		Category:  "agent",
		Description: "The agent reads, edits and runs commands in the workspace until it is done; every change is recorded\n" +
			"before it is made, and the turn can be rewound. It goes on with the current session. Its last answer\n" +
			"goes to standard output. PROMPT - is read from standard input. What the policy does not allow is\n" +
			"asked for on a terminal, and refused elsewhere. The key of the model's server is DEEPSEEK_API_KEY, or\n" +
			"REASONIX_API_KEY for another server.",
		Flags:  agentFlags(),
		Action: a.runTurn,
	}
}

func (a *app) runTurn(c *cli.Context) error {
	prompt, err := a.prompt(c)
	if err != nil {
		return err
	}
	w, ctl, err := a.openAgent(c, func(o *agent.Options) {
		if onTerminal(a.stdin) && onTerminal(a.stderr) && !a.json {
			o.Approve = a.askOnTerminal
		}
	})
	if err != nil {
		return err
	}
	defer w.Close()
	defer ctl.Close()
	told := &runEvents{a: a}
	ctl.Subscribe(told.event)
	out, err := ctl.Submit(c.Context, prompt)
	if told.err != nil {
		return told.err
	}
	if out.Turn < 0 || out.Status == 0 {
		return err // it never began
	}
	files, ferr := changedIn(ctl, out.Turn)
	if ferr != nil && err == nil {
		err = ferr
	}
	if a.json {
		if werr := told.end(out, files, err); werr != nil {
			return werr
		}
	} else {
		a.sayTurn(out, files)
	}
	return err
}

// maxPrompt bounds a prompt that is read, in bytes.
const maxPrompt = 4 << 20

// prompt is the one argument, or with "-" what is on standard input.
func (a *app) prompt(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", &usage{text: fmt.Sprintf("run takes one prompt, not %d arguments", c.NArg()), hint: `quote it: reasonix run "rename foo to bar"`}
	}
	prompt := c.Args().First()
	if prompt == "-" {
		b, err := io.ReadAll(io.LimitReader(a.stdin, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("read the prompt: %w", err)
		}
		if len(b) > maxPrompt {
			return "", badUsage("the prompt has more than %d MiB", maxPrompt>>20)
		}
		prompt = string(b)
	}
	if strings.TrimSpace(prompt) == "" {
		return "", badUsage("the prompt is empty")
	}
	return prompt, nil
}

func changedIn(ctl *agent.Controller, turn int) ([]string, error) {
	all, err := ctl.Checkpoints()
	if err != nil || turn >= len(all) {
		return nil, err
	}
	return all[turn].Paths, nil
}

// sayTurn tells a person how a turn ended.
func (a *app) sayTurn(out agent.Outcome, files []string) {
	if text := strings.TrimSpace(out.Text); text != "" && out.Status == store.TurnDone {
		fmt.Fprintln(a.stdout, multiline(text))
	}
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return strings.HasSuffix(name, "/") })
	changed := "no files changed"
	if len(files) > 0 {
		shownFiles := files[:min(len(files), 8)]
		changed = count(len(files), "file") + " changed: " + printable(strings.Join(shownFiles, ", "))
		if len(files) > len(shownFiles) {
			changed += ", …"
		}
	}
	a.note("turn %d %s; %s; %d tokens (%d from the cache)", out.Turn, out.Status, changed, out.Usage.Total, out.Usage.CacheHit)
	a.note("take it back with: reasonix rewind %d", out.Turn)
}

// multiline is printable for a text of several lines.
func multiline(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = printable(strings.ReplaceAll(strings.TrimSuffix(l, "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// runEvents tells of a turn while it runs: JSON lines for programs, else notes for a person.
type runEvents struct {
	a   *app
	err error // of standard output
}

func (r *runEvents) event(e agent.Event) {
	if r.a.json {
		if line := newRunJSON(e); line != nil && r.err == nil {
			r.err = r.a.writeJSON(line)
		}
		return
	}
	switch e.Kind {
	case agent.ToolStarted:
		r.a.note("%s %s", r.a.paint(r.a.stderr, cyan, "→"), printable(firstLine(titleOf(e.Tool), 100)))
	case agent.ToolEnded:
		if e.Tool.Failed {
			r.a.note("  %s %s: %s", r.a.paint(r.a.stderr, yellow, "✗"), printable(firstLine(titleOf(e.Tool), 60)), firstLine(e.Text, 100))
		}
	case agent.Discarded:
		r.a.note("%s; %s", e.Err, e.Text)
	case agent.Noticed:
		r.a.note("%s", e.Text)
	case agent.Compacted:
		r.a.note("the conversation came near the model's limit; what came before was summarized")
	default:
	}
}

func titleOf(t agent.ToolEvent) string {
	switch {
	case t.Preview.Command != "":
		return "$ " + t.Preview.Command
	case t.Preview.Title != "":
		return t.Preview.Title
	}
	return t.Name
}

// end writes the last line.
func (r *runEvents) end(out agent.Outcome, files []string, err error) error {
	line := runEndJSON{
		Event: string(agent.TurnEnded), Session: out.Session, Turn: out.Turn, Status: out.Status.String(), Text: out.Text,
		Steps: out.Steps, Files: files, Usage: usageJSON(out.Usage),
	}
	if files == nil {
		line.Files = []string{}
	}
	if err != nil {
		return &withResult{err, line} // the last line has the error as its last member
	}
	return r.a.writeJSON(line)
}

// askOnTerminal asks the person who started the command.
func (a *app) askOnTerminal(ctx context.Context, p agent.Approval) (agent.Decision, error) {
	what := "edit"
	fmt.Fprintln(a.stderr)
	switch {
	case p.Kind == tool.Exec:
		what = "run"
		fmt.Fprintf(a.stderr, "  $ %s\n", multiline(p.Preview.Command))
	case p.Preview.Diff != "":
		fmt.Fprintln(a.stderr, multiline(p.Preview.Diff))
	default:
		fmt.Fprintf(a.stderr, "  %s\n", printable(p.Preview.Title))
	}
	fmt.Fprintf(a.stderr, "%s: %s? [y]es, [a]lways, [N]o or a reason: ", printable(p.Tool), what)
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := bufio.NewReaderSize(oneByte{a.stdin}, 16).ReadString('\n')
		got <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return agent.Decision{}, context.Cause(ctx)
	case l := <-got:
		return decisionOf(l.text), nil
	}
}

// decisionOf reads an answer. What is neither yes nor no is a reason against.
func decisionOf(text string) agent.Decision {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "y", "yes":
		return agent.Decision{Allow: true}
	case "a", "always":
		return agent.Decision{Allow: true, Always: true}
	case "", "n", "no":
		return agent.Decision{}
	}
	return agent.Decision{Reason: text}
}

// oneByte reads no more than a line needs, so that the next question has the rest.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// runEndJSON is the last line of run --json.
type runEndJSON struct {
	Event   string          `json:"event"`
	Session store.SessionID `json:"session"`
	Turn    int             `json:"turn"`
	Status  string          `json:"status"`
	Text    string          `json:"text"`
	Steps   int             `json:"steps"`
	Files   []string        `json:"files"`
	Usage   usageJSON       `json:"usage"`
}
