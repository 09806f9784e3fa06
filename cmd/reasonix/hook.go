package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"reasonix/internal/hook"
)

func hookCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "hook",
		Usage:    "record one event of an agent, a JSON object on standard input",
		Category: "agents",
		Description: "Exits 0 and prints nothing, whatever happens: an agent must not be disturbed. Problems are\n" +
			"lines in hook.log beside the stores.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "reply", Usage: "print what was recorded, as `FORMAT` json"},
			&cli.BoolFlag{Name: "strict", Usage: "exit 1 when the event is malformed or could not be recorded"},
		},
		Action: func(c *cli.Context) error {
			reply := c.String("reply")
			if reply != "" && reply != "json" {
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
	a.quiet = a.quiet || !strict // what is ignored must not reach the agent either
	r, err := hook.Run(c.Context, hook.Options{
		In: a.stdin, Where: a.where(), Workspace: a.workspace, Now: a.now,
		Deadline: a.duration("REASONIX_HOOK_DEADLINE"), CallTimeout: a.duration("REASONIX_CALL_TIMEOUT"),
	})
	if reply {
		if werr := a.writeJSON(r); werr != nil && err == nil {
			err = werr
		}
	}
	if err == nil || !strict {
		return nil
	}
	// With a reply stdout has its object already.
	a.json = a.json && !reply
	return &strictError{err}
}

// strictError is any failure of hook --strict: agents take other exit codes for answers.
type strictError struct{ error }

func (e *strictError) Unwrap() error { return e.error }

func isStrict(err error) bool {
	var s *strictError
	return errors.As(err, &s)
}
