package main

import (
	"github.com/urfave/cli/v2"

	"reasonix/internal/move"
	"reasonix/rewind"
	"reasonix/store"
)

func forkCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "fork",
		Usage:     "make a session that begins with the messages before a turn",
		ArgsUsage: "[TURN]",
		Category:  "moves",
		Description: "Nothing is copied, and the parent does not change. Files stay as they are, unless --code takes\n" +
			"them to that turn too. The fork becomes the current session; an agent continues it by its id.\n" +
			"Without TURN it forks where the session stands.",
		Flags: append(moveFlags("reasonix switch - brings the files back"),
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the new session"},
			&cli.BoolFlag{Name: "code", Usage: "also take the files to that turn"},
		),
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return badUsage("fork takes one turn, not %d arguments", c.NArg())
			}
			if turn := c.Args().First(); turn != "" && !a.namesTurn(c.Context, turn) {
				_, err := parseTurn(turn)
				return err
			}
			w, err := a.open(c)
			if err != nil {
				return err
			}
			defer w.Close()
			s, n, err := a.forkAt(c, w)
			if err != nil {
				return err
			}
			err = w.Store.View(c.Context, func(tx *store.Tx) error { return move.FreeName(tx, "", c.String("name")) })
			if err != nil {
				return err
			}
			return a.move(c, w, rewind.Request{
				Kind: store.OpFork, Session: s.ID, Turn: n, Name: c.String("name"), Code: c.Bool("code"),
			})
		},
	}
}

func (a *app) forkAt(c *cli.Context, w *world) (store.Session, int, error) {
	if turn := c.Args().First(); turn != "" {
		return a.at(c.Context, w, turn)
	}
	s, err := w.session(c.Context, a.sessionRef)
	return s, s.Turns, err
}
