package main

import "github.com/urfave/cli/v2"

func forkCommand(*app) *cli.Command { return &cli.Command{Name: "fork"} }
