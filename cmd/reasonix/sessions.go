package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/move"
	"reasonix/internal/report"
	"reasonix/store"
)

func sessionsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "sessions",
		Usage:    "list the sessions of the workspace",
		Category: "looking",
		Description: "The one that was active last comes first; * marks the current one, which commands are about\n" +
			"unless --session names another.",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return &usage{
					text: "unknown word " + quote(c.Args().First()) + " after sessions",
					hint: "reasonix sessions lists all; --session ID before another command names one; sessions rename SESSION NAME; sessions delete SESSION",
				}
			}
			return a.sessions(c)
		},
		Subcommands: []*cli.Command{{
			Name:      "rename",
			Usage:     "give a session a name; an empty one takes it away",
			ArgsUsage: "SESSION NAME",
			Description: "A name stands for the session wherever an id does. It must not be another session's name or id,\n" +
				"nor look like a turn.",
			Action: a.renameSession,
		}, {
			Name:      "delete",
			Usage:     "delete a session; undo-rewind brings it back until gc finds it too old",
			ArgsUsage: "SESSION",
			Description: "Files stay as they are. The current session can not be deleted: switch to another one first.\n" +
				"Forks of it stay whole.",
			Flags:  []cli.Flag{&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "close a turn that runs in it"}},
			Action: a.deleteSession,
		}},
	}
}

func (a *app) sessions(c *cli.Context) error {
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	var all []store.Session
	err = w.Store.View(c.Context, func(tx *store.Tx) (err error) { all, err = tx.Sessions(); return err })
	if err != nil {
		return err
	}
	nested, err := a.where().Nested(c.Context, w.Root.Path())
	if err != nil {
		a.note("other stores could not be listed: %v", err)
	}
	out := report.NewSessions(w.Root.Path(), all, nested)
	return a.emit(out, func(to io.Writer) error {
		if err := a.printSessions(to, all); err != nil {
			return err
		}
		for _, n := range nested {
			if _, err := fmt.Fprintf(to, "%s has a store of its own\n", printable(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) printSessions(w io.Writer, all []store.Session) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no sessions yet")
		return err
	}
	rows := [][]string{{"", "session", "name", "source", "turns", "messages", "updated", "forked from"}}
	for i := range rows[0] {
		rows[0][i] = a.paint(w, dim, rows[0][i])
	}
	for _, s := range all {
		mark, from := " ", ""
		if s.Current {
			mark = a.paint(w, green, "*")
		}
		if s.Parent != "" {
			from = fmt.Sprintf("%s at turn %d", s.Parent, s.ForkTurn)
		}
		rows = append(rows, []string{
			mark, a.paint(w, cyan, string(s.ID)), firstLine(s.Name, 30), firstLine(s.Source, 20),
			fmt.Sprint(s.Turns), fmt.Sprint(s.Messages), a.ago(s.Updated), from,
		})
	}
	return table(w, rows)
}

func (a *app) renameSession(c *cli.Context) error {
	if c.NArg() != 2 {
		return badUsage("sessions rename takes a session and a name")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := a.rename(c.Context, w, c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return err
	}
	return a.emit(report.NewSession(s), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "session %s is called %s\n", s.ID, quote(printable(s.Name)))
		return err
	})
}

func (a *app) rename(ctx context.Context, w *world, ref, name string) (s store.Session, err error) {
	err = w.Store.Update(ctx, func(tx *store.WriteTx) error {
		if s, err = tx.FindSession(ref); err != nil {
			return err
		}
		if err := move.FreeName(&tx.Tx, s.ID, name); err != nil {
			return err
		}
		if err := tx.RenameSession(s.ID, name); err != nil {
			return err
		}
		s, err = tx.Session(s.ID)
		return err
	})
	return s, err
}
