package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/store"
)

func opsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "ops",
		Usage:    "list the operations, newest first: of all sessions, or of the one that --session names",
		Category: "looking",
		Action:   a.ops,
	}
}

type operationJSON struct {
	Operation string          `json:"operation"`
	Session   store.SessionID `json:"session"`
	Kind      string          `json:"kind"`
	Scope     *string         `json:"scope"`
	Turn      *int            `json:"turn"`
	State     string          `json:"state"`
	Written   int             `json:"written"`
	Deleted   int             `json:"deleted"`
	CreatedMS int64           `json:"created_ms"`
	Of        *string         `json:"of"`        // what an undo or redo names
	UndoneBy  *string         `json:"undone_by"` // null while it stands
}

func newOperationJSON(o store.Operation) operationJSON {
	out := operationJSON{
		Operation: fmt.Sprint(o.ID), Session: o.Session, Kind: o.Kind.String(), State: o.State.String(),
		Written: o.Written, Deleted: o.Deleted, CreatedMS: o.Created.UnixMilli(),
		Of: opID(o.Of), UndoneBy: opID(o.UndoneBy),
	}
	if o.Scope != 0 {
		scope := o.Scope.String()
		out.Scope = &scope
	}
	if o.Turn >= 0 {
		out.Turn = &o.Turn
	}
	return out
}

func (a *app) ops(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("ops takes no arguments")
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
	out := struct {
		Operations []operationJSON `json:"operations"`
	}{[]operationJSON{}}
	for _, o := range all {
		out.Operations = append(out.Operations, newOperationJSON(o))
	}
	return a.emitPaged(out, func(to io.Writer) error { return a.printOps(to, all) })
}

func (a *app) printOps(w io.Writer, all []store.Operation) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no operations yet")
		return err
	}
	rows := [][]string{{"id", "session", "operation", "files", "when", ""}}
	for i := range rows[0] {
		rows[0][i] = a.paint(w, dim, rows[0][i])
	}
	for _, o := range all {
		rows = append(rows, []string{
			a.paint(w, cyan, fmt.Sprint(o.ID)), string(o.Session), opText(o),
			fmt.Sprintf("%d written, %d deleted", o.Written, o.Deleted), a.ago(o.Created), standing(o),
		})
	}
	return table(w, rows)
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
	return ""
}
