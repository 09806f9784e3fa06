package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/move"
	"reasonix/internal/report"
	"reasonix/store"
)

func (a *app) deleteSession(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("sessions delete takes one session")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := w.session(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	op, err := w.Rewind.DeleteSession(c.Context, s.ID, c.Bool("force"))
	if err != nil {
		return fmt.Errorf("delete session %s: %w", s.ID, err)
	}
	return a.emit(report.Deletion{Operation: report.OpID(op), Session: s.ID}, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "deleted session %s (%s, %s)\nundo with: reasonix undo-rewind --op %d\n",
			sessionName(s), count(s.Turns, "turn"), count(int(s.Messages), "message"), op)
		return err
	})
}

func (a *app) restoreSession(c *cli.Context, w *world, of store.Operation, err error) error {
	if err != nil {
		return err
	}
	out := report.Deletion{Session: of.Session, Undoes: report.OpID(of.ID)}
	if !c.Bool("dry-run") {
		id, err := move.RestoreSession(c.Context, w.Store, of)
		out.Operation = report.OpID(id)
		if err != nil {
			return err
		}
	}
	return a.emit(out, func(to io.Writer) error {
		verb := "brought back"
		if c.Bool("dry-run") {
			verb = "would bring back"
		}
		_, err := fmt.Fprintf(to, "%s session %s, which operation %d had deleted\n", verb, of.Session, of.ID)
		return err
	})
}
