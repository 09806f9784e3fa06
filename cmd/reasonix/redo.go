package main

import (
	"github.com/urfave/cli/v2"

	"reasonix/rewind"
	"reasonix/store"
)

func redoCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "redo-rewind",
		Usage:    "take back the newest undo of the session",
		Category: "moves",
		Description: "Files and conversation become what they were just before the undo. A rewind after the undo leaves\n" +
			"nothing to redo; new turns do not.",
		Flags: moveFlags("reasonix undo-rewind brings all back"),
		Action: func(c *cli.Context) error {
			return a.takeBack(c, rewind.Request{Kind: store.OpRedo})
		},
	}
}
