package main

import (
	"github.com/urfave/cli/v2"

	"reasonix/rewind"
	"reasonix/store"
)

func rewindCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "rewind",
		Usage:     "take files, conversation or both back to the start of a turn",
		ArgsUsage: "[TURN] [code|conversation|both]",
		Category:  "moves",
		Description: "Without TURN it is the latest checkpoint, without a scope both. By default one conflict stops\n" +
			"it before any write. \"rewind fork 3\" forks.",
		Flags: append(moveFlags(), &cli.StringSliceFlag{Name: "path", Usage: "only `PATH` and what lies below it; may be repeated"}),
		Action: func(c *cli.Context) error {
			turn, scope, err := rewindArgs(c.Args().Slice())
			if err != nil {
				return err
			}
			w, err := a.open(c)
			if err != nil {
				return err
			}
			defer w.Close()
			s, n, err := a.at(c.Context, w, turn)
			if err != nil {
				return err
			}
			r := rewind.Request{Kind: store.OpRewind, Session: s.ID, Turn: n, Scope: scope}
			for _, name := range c.StringSlice("path") {
				p, err := a.path(w, name)
				if err != nil {
					return err
				}
				r.Only = append(r.Only, p)
			}
			return a.move(c, w, r)
		},
	}
}

// rewindArgs reads [TURN] [SCOPE].
func rewindArgs(args []string) (turn string, scope store.Scope, err error) {
	turn, scope = "latest", store.Both
	if len(args) > 2 {
		return "", 0, badUsage("rewind takes a turn and a scope, not %d arguments", len(args))
	}
	if len(args) > 0 && isTurn(args[0]) {
		turn, args = args[0], args[1:]
	}
	switch len(args) {
	case 0:
		return turn, scope, nil
	case 2:
		_, err := parseTurn(args[0])
		return "", 0, err
	}
	if scope, err = store.ParseScope(args[0]); err != nil {
		return "", 0, badUsage("%s", err)
	}
	return turn, scope, nil
}
