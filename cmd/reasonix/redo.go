package main

import "github.com/urfave/cli/v2"

func redoCommand(*app) *cli.Command { return &cli.Command{Name: "redo-rewind"} }
