package main

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"reasonix/internal/move"
	"reasonix/rewind"
	"reasonix/store"
)

func undoCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "undo-rewind",
		Usage:    "take back the newest rewind, redo or compaction that stands, or the deletion of a session",
		Category: "moves",
		Description: "Files and conversation become exactly what they were before it, hand edits included.\n" +
			"Any number of levels, after new turns and restarts.",
		Flags: append(moveFlags("reasonix redo-rewind brings all back"), &cli.StringFlag{Name: "op", Usage: "return to before operation `ID`, and with it take back all later ones"}),
		Action: func(c *cli.Context) error {
			op, err := opArg(c.String("op"))
			if err != nil {
				return err
			}
			return a.takeBack(c, rewind.Request{Kind: store.OpUndo, Op: op})
		},
	}
}

// takeBack is undo and redo.
func (a *app) takeBack(c *cli.Context, r rewind.Request) error {
	if c.Args().Present() {
		return badUsage("%s takes no arguments", c.Command.Name)
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	if r.Kind == store.OpUndo {
		if of, err := move.Deletion(c.Context, w.Store, a.sessionRef, r.Op); err != nil || of.ID != 0 {
			return a.restoreSession(c, w, of, err)
		}
	}
	s, err := w.session(c.Context, a.sessionRef)
	if err != nil {
		return err
	}
	if r.Op != 0 && a.sessionRef == "" {
		// An operation says itself which session it is about.
		err := w.Store.View(c.Context, func(tx *store.Tx) error {
			op, err := tx.Operation(r.Op)
			s.ID = op.Session
			return err
		})
		if err != nil {
			return err
		}
	}
	r.Session = s.ID
	return a.move(c, w, r)
}

func opArg(text string) (store.OpID, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, badUsage("%s is no operation: it is a number as ops lists it", quote(text))
	}
	return store.OpID(n), nil
}
