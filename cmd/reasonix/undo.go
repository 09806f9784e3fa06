package main

import "github.com/urfave/cli/v2"

func undoCommand(*app) *cli.Command { return &cli.Command{Name: "undo-rewind"} }
