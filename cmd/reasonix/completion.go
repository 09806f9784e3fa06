package main

import "github.com/urfave/cli/v2"

func completionCommand(*app) *cli.Command { return &cli.Command{Name: "completion"} }
