package main

import "github.com/urfave/cli/v2"

func opsCommand(*app) *cli.Command { return &cli.Command{Name: "ops"} }
