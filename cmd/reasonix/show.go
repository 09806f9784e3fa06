package main

import "github.com/urfave/cli/v2"

func showCommand(*app) *cli.Command { return &cli.Command{Name: "show"} }
