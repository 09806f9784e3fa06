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
		Flags:    moveFlags(),
		Action: func(c *cli.Context) error {
			return a.takeBack(c, rewind.Request{Kind: store.OpRedo})
		},
	}
}
