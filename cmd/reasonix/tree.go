package main

import "github.com/urfave/cli/v2"

func treeCommand(*app) *cli.Command { return &cli.Command{Name: "tree"} }
