package main

import "github.com/urfave/cli/v2"

func rewindCommand(*app) *cli.Command { return &cli.Command{Name: "rewind"} }
