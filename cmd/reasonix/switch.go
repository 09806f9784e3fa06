package main

import (
	"github.com/urfave/cli/v2"

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
		Flags:       moveFlags(),
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
			return a.move(c, w, rewind.Request{Kind: store.OpSwitch, Session: s.ID})
		},
	}
}
