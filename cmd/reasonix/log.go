package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/internal/view"
	"reasonix/store"
)

// logPage is how many turns a person is shown at once.
const logPage = 30

func logCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "log",
		Aliases:  []string{"checkpoints"},
		Usage:    "list the checkpoints of a session, newest first",
		Category: "history",
		Description: "A checkpoint is the state at the start of a turn; beside it stands what the turn then did.\n" +
			"+ created, ~ modified, - deleted, > renamed, * mode or kind changed, ! not captured. What a command\n" +
			"or somebody else changed says so.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` turns; 0 means all; 30 when not given, with --json all"},
			&cli.IntFlag{Name: "before", Usage: "only turns before turn `N`"},
			&cli.BoolFlag{Name: "stat", Usage: "with --json, count lines too"},
		},
		Action: a.log,
	}
}

func (a *app) log(c *cli.Context) error {
	if c.NArg() > 0 {
		return badUsage("log takes no arguments; show TURN tells of one turn")
	}
	page := view.Page{Before: -1, Limit: c.Int("limit"), Count: !a.json || c.Bool("stat")}
	if c.IsSet("before") {
		page.Before = c.Int("before")
	}
	if page.Limit < 0 || c.IsSet("before") && page.Before < 0 {
		return badUsage("--limit and --before are numbers from 0")
	}
	if !c.IsSet("limit") && !a.json {
		page.Limit = logPage
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
	all, err := view.New(w.Capture).Checkpoints(c.Context, s.ID, page)
	if err != nil {
		return err
	}
	return a.emitPaged(all, func(out io.Writer) error {
		if err := a.writeLog(out, all); err != nil || a.quiet {
			return err
		}
		return a.writeRewound(c.Context, out, w, s)
	})
}

func (a *app) writeLog(out io.Writer, all view.Checkpoints) error {
	if len(all.Checkpoints) == 0 {
		what := "no turns"
		if all.Turns > 0 {
			what = "no turns before that one"
		}
		_, err := fmt.Fprintf(out, "session %s has %s\n", all.Session, what)
		return err
	}
	for _, c := range all.Checkpoints {
		status := ""
		if c.Status != "done" {
			status = " " + a.paint(out, yellow, "("+c.Status+")")
		}
		_, err := fmt.Fprintf(out, "%s  %s%s  %s\n", a.paint(out, bold, fmt.Sprintf("turn %d", c.Turn)),
			a.paint(out, dim, a.ago(time.UnixMilli(c.TimeMS))), status, firstLine(c.Prompt, 72))
		if err != nil {
			return err
		}
		if err := a.writeChanges(out, c.Files, a.listed()); err != nil {
			return err
		}
		if err := a.writeForeign(out, c.Others, a.listed()); err != nil {
			return err
		}
		if err := a.writeGaps(out, c.Gaps); err != nil {
			return err
		}
	}
	if !all.More || a.quiet {
		return nil
	}
	last := all.Checkpoints[len(all.Checkpoints)-1].Turn
	_, err := fmt.Fprintf(out, "%s\n", a.paint(out, dim, fmt.Sprintf("older: reasonix log --before %d", last)))
	return err
}

// writeRewound tells of turns that are not listed because a rewind took them away.
func (a *app) writeRewound(ctx context.Context, out io.Writer, w *world, s store.Session) error {
	away, err := w.rewoundAway(ctx, s)
	if err != nil || !away {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", a.paint(out, dim, "rewound turns come back with: reasonix undo-rewind"))
	return err
}

// listed is how many files a turn lists; 0 means all.
func (a *app) listed() int {
	if a.verbose {
		return 0
	}
	return 12
}

// writeChanges lists files with what became of them, at most limit.
func (a *app) writeChanges(out io.Writer, files []view.Change, limit int) error {
	var rows [][]string
	for i, f := range files {
		if limit > 0 && i == limit {
			rows = append(rows, []string{"    " + a.paint(out, dim, fmt.Sprintf("… and %s more (-v lists all)", count(len(files)-limit, "file"))), ""})
			break
		}
		sign, colour := signOf(f.Change)
		name := printable(f.Path)
		if f.From != "" {
			name = printable(f.From) + " → " + name
		}
		rows = append(rows, []string{"    " + a.paint(out, colour, sign) + " " + name, a.counts(out, f)})
	}
	return table(out, rows)
}

// writeForeign lists what somebody else changed during a turn or after it, at most limit.
func (a *app) writeForeign(out io.Writer, others []view.Sourced, limit int) error {
	var foreign []view.Change
	for _, o := range others {
		if o.Source == store.SourceExternal.String() {
			foreign = append(foreign, o.Change)
		}
	}
	return a.writeChanges(out, foreign, limit)
}

func signOf(change string) (sign, colour string) {
	switch change {
	case view.Created:
		return "+", green
	case view.Deleted:
		return "-", red
	case view.Renamed:
		return ">", cyan
	case view.Mode, view.Kind:
		return "*", yellow
	}
	return "~", cyan
}

// counts are a file's added and removed lines.
func (a *app) counts(out io.Writer, f view.Change) string {
	var words []string
	if f.Added != nil && *f.Added > 0 {
		words = append(words, a.paint(out, green, fmt.Sprintf("+%d", *f.Added)))
	}
	if f.Removed != nil && *f.Removed > 0 {
		words = append(words, a.paint(out, red, fmt.Sprintf("-%d", *f.Removed)))
	}
	if f.Change == view.Mode {
		words = append(words, fmt.Sprintf("%04o → %04o", f.Pair.Before.Mode, f.Pair.After.Mode))
	}
	if f.Change == view.Kind {
		words = append(words, f.Pair.Before.Kind.String()+" → "+f.Pair.After.Kind.String())
	}
	switch f.Source {
	case store.SourceShell.String():
		words = append(words, a.paint(out, dim, "by a command"))
	case store.SourceExternal.String():
		words = append(words, a.paint(out, dim, "by somebody else"))
	}
	return strings.Join(words, " ")
}

func (a *app) writeGaps(out io.Writer, gaps []view.Gap) error {
	for _, g := range gaps {
		text := g.Reason
		for _, part := range []string{g.Tool, g.Path, g.Detail} {
			if part != "" {
				text += ", " + printable(part)
			}
		}
		if _, err := fmt.Fprintf(out, "    %s not captured: %s\n", a.paint(out, yellow, "!"), text); err != nil {
			return err
		}
	}
	return nil
}

// viewPaint colours what package view writes.
func (a *app) viewPaint(out io.Writer) view.Paint {
	if !a.colored(out) {
		return view.Plain
	}
	codes := map[string]string{"header": bold, "hunk": cyan, "add": green, "remove": red, "note": yellow}
	return func(kind, text string) string {
		if codes[kind] == "" || text == "" {
			return text
		}
		return a.paint(out, codes[kind], text)
	}
}
