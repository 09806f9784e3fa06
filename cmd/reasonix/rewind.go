package main

import (
	"context"
	"fmt"

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
		Description: "Without TURN it is the latest checkpoint; without a scope both, or code when --path names files.\n" +
			"The number after the last turn means where the last one ended. By default one conflict stops it\n" +
			"before any write. \"rewind fork 3\" forks.",
		Flags: append(moveFlags("reasonix undo-rewind brings all back"), &cli.StringSliceFlag{Name: "path", Usage: "only `PATH` and what lies below it; may be repeated"},
			&cli.BoolFlag{Name: "pick", Usage: "choose the turn, and what to restore, from a list"}, plainFlag()),
		Action: func(c *cli.Context) error {
			if c.Bool("pick") {
				return a.rewindPick(c)
			}
			if c.Bool("plain") {
				return badUsage("--plain says how --pick asks; say --pick too")
			}
			turn, scope, err := a.rewindArgs(c.Context, c.Args().Slice())
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
			if scope == 0 {
				scope = store.Both
				if c.IsSet("path") { // a conversation has no paths: it is cut only when that is said
					scope = store.Code
				}
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

// rewindPick is rewind --pick, which leaves nothing to be said.
func (a *app) rewindPick(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("--pick lets you choose the turn and the scope: say neither")
	}
	for _, flag := range []string{"dry-run", "force", "skip-conflicts", "path"} {
		if c.IsSet(flag) {
			return badUsage("--pick shows what would be done and asks about conflicts: --%s has no part in it", flag)
		}
	}
	return a.pick(c)
}

// rewindArgs reads [TURN] [SCOPE]; scope is 0 when none is given.
func (a *app) rewindArgs(ctx context.Context, args []string) (turn string, scope store.Scope, err error) {
	turn = "latest"
	if len(args) > 2 {
		return "", 0, &usage{text: fmt.Sprintf("rewind takes a turn and a scope, not %d arguments", len(args)), hint: hintRewind}
	}
	if _, word := store.ParseScope(first(args)); len(args) > 0 && word != nil && a.namesTurn(ctx, args[0]) {
		turn, args = args[0], args[1:]
	}
	switch len(args) {
	case 0:
		return turn, scope, nil
	case 2:
		return "", 0, &usage{text: quote(args[0]) + " is no turn", hint: hintRewind}
	}
	scope, err = store.ParseScope(args[0])
	switch {
	case err == nil:
		return turn, scope, nil
	case turn == "latest": // it may have been meant as either
		return "", 0, &usage{text: quote(args[0]) + " is neither a turn nor a scope", hint: hintRewind}
	}
	return "", 0, &usage{text: quote(args[0]) + " is no scope", hint: hintRewind}
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

const hintRewind = "a TURN is a number, -1, latest or the name of a pin; a scope is code, conversation or both"
