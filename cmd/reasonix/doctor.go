package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"reasonix/internal/config"
	"reasonix/internal/ignore"
	"reasonix/internal/place"
	"reasonix/internal/report"
	"reasonix/internal/workspace"
	"reasonix/store"
)

func doctorCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "doctor",
		Usage:    "tell what is in effect here: workspace, store, settings, what scans leave out",
		Category: "agents",
		Description: "Reads only. What stands in the way of recording is listed under problems; the exit code is 0 all\n" +
			"the same.",
		Action: a.doctor,
	}
}

type doctorJSON struct {
	Version   string        `json:"version"`
	Workspace string        `json:"workspace"` // "" when there is no store
	Store     string        `json:"store"`     // "" when there is none
	Sessions  int           `json:"sessions"`
	Scan      doctorScan    `json:"scan"`
	Settings  []settingJSON `json:"settings"`
	Ignored   []string      `json:"ignored_by_default"`
	Nested    []string      `json:"nested"` // other workspaces in this one or around it
	Problems  []string      `json:"problems"`
}

// doctorScan is what the stat index says.
type doctorScan struct {
	Never    string `json:"never,omitempty"` // why the workspace is not scanned
	Paths    int    `json:"paths"`           // covered
	Complete bool   `json:"complete"`        // the last scan came to its end
	// Rules are the files of ignore rules that were in force then.
	Rules []string `json:"rule_files"`
}

type settingJSON struct {
	Name    string `json:"name"`
	Env     string `json:"env"`
	Value   string `json:"value"` // "" while it has its default
	Default string `json:"default"`
	From    string `json:"from"`
}

func (a *app) doctor(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("doctor takes no arguments")
	}
	set, all, err := config.Explain(a.env)
	out := doctorJSON{Version: version, Scan: doctorScan{Rules: []string{}}, Ignored: ignore.Defaults(), Nested: []string{}, Problems: problemsOf(err)}
	for _, s := range all {
		out.Settings = append(out.Settings, settingJSON{s.Name, s.Env, s.Value, s.Default, report.Text(s.From)})
	}
	if err := a.examine(c.Context, set, &out); err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	return a.emitPaged(out, func(to io.Writer) error { return a.printDoctor(to, out) })
}

// problemsOf are the errors that err joins, one by one.
func problemsOf(err error) []string {
	var joined interface{ Unwrap() []error }
	all := []string{}
	switch {
	case err == nil:
	case errors.As(err, &joined):
		for _, e := range joined.Unwrap() {
			all = append(all, e.Error())
		}
	default:
		all = append(all, err.Error())
	}
	return all
}

// examine looks at the workspace and its store, as far as there are any.
func (a *app) examine(ctx context.Context, set config.Settings, out *doctorJSON) error {
	p, err := a.find()
	if errors.Is(err, place.ErrNoStore) {
		root, err := place.Canonical(a.dir())
		if err == nil {
			out.Scan.Never = a.scanning(set, root).Never
		}
		return err
	}
	if err != nil {
		return err
	}
	o, err := p.Open(ctx, place.Options{Dir: a.workspace, Now: a.now})
	if err != nil {
		return err
	}
	defer o.Close()
	root := o.Root.Path()
	out.Workspace, out.Store = report.Text(root), report.Text(o.Store.Path())
	out.Scan.Never = a.scanning(set, root).Never
	nested, err := a.where().Nested(ctx, root)
	for _, n := range nested {
		out.Nested = append(out.Nested, report.Text(n))
	}
	return errors.Join(err, o.Store.View(ctx, func(tx *store.Tx) error { return out.read(tx) }))
}

func (d *doctorJSON) read(tx *store.Tx) error {
	sessions, err := tx.Sessions()
	if err != nil {
		return err
	}
	d.Sessions = len(sessions)
	waiting, err := tx.Unfinished()
	if err != nil {
		return err
	}
	for _, o := range waiting {
		d.Problems = append(d.Problems, fmt.Sprintf("operation %d (%s) was interrupted, or is still running: the next command that may write takes it back", o.ID, o.Kind))
	}
	index, err := tx.ScanIndex()
	if err != nil {
		return err
	}
	x, err := workspace.DecodeParts(index.Parts)
	switch {
	case err != nil:
		d.Problems = append(d.Problems, "the stat index is damaged: the next scan reads everything again")
	case x != nil:
		d.Scan.Paths, d.Scan.Complete = x.Len(), x.Complete()
		for p, usable := range x.RuleFiles() {
			d.Scan.Rules = append(d.Scan.Rules, report.Text(p))
			if !usable {
				d.Problems = append(d.Problems, fmt.Sprintf("the ignore rules in %s cannot be used: new files below it are not captured", report.Text(p)))
			}
		}
	}
	return nil
}

func (a *app) printDoctor(w io.Writer, d doctorJSON) error {
	t := &text{w: w, a: a}
	t.line("reasonix   %s", d.Version)
	if d.Store == "" {
		t.line("workspace  none yet: the first event of an agent, or reasonix scan, makes the store")
	} else {
		t.line("workspace  %s", printable(d.Workspace))
		t.line("store      %s, %s", printable(d.Store), count(d.Sessions, "session"))
	}
	for _, n := range d.Nested {
		t.line("nested     %s has a store of its own", printable(n))
	}
	switch {
	case d.Scan.Never != "":
		t.line("commands   are not scanned for: %s", d.Scan.Never)
	case d.Scan.Paths == 0:
		t.line("commands   nothing was scanned yet")
	case d.Scan.Complete:
		t.line("commands   %s covered", count(d.Scan.Paths, "path"))
	default:
		t.line("commands   %s covered; the last scan did not come to its end", count(d.Scan.Paths, "path"))
	}
	t.line("")
	t.line("settings")
	rows := [][]string{}
	for _, s := range d.Settings {
		value, from := s.Value, s.From
		if value == "" {
			value, from = s.Default, "default"
		}
		rows = append(rows, []string{"  " + s.Name, printable(value), a.paint(w, dim, printable(from)+", or "+s.Env)})
	}
	if t.err == nil {
		t.err = table(w, rows)
	}
	t.line("")
	t.line("left out by default; .gitignore and .reasonixignore add to it or take back")
	t.line("  %s", strings.Join(d.Ignored, "  "))
	t.list("rules from", cyan, d.Scan.Rules)
	for _, p := range d.Problems {
		t.line("%s %s", a.paint(w, red, "problem:"), printable(p))
	}
	return t.err
}
