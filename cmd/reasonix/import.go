package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/config"
	"reasonix/internal/place"
	"reasonix/internal/report"
	"reasonix/store"
)

func importCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "import-ckpt",
		Usage:     "read a session from files of the program Reasonix",
		ArgsUsage: "PATH",
		Category:  "exchange",
		Description: "PATH is a transcript (.jsonl), read with what lies beside it, or a folder of checkpoints (.ckpt), of\n" +
			"any version. The files, and those of the workspace, stay as they are. What is wrong in them is a\n" +
			"warning each. The same files again make no second session.\n" +
			"With --from claude PATH is a transcript of Claude Code, read with its file history: the live\n" +
			"conversation, and its branches as forks.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Value: "reasonix", Usage: "whose files they are, `reasonix|claude`"},
			&cli.StringFlag{Name: "file-history", Usage: "with --from claude: the session's folder of file history is `DIR`"},
			&cli.StringFlag{Name: "from-root", Usage: "take paths below `DIR` as below this workspace"},
		},
		Action: a.importCkpt,
	}
}

type importJSON struct {
	Session  store.SessionID `json:"session"`
	Turns    int             `json:"turns"`
	Messages int64           `json:"messages"`
	Files    int             `json:"files"`
	Before   bool            `json:"imported_before"`
	Warnings []warningJSON   `json:"warnings"`
	// Branches are what else was in a transcript of Claude Code; their warnings are among the others.
	Branches []store.SessionID `json:"branches,omitempty"`
}

type warningJSON struct {
	Code   string `json:"code"`
	File   string `json:"file,omitempty"`
	Turn   *int   `json:"turn,omitempty"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail"`
}

func (a *app) importCkpt(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("import-ckpt takes one transcript (.jsonl) or folder of checkpoints (.ckpt)")
	}
	from, err := a.file(c.Args().First())
	if err != nil {
		return err
	}
	o := export.ImportOptions{Progress: importProgress(a.progress("turns read and written"))}
	if root := c.String("from-root"); c.IsSet("from-root") {
		if root == "" {
			return badUsage("--from-root names no folder")
		}
		o.FromRoot = root // it may be one of another machine
	}
	claude := c.String("from") == "claude"
	if !claude && c.String("from") != "reasonix" {
		return badUsage("--from is reasonix or claude, not %q", c.String("from"))
	}
	if o.History = c.String("file-history"); o.History != "" {
		if !claude {
			return badUsage("--file-history is for --from claude")
		}
		if o.History, err = a.file(o.History); err != nil {
			return err
		}
	}
	w, err := a.openForImport(c.Context)
	if err != nil {
		return err
	}
	defer w.Close()
	var all []export.Imported
	if claude {
		all, err = export.ImportClaude(c.Context, w.Store, capture.Disk{Capture: w.Capture}, from, o)
	} else {
		all = make([]export.Imported, 1)
		all[0], err = export.Import(c.Context, w.Store, capture.Disk{Capture: w.Capture}, from, o)
	}
	if err != nil {
		return importError(err)
	}
	return a.emitImport(all)
}

// emitImport tells what was imported: a session, and the branches of its transcript.
func (a *app) emitImport(all []export.Imported) error {
	r := all[0]
	out := importJSON{
		Session: r.Session.ID, Turns: r.Turns, Messages: r.Messages, Files: r.Files, Before: r.Before, Warnings: []warningJSON{},
	}
	for _, branch := range all[1:] {
		r.Warnings = append(r.Warnings, branch.Warnings...)
		out.Branches = append(out.Branches, branch.Session.ID)
	}
	for _, one := range r.Warnings {
		j := warningJSON{Code: one.Code, File: report.Text(filepath.ToSlash(one.File)), Path: report.Text(one.Path), Detail: report.Text(one.Detail)}
		if one.Turn >= 0 {
			j.Turn = &one.Turn
		}
		out.Warnings = append(out.Warnings, j)
	}
	a.importNotes(r.Warnings)
	return a.emit(out, func(to io.Writer) error {
		verb := "imported"
		if r.Before {
			verb = "was imported before:"
		}
		_, err := fmt.Fprintf(to, "%s session %s: %s, %s, %s\n", verb, sessionName(r.Session),
			count(r.Turns, "turn"), count(int(r.Messages), "message"), count(r.Files, "state")+" of files")
		for _, b := range all[1:] {
			if err == nil {
				_, err = fmt.Fprintf(to, "  branch %s from turn %d: %s, %s\n", b.Session.ID, b.Session.ForkTurn,
					count(b.Turns, "turn"), count(int(b.Messages), "message"))
			}
		}
		if err == nil {
			_, err = fmt.Fprintf(to, "look with: reasonix -s %s log\n", r.Session.ID)
		}
		return err
	})
}

// importProgress tells of turns as of a work in two passes.
func importProgress(bar func(done, total int64)) func(done, total int) {
	if bar == nil {
		return nil
	}
	return func(done, total int) { bar(int64(done), int64(total)) }
}

// importNotes tells the warnings, the first of many.
func (a *app) importNotes(all []export.Warning) {
	const most = 20
	for n, w := range all {
		if n == most && !a.verbose {
			a.note("and %d more warnings (-v and --json tell all)", len(all)-most)
			return
		}
		where := w.File
		if w.Path != "" {
			where += ": " + w.Path
		}
		if where != "" {
			where += ": "
		}
		a.note("warning: %s%s", printable(where), printable(w.Detail))
	}
}

// openForImport opens the workspace's store, or makes it.
func (a *app) openForImport(ctx context.Context) (*world, error) {
	p, err := a.find()
	if errors.Is(err, place.ErrNoStore) {
		var root string
		if root, err = place.Canonical(a.dir()); err != nil {
			return nil, a.noFolder(err)
		}
		p, err = a.where().Make(root)
	}
	if err != nil {
		return nil, err
	}
	if _, err := config.Load(a.env); err != nil {
		return nil, err
	}
	return a.openWhole(ctx, p, true)
}

func importError(err error) error {
	if errors.Is(err, export.ErrNoSource) {
		return withHint(err, "name a session's .jsonl, or its .ckpt folder")
	}
	var elsewhere *export.Elsewhere
	if errors.As(err, &elsewhere) {
		below := elsewhere.Below
		if below == "" {
			below = "DIR"
		}
		return withHint(err, "--from-root %s takes them as files of this workspace; --from-root %s imports the conversation without them", below, elsewhere.Root)
	}
	return err
}
