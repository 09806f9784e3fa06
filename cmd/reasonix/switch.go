package main

import "github.com/urfave/cli/v2"

func switchCommand(*app) *cli.Command { return &cli.Command{Name: "switch"} }
