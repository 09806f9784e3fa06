package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"reasonix/export"
	"reasonix/store"
)

func exportCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "export-ckpt",
		Usage:    "write a session as files that the program Reasonix opens",
		Category: "exchange",
		Description: "Writes SESSION.jsonl, SESSION.jsonl.meta and SESSION.ckpt/. The folder of --out must be new or\n" +
			"empty. Without --out they are put into the current folder, where their names must be free.\n" +
			"Version 2 is what every version of that program restores from, byte for byte. Version 1 has the\n" +
			"files' texts only: what is no text comes back changed, which is said on stderr.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "put them into `DIR`"},
			&cli.StringFlag{Name: "format", Value: "v2", Usage: "the version to write, `v2|v1`"},
			&cli.BoolFlag{Name: "all", Usage: "write all sessions"},
			&cli.StringFlag{Name: "root", Usage: "name the files as lying below `DIR` instead of the workspace"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace an earlier export of the session"},
		},
		Action: a.exportCkpt,
	}
}

// exportJSON is the result of export-ckpt.
type exportJSON struct {
	Session  store.SessionID `json:"session"`
	JSONL    string          `json:"jsonl"`
	Meta     string          `json:"meta"`
	CkptDir  string          `json:"ckpt_dir"`
	Turns    int             `json:"turns"`
	Messages int64           `json:"messages"`
	LeftOut  int             `json:"left_out"` // paths that the form cannot express, each counted in each turn
	Inexact  int             `json:"inexact"`  // files that version 1 has other bytes of, each counted in each turn
}

func (a *app) exportCkpt(c *cli.Context) error {
	if c.NArg() > 0 {
		return badUsage("export-ckpt takes no arguments; --session names the session, --out the folder")
	}
	o := export.Options{Dir: c.String("out"), Overwrite: c.Bool("overwrite")}
	switch c.String("format") {
	case "v2":
	case "v1":
		o.Format = export.V1
	default:
		return badUsage("--format is v2 or v1, not %q", c.String("format"))
	}
	if c.Bool("all") && a.sessionRef != "" {
		return badUsage("--all and --session exclude each other")
	}
	if c.IsSet("out") && o.Dir == "" {
		return badUsage("--out names no folder")
	}
	if o.Among = o.Dir == ""; o.Among {
		o.Dir = "."
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	if root := c.String("root"); root != "" {
		if o.Root, err = filepath.Abs(root); err != nil {
			return err
		}
	}
	ids, err := a.exported(c, w)
	if err != nil {
		return err
	}
	if show := a.progress("turns written"); show != nil {
		o.Progress = func(done, total int) { show(int64(done), int64(total)) }
	}
	all, err := export.WriteAll(c.Context, w.Store, ids, o)
	if err != nil {
		return err
	}
	return a.emitExports(all, c.Bool("all"))
}

// exported are the sessions that were asked for.
func (a *app) exported(c *cli.Context, w *world) (ids []store.SessionID, err error) {
	if !c.Bool("all") {
		s, err := w.session(c.Context, a.sessionRef)
		return []store.SessionID{s.ID}, err
	}
	err = w.Store.View(c.Context, func(tx *store.Tx) error {
		all, err := tx.Sessions()
		for _, s := range all {
			ids = append(ids, s.ID)
		}
		return err
	})
	return ids, err
}

// emitExports tells what was written, and what could not be: an object, or a list of all.
func (a *app) emitExports(all []export.Result, list bool) error {
	out := []exportJSON{}
	for _, r := range all {
		a.noteExport(r)
		out = append(out, exportJSON{
			Session: r.Session, JSONL: r.JSONL, Meta: r.Meta, CkptDir: r.Dir,
			Turns: r.Turns, Messages: r.Messages, LeftOut: r.LeftOut, Inexact: r.Inexact,
		})
	}
	var v any = struct {
		Sessions []exportJSON `json:"sessions"`
	}{out}
	if !list {
		v = out[0]
	}
	return a.emit(v, func(to io.Writer) error {
		for _, r := range all {
			_, err := fmt.Fprintf(to, "exported session %s: %s, %s\n  %s\n  %s\n", r.Session,
				count(r.Turns, "turn"), count(int(r.Messages), "message"), r.JSONL, r.Dir)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) noteExport(r export.Result) {
	if r.LeftOut > 0 {
		a.note("%s left out that the form cannot express, such as links and folders; turns name them as gaps", count(r.LeftOut, "path"))
	}
	if r.Converted > 0 {
		a.note("%s of another shape written in the form's own", count(int(r.Converted), "message"))
	}
	if r.Inexact > 0 {
		names := ""
		for _, p := range r.InexactPaths {
			names += " " + printable(string(p))
		}
		a.note("warning: session %s: %s that version 1 cannot carry as text; a restore from it writes other bytes:%s\n"+
			"hint: --format v2 keeps the bytes", r.Session, count(r.Inexact, "content"), names)
	}
}
