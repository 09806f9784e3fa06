package main

import "github.com/urfave/cli/v2"

func sqlCommand(*app) *cli.Command { return &cli.Command{Name: "sql"} }
