package main

import "github.com/urfave/cli/v2"

func verifyCommand(*app) *cli.Command { return &cli.Command{Name: "verify"} }
