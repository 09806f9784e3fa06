package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/rewind"
	"reasonix/store"
)

func switchCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:        "switch",
		Usage:       "take files and conversation to where another session stands",
		ArgsUsage:   "SESSION|-",
		Category:    "moves",
		Description: "\"switch -\" goes back to the session before.",
		Flags:       moveFlags("reasonix switch - brings the files back"),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || c.Args().First() == "" {
				return badUsage("switch takes one session, or - for the one before")
			}
			w, err := a.open(c)
			if err != nil {
				return err
			}
			defer w.Close()
			var s store.Session
			err = w.Store.View(c.Context, func(tx *store.Tx) (err error) {
				if ref := c.Args().First(); ref != "-" {
					s, err = tx.FindSession(ref)
				} else {
					s, err = tx.Previous()
				}
				return err
			})
			if err != nil {
				return err
			}
			if s.Current {
				return a.alreadyThere(s, c.Bool("dry-run"))
			}
			return a.move(c, w, rewind.Request{Kind: store.OpSwitch, Session: s.ID})
		},
	}
}

// alreadyThere is the result of a switch to the session on which the files stand: nothing.
func (a *app) alreadyThere(s store.Session, dry bool) error {
	res := rewind.Result{Kind: store.OpSwitch, Session: s.ID, Turn: -1, Messages: s.Messages}
	return a.emit(report.NewMove(res, dry), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "already on session %s; nothing was changed\n", sessionName(s))
		return err
	})
}
