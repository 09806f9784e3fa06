package main

import "github.com/urfave/cli/v2"

func sessionsCommand(*app) *cli.Command { return &cli.Command{Name: "sessions"} }
