package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"reasonix/internal/config"
	"reasonix/internal/hook"
)

func hookCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "hook",
		Usage:    "record one event of an agent, a JSON object on standard input",
		Category: "agents",
		Description: "Exits 0 and prints nothing, whatever happens: an agent must not be disturbed. Problems are\n" +
			"lines in hook.log beside the stores, wrong flags too. It stops before its deadline, 3s unless\n" +
			"REASONIX_HOOK_DEADLINE says otherwise. docs/hooks.md describes the events.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "reply", Usage: "print what was recorded, as `FORMAT` json"},
			&cli.BoolFlag{Name: "strict", Usage: "exit 1, and say why, when the event is malformed or could not be recorded"},
		},
		Action: func(c *cli.Context) error {
			reply := c.String("reply")
			if c.IsSet("reply") && reply != "json" {
				return badUsage("unknown value %s of --reply: it is json", quote(reply))
			}
			if c.Args().Present() {
				return badUsage("hook takes no arguments: the event comes on standard input")
			}
			return a.hook(c, reply == "json", c.Bool("strict"))
		},
	}
}

func (a *app) hook(c *cli.Context, reply, strict bool) error {
	set, problems := config.Load(a.env)
	r, err := hook.Run(c.Context, hook.Options{
		In: a.stdin, Where: a.where(), Workspace: a.workspace, Now: a.now,
		Deadline: set.HookDeadline, CallTimeout: set.CallTimeout, Scanning: scanningOf(set), Retain: retainOf(set), Problems: problems,
	})
	if reply {
		if werr := a.writeJSON(r); werr != nil && err == nil {
			err = werr
		}
	}
	if err == nil || !strict {
		return nil
	}
	a.json = a.json && !reply // standard output has its object already
	return &strictError{err}
}

// hookError is what is left of an error of hook. Only --strict tells of one: agents take a 2 for
// "do not run this tool". How hook was called is an error like any other, and goes into the log.
func (a *app) hookError(ctx context.Context, args []string, err error) error {
	if err == nil || isStrict(err) {
		return err
	}
	a.where().Log(a.now(), "hook: "+err.Error())
	// The agent still writes the event.
	ctx, cancel := context.WithTimeout(ctx, hook.DefaultDeadline)
	defer cancel()
	if !onTerminal(a.stdin) {
		_, _ = a.readInput(ctx, maxDrained)
	}
	if !asksFor(args, "--strict") {
		return nil
	}
	a.json = a.json || asksFor(args, "--json")
	return &strictError{err}
}

// maxDrained bounds what is read of an event that is not recorded, in bytes.
const maxDrained = 64 << 20

// strictError is any failure of hook --strict: agents take other exit codes for answers.
type strictError struct{ error }

func (e *strictError) Unwrap() error { return e.error }

func isStrict(err error) bool {
	var s *strictError
	return errors.As(err, &s)
}
