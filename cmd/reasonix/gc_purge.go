package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/internal/retain"
	"reasonix/store"
)

// errRepeated is returned when conversations repeat what is to be purged, and nobody said what is
// to become of that.
var errRepeated = errors.New("conversations repeat parts of it")

type purgeJSON struct {
	DryRun   bool       `json:"dry_run"`
	Paths    []string   `json:"paths"`
	Contents int        `json:"contents"`
	Bytes    int64      `json:"bytes"`
	Also     []string   `json:"also"`
	Detached int        `json:"rewritten"`
	Turns    []turnName `json:"turns"`
	Texts    []textJSON `json:"texts"`
	Redacted bool       `json:"redacted"`
	Backups  []string   `json:"backups"`
	Clean    bool       `json:"clean"`
}

type textJSON struct {
	Session store.SessionID `json:"session"`
	Turn    int             `json:"turn"`
	Kind    string          `json:"kind"` // prompt or message
	Size    int             `json:"size"`
}

func newPurgeJSON(p retain.Purge, o retain.PurgeOptions) purgeJSON {
	out := purgeJSON{
		DryRun: o.Dry, Paths: []string{}, Contents: p.Contents, Bytes: p.Bytes, Also: []string{}, Detached: p.Detached,
		Turns: []turnName{}, Texts: []textJSON{}, Redacted: o.Messages && !o.Dry, Backups: []string{}, Clean: p.Clean,
	}
	for _, one := range p.Paths {
		out.Paths = append(out.Paths, report.Text(one))
	}
	for _, one := range p.Also {
		out.Also = append(out.Also, report.Text(one))
	}
	for _, t := range p.Turns {
		out.Turns = append(out.Turns, turnName{t.Session, t.Turn})
	}
	for _, t := range p.Texts {
		kind := "message"
		if t.Prompt {
			kind = "prompt"
		}
		out.Texts = append(out.Texts, textJSON{t.Session, t.Turn, kind, t.Size})
	}
	for _, b := range p.Backups {
		out.Backups = append(out.Backups, report.Text(b))
	}
	return out
}

// purge removes the contents of paths for good.
func (a *app) purge(c *cli.Context, w *world) error {
	for _, flag := range []string{"keep-days", "keep-turns", "max-size"} {
		if c.IsSet(flag) {
			return badUsage("--purge removes all that a path ever held; --%s has no part in it", flag)
		}
	}
	if c.Bool("messages") && c.Bool("keep-messages") {
		return badUsage("--messages and --keep-messages contradict each other")
	}
	var paths []store.Path
	for _, name := range c.StringSlice("purge") {
		p, err := a.path(w, name)
		if err != nil {
			return err
		}
		paths = append(paths, p)
	}
	col := retain.Collector{Capture: w.Capture}
	o := retain.PurgeOptions{Dry: true}
	plan, err := col.Purge(c.Context, paths, o)
	if err != nil {
		return err
	}
	if plan.Contents == 0 && len(plan.Paths) == 0 {
		plan.Purged, err = a.nothingToPurge(c, w, paths, plan.Purged)
		if err != nil {
			return err
		}
	}
	o.Messages = c.Bool("messages")
	if c.Bool("dry-run") {
		return a.emit(newPurgeJSON(plan, o), func(to io.Writer) error { return a.printPurge(to, plan, o) })
	}
	if len(plan.Texts) > 0 && !o.Messages && !c.Bool("keep-messages") {
		return withHint(fmt.Errorf("%w, in %s; nothing was changed", errRepeated, count(len(plan.Texts), "text")),
			"--messages redacts them, --keep-messages leaves them: afterwards nobody can look for them any more (--dry-run lists them)")
	}
	o.Dry = false
	done, err := col.Purge(c.Context, paths, o)
	if err != nil {
		return err
	}
	return a.emit(newPurgeJSON(done, o), func(to io.Writer) error { return a.printPurge(to, done, o) })
}

// nothingToPurge tells a path whose contents are gone already, which may be purged again to clean up,
// from one that was never recorded.
func (a *app) nothingToPurge(c *cli.Context, w *world, paths []store.Path, p store.Purged) (store.Purged, error) {
	s, err := w.session(c.Context, "")
	if err != nil {
		return p, err
	}
	err = w.Store.View(c.Context, func(tx *store.Tx) error {
		for _, one := range paths {
			row, err := tx.Newest(s.Head, one)
			if err != nil {
				return err
			}
			if row != nil {
				return nil
			}
		}
		return fmt.Errorf("%s: nothing of it is stored: %w", shown(paths[0]), errNoPath)
	})
	return p, err
}

func (a *app) printPurge(w io.Writer, p retain.Purge, o retain.PurgeOptions) error {
	t := &text{w: w, a: a}
	verb := "purged"
	if o.Dry {
		verb = "would purge"
	}
	t.line("%s %s (%s) of %s", verb, count(p.Contents, "content"), size(p.Bytes), count(len(p.Paths), "path"))
	a.purgeList(t, "the same bytes, also gone, were in", p.Also)
	if n := len(p.Turns); n > 0 {
		t.line("%s can not be restored whole any more", count(n, "turn"))
	}
	switch n := len(p.Texts); {
	case n == 0:
	case o.Messages && !o.Dry:
		t.line("redacted in the conversation: %s", count(n, "text"))
	default:
		t.line("the conversation repeats parts of it in %s:", count(n, "text"))
		for _, one := range p.Texts[:min(n, 20)] {
			t.line("  turn %d of session %s, %s", one.Turn, one.Session, size(int64(one.Size)))
		}
	}
	for _, b := range p.Backups {
		t.line("this copy of the store still holds it, remove it yourself: %s", printable(b))
	}
	switch {
	case o.Dry:
		t.line("nothing was changed; without --dry-run it is done, and cannot be undone")
	case !p.Clean:
		t.line("another program still reads an older state of the store: end it, then run this command again")
	default:
		t.line("no file of the store holds it any more; files in the workspace were not touched, and are recorded again when they are captured")
	}
	return t.err
}

func (a *app) purgeList(t *text, title string, paths []store.Path) {
	if len(paths) == 0 {
		return
	}
	t.line("%s:", title)
	for _, p := range slices.Clone(paths[:min(len(paths), 20)]) {
		t.line("  %s", shown(p))
	}
	if n := len(paths) - 20; n > 0 {
		t.line("  and %d more", n)
	}
}
