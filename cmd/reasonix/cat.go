package main

import "github.com/urfave/cli/v2"

func catCommand(*app) *cli.Command { return &cli.Command{Name: "cat"} }
