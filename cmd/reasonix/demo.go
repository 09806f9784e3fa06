package main

import "github.com/urfave/cli/v2"

func demoCommand(*app) *cli.Command { return &cli.Command{Name: "demo"} }
