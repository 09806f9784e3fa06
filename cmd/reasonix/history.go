package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/internal/view"
	"reasonix/store"
)

func historyCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "list every recorded version of a path, newest first",
		ArgsUsage: "PATH",
		Category:  "history",
		Description: "Each line names the turn that it belongs to or follows, the state that the path got there, and\n" +
			"who gave it. PATH is relative to the current folder.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return badUsage("history takes one path")
			}
			w, err := a.open(c)
			if err != nil {
				return err
			}
			defer w.Close()
			s, err := w.session(c.Context, a.sessionRef)
			if err != nil {
				return err
			}
			p, err := a.path(w, c.Args().First())
			if err != nil {
				return err
			}
			h, err := view.New(w.Capture).History(c.Context, s.ID, p)
			if err != nil {
				return err
			}
			if len(h.Versions) == 0 {
				return fmt.Errorf("%s was never recorded in session %s: %w", p, s.ID, errNoPath)
			}
			return a.emitPaged(h, func(out io.Writer) error { return a.writeHistory(out, h) })
		},
	}
}

func (a *app) writeHistory(out io.Writer, h view.History) error {
	var rows [][]string
	for _, v := range h.Versions {
		sign, colour := signOf(v.Change)
		turn := fmt.Sprintf("turn %d", v.Turn)
		if v.Turn < 0 {
			turn = "before turn 0"
		}
		if v.In != "" {
			turn = string(v.In) + ":" + turn
		}
		by := v.Source
		if by != store.SourceTool.String() && by != store.SourceShell.String() {
			by = whose(by)
		}
		rows = append(rows, []string{
			a.paint(out, bold, turn), a.paint(out, dim, a.ago(time.UnixMilli(v.TimeMS))),
			a.paint(out, colour, sign) + " " + said(v.Pair.After), by,
		})
	}
	oldest := h.Versions[len(h.Versions)-1].Pair.Before
	rows = append(rows, []string{a.paint(out, dim, "first known"), "", "  " + said(oldest), ""})
	return table(out, rows)
}

// said is a state for a person; the digits of a blob are enough to tell two apart.
func said(s store.State) string {
	switch s.Kind {
	case store.File:
		return fmt.Sprintf("file %04o, %s, %s", s.Mode, count(int(s.Size), "byte"), s.Blob.Short())
	case store.Symlink:
		return "symlink, " + s.Blob.Short()
	case store.Dir:
		return fmt.Sprintf("folder %04o", s.Mode)
	case store.Absent:
		return "not there"
	case store.Uncaptured:
	}
	return "not captured"
}
