package main

import "github.com/urfave/cli/v2"

func exportCommand(*app) *cli.Command { return &cli.Command{Name: "export-ckpt"} }
