package main

import "github.com/urfave/cli/v2"

func historyCommand(*app) *cli.Command { return &cli.Command{Name: "history"} }
