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
			"empty. Without --out they are put into the current folder, where their names must be free.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "put them into `DIR`"},
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
}

func (a *app) exportCkpt(c *cli.Context) error {
	if c.NArg() > 0 {
		return badUsage("export-ckpt takes no arguments; --session names the session, --out the folder")
	}
	o := export.Options{Dir: c.String("out"), Overwrite: c.Bool("overwrite")}
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
	s, err := w.session(c.Context, a.sessionRef)
	if err != nil {
		return err
	}
	r, err := export.Write(c.Context, w.Store, s.ID, o)
	if err != nil {
		return err
	}
	if r.LeftOut > 0 {
		a.note("%s left out that the form cannot express, such as links and folders; turns name them as gaps", count(r.LeftOut, "path"))
	}
	if r.Converted > 0 {
		a.note("%s of another shape written in the form's own", count(int(r.Converted), "message"))
	}
	out := exportJSON{
		Session: r.Session, JSONL: r.JSONL, Meta: r.Meta, CkptDir: r.Dir,
		Turns: r.Turns, Messages: r.Messages, LeftOut: r.LeftOut,
	}
	return a.emit(out, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "exported session %s: %s, %s\n  %s\n  %s\n", r.Session,
			count(r.Turns, "turn"), count(int(r.Messages), "message"), r.JSONL, r.Dir)
		return err
	})
}
