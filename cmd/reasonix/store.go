package main

import "github.com/urfave/cli/v2"

func storeCommand(*app) *cli.Command { return &cli.Command{Name: "store"} }
