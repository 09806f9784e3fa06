package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/store"
)

// opsPage is how many operations a person is shown at once.
const opsPage = 50

func opsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "ops",
		Usage:    "list the operations, newest first: of all sessions, or of the one that --session names",
		Category: "looking",
		Description: "What undo-rewind takes back is the newest rewind, redo or compaction of the session that stands.\n" +
			"The last column says what became of an operation; \"stands\" is what an undo or a redo could take back.",
		Flags:  []cli.Flag{&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` operations; 0 means all; 50 when not given, with --json all"}},
		Action: a.ops,
	}
}

func (a *app) ops(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("ops takes no arguments")
	}
	limit := c.Int("limit")
	if limit < 0 {
		return badUsage("--limit is a number from 0")
	}
	if !c.IsSet("limit") && !a.json {
		limit = opsPage
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	var all []store.Operation
	err = w.Store.View(c.Context, func(tx *store.Tx) error {
		id := store.SessionID("")
		if a.sessionRef != "" {
			s, err := tx.FindSession(a.sessionRef)
			if err != nil {
				return err
			}
			id = s.ID
		}
		all, err = tx.Operations(id)
		return err
	})
	if err != nil {
		return err
	}
	out, older := report.NewOperations(all, limit), 0
	if out.More {
		older, all = len(all)-limit, all[:limit]
	}
	return a.emitPaged(out, func(to io.Writer) error { return a.printOps(to, all, older) })
}

func (a *app) printOps(w io.Writer, all []store.Operation, older int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no operations yet")
		return err
	}
	rows := [][]string{{"id", "session", "operation", "files", "when", "state"}}
	for i := range rows[0] {
		rows[0][i] = a.paint(w, dim, rows[0][i])
	}
	for _, o := range all {
		rows = append(rows, []string{
			a.paint(w, cyan, fmt.Sprint(o.ID)), string(o.Session), opText(o),
			fmt.Sprintf("%d written, %d deleted", o.Written, o.Deleted), a.ago(o.Created), standing(o),
		})
	}
	if err := table(w, rows); err != nil || older == 0 || a.quiet {
		return err
	}
	_, err := fmt.Fprintln(w, a.paint(w, dim, fmt.Sprintf("%s before these: reasonix ops --limit 0", count(older, "operation"))))
	return err
}

func opText(o store.Operation) string {
	text := o.Kind.String()
	if o.Turn >= 0 {
		text += fmt.Sprintf(" turn %d", o.Turn)
	}
	if o.Scope != 0 {
		text += " " + o.Scope.String()
	}
	if o.Of != 0 {
		text += fmt.Sprintf(" of %d", o.Of)
	}
	return text
}

func standing(o store.Operation) string {
	switch {
	case o.State == store.RolledBack:
		return "taken back after an interruption"
	case o.State == store.Applying:
		return "at work, or waits for recovery"
	case o.UndoneBy != 0:
		return fmt.Sprintf("undone by %d", o.UndoneBy)
	}
	if o.Kind.Undoable() || o.Kind == store.OpUndo {
		return "stands"
	}
	return ""
}
