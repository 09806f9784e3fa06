package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/internal/view"
)

func treeCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:        "tree",
		Usage:       "draw all sessions and where they were forked",
		Category:    "history",
		Description: "A fork hangs below its parent, in the order in which forks were made; ● is the current session.",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return badUsage("tree takes no arguments")
			}
			w, err := a.open(c)
			if err != nil {
				return err
			}
			defer w.Close()
			roots, err := view.New(w.Capture).Tree(c.Context)
			if err != nil {
				return err
			}
			return a.emit(report.Tree{Tree: roots}, func(out io.Writer) error {
				if len(roots) == 0 {
					_, err := fmt.Fprintln(out, "no session yet")
					return err
				}
				for _, b := range roots {
					if err := a.drawBranch(out, b, "", ""); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// drawBranch draws a session and its forks: first stands before its own line, rest before
// those below it.
func (a *app) drawBranch(out io.Writer, b *view.Branch, first, rest string) error {
	mark, at := "○", ""
	if b.IsCurrent {
		mark = a.paint(out, green, "●")
	}
	if b.ForkTurn != nil {
		at = a.paint(out, dim, fmt.Sprintf("forked at turn %d, ", *b.ForkTurn))
	}
	name := a.paint(out, bold, string(b.Session))
	if b.Name != "" {
		name += " " + printable(b.Name)
	}
	current := ""
	if b.IsCurrent {
		current = a.paint(out, green, "  current")
	}
	_, err := fmt.Fprintf(out, "%s%s %s  %s%s, %s%s\n", first, mark, name, at, count(b.Turns, "turn"), count(int(b.Messages), "message"), current)
	if err != nil {
		return err
	}
	for i, f := range b.Forks {
		own, below := "├─", "│ "
		if i == len(b.Forks)-1 {
			own, below = "└─", "  "
		}
		if err := a.drawBranch(out, f, rest+own, rest+below); err != nil {
			return err
		}
	}
	return nil
}
