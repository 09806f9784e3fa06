package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/internal/view"
	"reasonix/store"
)

func showCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "tell of one turn: its prompt, its files, what was not captured",
		ArgsUsage: "TURN",
		Category:  "history",
		Description: "Without TURN it is the latest one. After the turn's own files come those that somebody else, or\n" +
			"a move, changed before the next turn began.",
		Action: a.show,
	}
}

func (a *app) show(c *cli.Context) error {
	if c.NArg() > 1 {
		return badUsage("show takes one turn, not %d arguments", c.NArg())
	}
	turn := c.Args().First()
	if turn == "" {
		turn = "latest"
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	s, n, err := a.at(c.Context, w, turn)
	if err != nil {
		return err
	}
	if n == s.Turns {
		return noTurn(c.Context, w, s, n)
	}
	one, err := view.New(w.Capture).Turn(c.Context, s.ID, n)
	if err != nil {
		return err
	}
	of := string(s.ID) + ":"
	err = w.Store.View(c.Context, func(tx *store.Tx) error {
		current, err := tx.Current()
		if errors.Is(err, store.ErrNoSession) {
			return nil
		}
		if current.ID == s.ID {
			of = ""
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.emitPaged(one, func(out io.Writer) error { return a.writeTurn(out, s, one, of) })
}

// writeTurn shows a turn; of stands before its number in commands, where its session is not the current one.
func (a *app) writeTurn(out io.Writer, s store.Session, t view.Turn, of string) error {
	began := time.UnixMilli(t.TimeMS)
	took := ""
	if t.EndedMS != nil {
		took = ", took " + (time.Duration(*t.EndedMS-t.TimeMS) * time.Millisecond).String()
	}
	fmt.Fprintf(out, "%s of session %s, %s\n", a.paint(out, bold, fmt.Sprintf("turn %d", t.Turn)), sessionName(s), t.Status)
	fmt.Fprintf(out, "began %s (%s)%s\n", began.Local().Format("2006-01-02 15:04:05"), a.ago(began), took)
	fmt.Fprintf(out, "%s, from index %d\n\n", count(int(t.Messages), "message"), t.MsgIndex)
	for line := range strings.Lines(strings.TrimRight(t.Prompt, "\n")) {
		fmt.Fprintf(out, "    %s\n", printable(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
	fmt.Fprintln(out)
	if len(t.Files) == 0 {
		fmt.Fprintln(out, "it changed no file")
	} else if err := a.writeChanges(out, t.Checkpoint.Files, 0); err != nil {
		return err
	}
	if err := a.writeGaps(out, t.Gaps); err != nil {
		return err
	}
	for _, o := range t.Others {
		sign, colour := signOf(o.Change.Change)
		fmt.Fprintf(out, "    %s %s  %s\n", a.paint(out, colour, sign), printable(o.Path), a.paint(out, dim, whose(o.Source)))
	}
	if a.quiet {
		return nil
	}
	what := "takes it back"
	if t.Turn < s.Turns-1 {
		what = "takes it and what followed back"
	}
	_, err := fmt.Fprintf(out, "\n%s\n", a.paint(out, dim, fmt.Sprintf("reasonix diff %s%d %s%d shows it, reasonix rewind %s%d %s", of, t.Turn, of, t.Turn+1, of, t.Turn, what)))
	return err
}

func whose(source string) string {
	switch source {
	case store.SourceExternal.String():
		return "by somebody else"
	case store.SourceRestore.String():
		return "by a rewind afterwards"
	case store.SourceCarry.String():
		return "left there by a move"
	}
	return source
}

func sessionName(s store.Session) string {
	if s.Name == "" {
		return string(s.ID)
	}
	return fmt.Sprintf("%s (%s)", s.ID, printable(s.Name))
}
