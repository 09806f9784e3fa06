package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"reasonix/agent"
	"reasonix/internal/tool"
)

// Chat is a conversation with the agent on a terminal.
type Chat struct {
	Agent *agent.Controller
	// Asked are the approvals that the agent waits for: what its options' Approve is, is Ask.
	asked chan question
	Out   io.Writer
	// Keys are those of a terminal in raw mode; nil reads lines from In.
	Keys  *Keys
	In    *Lines
	Size  func() (columns, rows int)
	Color bool
	// Command runs one of the program's own commands, such as log, and prints what it prints.
	Command func(ctx context.Context, out io.Writer, words []string) error
	// Pick is the picker.
	Pick func(ctx context.Context) (Picked, error)
	// Explain is an error as a person is told it, with what to do.
	Explain func(error) string

	editor *editor
	screen Screen
	put    printer
	recall recalled
	// allowed are the calls that the person allowed once for all.
	allowed []string
}

// calls are the calls of a kind, in a word.
func calls(k tool.Kind) string {
	if k == tool.Exec {
		return "commands"
	}
	return "edits"
}

// recalled is a prompt that is back in the line, which can not show its line breaks.
type recalled struct{ shown, whole string }

// prompt is what asks for the next thing to do.
const prompt = "> "

type question struct {
	approval agent.Approval
	answer   chan agent.Decision
}

// NewChat makes a chat; its Ask is to be the agent's Approve.
func NewChat() *Chat { return &Chat{asked: make(chan question)} }

// Ask asks the person, in between what the turn tells.
func (c *Chat) Ask(ctx context.Context, a agent.Approval) (agent.Decision, error) {
	q := question{a, make(chan agent.Decision, 1)}
	select {
	case c.asked <- q:
	case <-ctx.Done():
		return agent.Decision{}, context.Cause(ctx)
	}
	select {
	case d := <-q.answer:
		return d, nil
	case <-ctx.Done():
		return agent.Decision{}, context.Cause(ctx)
	}
}

// Run talks until the person leaves.
func (c *Chat) Run(ctx context.Context) error {
	c.screen = Screen{Out: c.Out, Size: c.Size, Color: c.Color}
	out := c.Out
	if c.Keys != nil {
		c.editor = newEditor(ctx, c.Keys, c.Out, commandNames())
		out = c.editor
	}
	c.put = printer{out: out, screen: &c.screen}
	stop := c.Agent.Subscribe(c.put.event)
	defer stop()
	if err := c.greet(); err != nil {
		return err
	}
	for {
		line, err := c.read(ctx)
		if errors.Is(err, io.EOF) {
			c.put.line("")
			return nil
		}
		if err != nil {
			return err
		}
		if quit, err := c.handle(ctx, line); quit || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		} else if err != nil {
			c.put.line(c.screen.style(red, "error: ") + c.Explain(err))
		}
	}
}

// greet says where the conversation stands and what can be typed.
func (c *Chat) greet() error {
	all, err := c.Agent.Checkpoints()
	if err != nil {
		return err
	}
	where := "A new session."
	if id := c.Agent.Session(); id != "" {
		where = fmt.Sprintf("Session %s, %s so far.", id, plural(len(all), "turn"))
	}
	back := "/rewind"
	if c.editor != nil {
		back = "Esc Esc or /rewind"
	}
	c.put.line(c.screen.style(dim, where+" Say what is to be done."))
	c.put.line(c.screen.style(dim, "/help lists commands, "+back+" goes back, Ctrl-D leaves."))
	return nil
}

// read is what the person says: a line, several when they end in a backslash or were pasted.
func (c *Chat) read(ctx context.Context) (string, error) {
	var all []string
	for {
		line, more, err := c.readLine(ctx, prompt)
		if err != nil {
			return "", err
		}
		if c.recall.shown != "" && line == c.recall.shown {
			line = c.recall.whole
		}
		c.recall = recalled{}
		if cut, ok := strings.CutSuffix(line, `\`); ok {
			line, more = cut, true
		}
		if all = append(all, line); !more {
			return strings.TrimSpace(strings.Join(all, "\n")), nil
		}
	}
}

func (c *Chat) readLine(ctx context.Context, question string) (line string, more bool, err error) {
	if c.editor == nil {
		line, err := c.In.ask(c.Out, question)
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		return line, false, err
	}
	c.editor.SetPrompt(question)
	columns, rows := c.Size()
	_ = c.editor.SetSize(columns, rows) // an impossible size leaves the one before
	c.editor.SetBracketedPasteMode(true)
	defer c.editor.SetBracketedPasteMode(false)
	line, err = c.editor.ReadLine()
	if c.editor.picks {
		c.editor.picks = false
		return "/rewind", false, nil
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		return line, true, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return line, false, err
}

// handle does what a line asks for.
func (c *Chat) handle(ctx context.Context, line string) (quit bool, err error) {
	switch {
	case line == "":
		return false, nil
	case strings.HasPrefix(line, "/"):
		return c.command(ctx, strings.Fields(line[1:]))
	}
	return false, c.during(ctx, func(ctx context.Context) error {
		_, err := c.Agent.Submit(ctx, line)
		return err
	})
}

// during runs work of the agent, answers its questions, and lets the person stop it. What is typed
// meanwhile waits in the line; it answers no question, and sends nothing.
func (c *Chat) during(ctx context.Context, work func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	w := c.watch(ctx)
	var ahead strings.Builder
	defer func() {
		if w.end(); ahead.Len() > 0 {
			c.Keys.Type(ahead.String())
		}
	}()
	for {
		select {
		case err := <-done:
			c.status()
			if errors.Is(err, context.Canceled) && ctx.Err() == nil {
				return nil // the person stopped it
			}
			return err
		case q := <-c.asked:
			w.end()
			q.answer <- c.answer(ctx, q.approval)
			w = c.watch(ctx)
		case k, ok := <-w.keys:
			if !ok {
				w.keys = nil
			}
			switch {
			case k.Rune != 0:
				ahead.WriteRune(k.Rune)
			case (k.Name == "ctrl-c" || k.Name == "esc") && c.Agent.Cancel():
				c.put.line(c.screen.style(yellow, "stopping…"))
			}
		}
	}
}

// watcher tells the keys that are pressed while the agent works.
type watcher struct {
	keys chan Key // nil where there are none
	stop context.CancelFunc
}

// end leaves the keys alone again.
func (w watcher) end() {
	w.stop()
	for w.keys != nil {
		if _, ok := <-w.keys; !ok {
			return
		}
	}
}

func (c *Chat) watch(ctx context.Context) watcher {
	ctx, stop := context.WithCancel(ctx)
	w := watcher{stop: stop}
	if c.Keys == nil {
		return w
	}
	keys := make(chan Key)
	w.keys = keys
	go func() {
		defer close(keys)
		for {
			k, err := c.Keys.Next(ctx)
			if err != nil {
				return
			}
			select {
			case keys <- k:
			case <-ctx.Done():
				c.Keys.unread(k)
				return
			}
		}
	}()
	return w
}

// answer asks the person about a call.
func (c *Chat) answer(ctx context.Context, a agent.Approval) agent.Decision {
	c.put.asked(a.Preview)
	line, _, err := c.readLine(ctx, fmt.Sprintf("%s? [y]es, [a]ll %s from now on, [n]o, or why not: ", Safe(a.Tool), calls(a.Kind)))
	if err != nil {
		return agent.Decision{}
	}
	switch line = strings.TrimSpace(line); strings.ToLower(line) {
	case "y", "yes":
		return agent.Decision{Allow: true}
	case "a", "all", "always":
		c.allowed = append(c.allowed, calls(a.Kind))
		return agent.Decision{Allow: true, Always: true}
	case "n", "no", "", "/rewind":
		return agent.Decision{}
	}
	return agent.Decision{Reason: line}
}

// status is the line under a turn.
func (c *Chat) status() {
	c.put.breakLine()
	all, cerr := c.Agent.Checkpoints()
	if cerr != nil || len(all) == 0 {
		return
	}
	last := all[len(all)-1]
	parts := []string{fmt.Sprintf("turn %d %s", last.Turn, last.Status), plural(len(last.Paths), "file")}
	if last.Gaps > 0 {
		parts = append(parts, plural(last.Gaps, "gap"))
	}
	if u := c.put.usage; u.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens, %d from the cache", u.Total, u.CacheHit))
	}
	approve := "approve " + string(c.Agent.Policy())
	for _, all := range c.allowed {
		approve += ", all " + all
	}
	parts = append(parts, approve)
	c.put.line(c.screen.style(dim, strings.Join(parts, " · ")))
}

// remember puts the prompt of a turn that was taken back into the line.
func (c *Chat) remember(before []agent.Meta) {
	now, err := c.Agent.Checkpoints()
	if err != nil || len(now) >= len(before) || c.Keys == nil {
		return
	}
	whole := before[len(now)].Prompt
	c.recall = recalled{shown: strings.TrimSpace(Safe(whole)), whole: whole}
	c.Keys.Type(c.recall.shown)
}
