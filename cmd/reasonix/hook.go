package main

import "github.com/urfave/cli/v2"

func hookCommand(*app) *cli.Command { return &cli.Command{Name: "hook"} }
