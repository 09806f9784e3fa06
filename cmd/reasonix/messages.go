package main

import "github.com/urfave/cli/v2"

func messagesCommand(*app) *cli.Command { return &cli.Command{Name: "messages"} }
