package main

import (
	"io"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"reasonix/internal/config"
	"reasonix/internal/retain"
	"reasonix/store"
)

func gcCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "gc",
		Usage:    "drop what is older than what is kept, and give the space back",
		Category: "store",
		Description: "Turns that ended within --keep-days can be restored afterwards as before; so can pinned turns, the\n" +
			"newest turn of each session, and what undo-rewind brings back of operations that young. Older ones\n" +
			"keep their prompts, messages and lists of files, and lose the contents that nothing else needs.\n" +
			"Hooks do the same by themselves, once a day; reasonix doctor shows the settings. Agents may go on\n" +
			"meanwhile, and an interrupted gc is simply run again.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "show what would go, change nothing"},
			&cli.StringFlag{Name: "keep-days", Usage: "keep turns of the last `DAYS`, or none for all (default: retain.days)"},
			&cli.IntFlag{Name: "keep-turns", Usage: "keep no more than the newest `N` turns of each session"},
			&cli.StringFlag{Name: "max-size", Usage: "let older turns go until the store has no more than `SIZE`, or none (default: retain.max_store)"},
			&cli.BoolFlag{Name: "repack", Usage: "also store what stays in less space; this takes a while"},
			&cli.StringSliceFlag{Name: "purge", Usage: "remove all that `PATH`, or what lies below it, ever held, wherever else that was used; may be repeated"},
			&cli.BoolFlag{Name: "messages", Usage: "with --purge: also redact what conversations repeat of it"},
			&cli.BoolFlag{Name: "keep-messages", Usage: "with --purge: leave conversations as they are"},
		},
		Action: a.gc,
	}
}

// retainOf is what settings say about what is kept.
func retainOf(set config.Settings) retain.Policy {
	return retain.Policy{Age: set.RetainAge, Size: set.MaxStore}
}

func (a *app) gcPolicy(c *cli.Context, w *world) (retain.Policy, error) {
	set, err := config.Load(a.env)
	if err != nil {
		return retain.Policy{}, err
	}
	for flag, name := range map[string]string{"keep-days": "retain.days", "max-size": "retain.max_store"} {
		if c.IsSet(flag) {
			if err := set.Set(name, c.String(flag)); err != nil {
				return retain.Policy{}, badUsage("--%s: %v", flag, err)
			}
		}
	}
	p := retainOf(set)
	if p.Turns = c.Int("keep-turns"); c.IsSet("keep-turns") && (p.Turns < 1 || p.Turns > math.MaxInt32) {
		return p, badUsage("--keep-turns is a number above 0")
	}
	if a.sessionRef != "" {
		s, err := w.session(c.Context, a.sessionRef)
		if err != nil {
			return p, err
		}
		p.Session = s.ID
	}
	return p, nil
}

type gcJSON struct {
	DryRun     bool       `json:"dry_run"`
	Contents   int        `json:"contents"`
	Bytes      int64      `json:"bytes"`
	Postponed  int        `json:"postponed"`
	Messages   int        `json:"messages"`
	Nodes      int        `json:"nodes"`
	Operations int        `json:"operations"`
	Sessions   int        `json:"sessions"`
	Before     int64      `json:"size_before"`
	After      int64      `json:"size_after"`
	Repacked   int        `json:"repacked"`
	Saved      int64      `json:"saved"`
	SinceMS    *int64     `json:"since_ms"`
	Over       bool       `json:"over_limit"`
	Turns      []turnName `json:"turns"`
}

type turnName struct {
	Session store.SessionID `json:"session"`
	Turn    int             `json:"turn"`
}

func newGCJSON(o retain.Outcome, dry bool) gcJSON {
	out := gcJSON{
		DryRun: dry, Contents: o.Contents, Bytes: o.Bytes, Postponed: o.Postponed, Messages: o.Messages, Nodes: o.Nodes,
		Operations: o.Operations, Sessions: o.Sessions, Before: o.Before, After: o.After, Over: o.Over, Turns: []turnName{},
		Repacked: o.Repacked.Contents, Saved: o.Repacked.Saved,
	}
	if !o.Since.IsZero() {
		since := o.Since.UnixMilli()
		out.SinceMS = &since
	}
	for _, t := range o.Turns {
		out.Turns = append(out.Turns, turnName{t.Session, t.Turn})
	}
	return out
}

func (a *app) gc(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("gc takes no arguments")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	if len(c.StringSlice("purge")) > 0 {
		if c.Bool("repack") {
			return badUsage("--repack does not go with --purge")
		}
		return a.purge(c, w)
	}
	if c.IsSet("messages") || c.IsSet("keep-messages") {
		return badUsage("--messages and --keep-messages go with --purge")
	}
	p, err := a.gcPolicy(c, w)
	if err != nil {
		return err
	}
	col := retain.Collector{Capture: w.Capture, Progress: a.progress("contents dropped")}
	dry := c.Bool("dry-run")
	if p.Repack = c.Bool("repack"); p.Repack && dry {
		return badUsage("what --repack saves is known when it is done: leave out one of it and --dry-run")
	}
	var o retain.Outcome
	if dry {
		o, err = col.Plan(c.Context, p)
	} else {
		o, err = col.Run(c.Context, p)
	}
	if err != nil {
		return err
	}
	return a.emit(newGCJSON(o, dry), func(to io.Writer) error { return a.printGC(to, o, dry) })
}

func (a *app) printGC(w io.Writer, o retain.Outcome, dry bool) error {
	t := &text{w: w, a: a}
	verb := "dropped"
	if dry {
		verb = "would drop"
	}
	if o.Contents+o.Messages+o.Nodes+o.Operations+o.Sessions == 0 {
		t.line("nothing to drop: the store has %s", size(o.Before))
	} else {
		t.line("%s %s of %s", verb, size(o.Bytes), count(o.Contents, "content"))
		if o.Nodes+o.Messages+o.Operations+o.Sessions > 0 {
			t.line("%s what nothing leads to any more: %s, %s, %s, %s", verb, count(o.Nodes, "step"), count(o.Messages, "message"),
				count(o.Operations, "operation"), count(o.Sessions, "deleted session"))
		}
		t.line("the store: %s before, %s after", size(o.Before), size(o.After))
	}
	if o.Repacked.Contents > 0 {
		t.line("%s are stored anew, in %s less", count(o.Repacked.Contents, "content"), size(o.Repacked.Saved))
	}
	a.turnsThatGo(t, o, dry)
	if o.Postponed > 0 {
		t.line("%s stay for now: large files are being recorded", count(o.Postponed, "content"))
	}
	if o.Over {
		t.line("the store is still larger than it should be: what is left is pinned, newest, or messages (reasonix stats tells more)")
	}
	if dry && o.Contents+o.Nodes > 0 {
		t.line("nothing was changed; without --dry-run it is done, and cannot be undone")
	}
	return t.err
}

// turnsThatGo names the turns whose files cannot be restored any more.
func (a *app) turnsThatGo(t *text, o retain.Outcome, dry bool) {
	if len(o.Turns) == 0 {
		return
	}
	verb := "can not be restored any more"
	if dry {
		verb = "could not be restored any more"
	}
	t.line("%s %s:", count(len(o.Turns), "turn"), verb)
	list := o.Turns
	if most := 20; len(list) > most && !a.verbose {
		list = list[:most]
	}
	for _, one := range list {
		t.line("  %s:%d", one.Session, one.Turn)
	}
	if n := len(o.Turns) - len(list); n > 0 {
		t.line("  and %s more (-v lists all)", humanize.Comma(int64(n)))
	}
}
