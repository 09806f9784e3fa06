package main

import "github.com/urfave/cli/v2"

func versionCommand(*app) *cli.Command { return &cli.Command{Name: "version"} }
