package main

import "github.com/urfave/cli/v2"

func diffCommand(*app) *cli.Command { return &cli.Command{Name: "diff"} }
