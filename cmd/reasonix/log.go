package main

import "github.com/urfave/cli/v2"

func logCommand(*app) *cli.Command {
	return &cli.Command{Name: "log", Aliases: []string{"checkpoints"}}
}
