package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/agent"
	"reasonix/internal/tui"
)

func chatCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "chat",
		Usage:    "talk with the agent",
		Category: "agent",
		Description: "Every change is recorded before it is made. Esc Esc, or /rewind, goes back to an earlier turn, and\n" +
			"/help lists the other commands. Esc or Ctrl-C stops what runs, Ctrl-D leaves. The key of the model's\n" +
			"server is DEEPSEEK_API_KEY, or REASONIX_API_KEY for another server.",
		Flags:  append(agentFlags(), plainFlag()),
		Action: a.chat,
	}
}

func (a *app) chat(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("chat takes no arguments; reasonix run PROMPT does one turn")
	}
	if a.json {
		return badUsage("chat talks with a person; reasonix --json run PROMPT talks with a program")
	}
	talk := tui.NewChat()
	w, ctl, err := a.openAgent(c, func(o *agent.Options) { o.Approve = talk.Ask })
	if err != nil {
		return err
	}
	defer w.Close()
	defer ctl.Close()
	talk.Agent, talk.Out, talk.Command = ctl, a.stdout, a.inChat
	talk.Explain = func(err error) string {
		text := printable(err.Error())
		if hint := meaningOf(err).hint; hint != "" {
			text += "; " + hint
		}
		return text
	}
	screen := a.screen()
	talk.Size, talk.Color = screen.Size, screen.Color
	if in := a.drawsOn(c.Bool("plain")); in == nil {
		talk.In = a.lines()
	} else {
		restore, err := raw(in)
		if err != nil {
			return err
		}
		defer restore()
		talk.Keys = tui.NewKeys(in)
	}
	talk.Pick = func(ctx context.Context) (tui.Picked, error) { return a.pickInChat(ctx, w, ctl, talk, screen) }
	return talk.Run(c.Context)
}

func (a *app) pickInChat(ctx context.Context, w *world, ctl *agent.Controller, talk *tui.Chat, screen tui.Screen) (tui.Picked, error) {
	id := ctl.Session()
	if id == "" {
		return tui.Picked{}, errors.New("there are no turns yet")
	}
	s := &source{a: a, w: w, id: id, agent: true}
	if talk.Keys == nil {
		p := tui.Plain{In: talk.In, Out: talk.Out, Source: s, Now: a.now}
		return p.Pick(ctx)
	}
	p := tui.Picker{Screen: screen, Keys: talk.Keys, Source: s, Now: a.now}
	return p.Pick(ctx)
}

// inChat runs one of the program's own commands for the chat.
func (a *app) inChat(ctx context.Context, out io.Writer, words []string) error {
	inner := &app{
		stdin: &noInput{}, stdout: out, stderr: out, now: a.now, env: a.env, noPager: true, color: a.color,
		workspace: a.workspace, storeFile: a.storeFile,
	}
	args := []string{"--no-pager", "--color=" + a.colorOf()}
	if a.workspace != "" {
		args = append(args, "-C="+a.workspace)
	}
	if a.storeFile != "" {
		args = append(args, "--store="+a.storeFile)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	err := inner.dispatch(ctx, append(args, words...))
	var silent *told
	if errors.As(err, &silent) {
		return nil
	}
	return err
}

// colorOf is what --color is for what is printed to the same terminal.
func (a *app) colorOf() string {
	if a.colored(a.stdout) {
		return "always"
	}
	return "never"
}

// noInput is at its end from the beginning.
type noInput struct{}

func (*noInput) Read([]byte) (int, error) { return 0, io.EOF }
