package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"reasonix/internal/bench"
)

func benchCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "bench",
		Usage:    "measure time, space and memory here, beside git and JSON checkpoints",
		Category: "store",
		Description: "Everything is measured by turns, one way right after the other, in folders that are removed afterwards.\n" +
			"It takes about a quarter of an hour and 6 GB, and wants a machine that does nothing else; --quick\n" +
			"only shows that it works. The exit code is 0 also where a target is missed. What needs git is left\n" +
			"out where there is none.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tree", Usage: "scan a copy of `DIR`, and edit its texts, instead of files that are made up"},
			&cli.StringSliceFlag{Name: "only", Usage: "measure only the line `NAME`; may be repeated (see --list)"},
			&cli.BoolFlag{Name: "quick", Usage: "measure a small part, once"},
			&cli.BoolFlag{Name: "list", Usage: "list the lines, measure nothing"},
		},
		Action: a.bench,
	}
}

type benchJSON struct {
	Version string       `json:"version"`
	System  string       `json:"system"`
	CPUs    int          `json:"cpus"`
	Quick   bool         `json:"quick"`
	Lines   []bench.Line `json:"lines"`
}

func (a *app) bench(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("bench takes no arguments")
	}
	if c.Bool("list") {
		return a.benchList()
	}
	o := bench.Options{Only: c.StringSlice("only"), Quick: c.Bool("quick"), Now: a.now}
	if c.IsSet("tree") {
		dir, err := a.benchTree(c.String("tree"))
		if err != nil {
			return err
		}
		o.Tree = dir
	}
	var err error
	if o.Program, err = ownFile(); err != nil {
		return err
	}
	out := benchJSON{Version: version, System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Quick: o.Quick}
	if !a.json {
		fmt.Fprintf(a.stdout, "reasonix %s, %s, %s\n", out.Version, out.System, count(out.CPUs, "processor"))
		o.Done = func(l bench.Line) { a.printBench(a.stdout, l) }
	}
	if onTerminal(a.stderr) && !a.quiet {
		o.Begin = func(name string, n, of int) { fmt.Fprintf(a.stderr, "\rmeasuring %s (%d of %d)\x1b[K\r", name, n, of) }
	}
	out.Lines, err = bench.Run(c.Context, o)
	switch {
	case errors.Is(err, bench.ErrNoLine):
		return &usage{text: err.Error(), hint: "reasonix bench --list lists them"}
	case err != nil:
		return err
	}
	var failed []string
	for _, l := range out.Lines {
		if l.Error != "" {
			failed = append(failed, l.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return &withResult{fmt.Errorf("%s could not be measured", strings.Join(failed, ", ")), out}
	case a.json:
		return a.writeJSON(out)
	}
	return nil
}

// ownFile is the program as it was called: what it runs is to be the same, also through a link.
func ownFile() (string, error) {
	file, err := exec.LookPath(os.Args[0])
	if err == nil {
		file, err = filepath.Abs(file)
	} else {
		file, err = os.Executable()
	}
	if err != nil {
		return "", fmt.Errorf("find the program's own file: %w", err)
	}
	return file, nil
}

// benchTree is a folder that can be copied.
func (a *app) benchTree(name string) (string, error) {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", quote(name))
	}
	if err != nil {
		return "", fmt.Errorf("--tree: %w", err)
	}
	return name, nil
}

func (a *app) benchList() error {
	type lineJSON struct {
		Name string `json:"name"`
		What string `json:"what"`
		Unit string `json:"unit"`
	}
	var all struct {
		Lines []lineJSON `json:"lines"`
	}
	rows := [][]string{}
	for _, l := range bench.List() {
		all.Lines = append(all.Lines, lineJSON{l.Name, l.What, l.Unit})
		rows = append(rows, []string{l.Name, l.What})
	}
	return a.emit(all, func(to io.Writer) error { return table(to, rows) })
}

// printBench prints a line of the table, on some lines of text.
func (a *app) printBench(w io.Writer, l bench.Line) {
	fmt.Fprintf(w, "\n%s  %s\n", a.paint(w, bold, l.Name), l.What)
	switch {
	case l.Missing != "":
		fmt.Fprintf(w, "  not measured: %s\n", printable(l.Missing))
		return
	case l.Error != "":
		fmt.Fprintf(w, "  %s %s\n", a.paint(w, red, "failed:"), printable(l.Error))
		return
	}
	rows := [][]string{{"  here", amount(l.Value, l.Unit), p99(l)}}
	for _, b := range l.Beside {
		row := []string{"  " + b.Name, b.Missing, ""}
		if b.Missing == "" {
			row = []string{"  " + b.Name, amount(b.Value, l.Unit), fmt.Sprintf("%.3g times", b.Ratio)}
		}
		rows = append(rows, row)
	}
	for _, t := range l.Targets {
		rows = append(rows, []string{"  target", targetText(t, l.Unit), a.met(w, t)})
	}
	if l.Note != "" {
		rows = append(rows, []string{"  note", l.Note, ""})
	}
	_ = table(w, rows) // whoever reads has gone: the next write says so
}

func p99(l bench.Line) string {
	if l.P99 == 0 {
		return ""
	}
	return "p99 " + amount(l.P99, l.Unit)
}

func (a *app) met(w io.Writer, t bench.Target) string {
	switch {
	case t.Met == nil:
		return "not judged"
	case *t.Met:
		return a.paint(w, green, "met")
	}
	return a.paint(w, yellow, "missed")
}

// targetText is a target in words.
func targetText(t bench.Target, unit string) string {
	switch t.Of {
	case "value":
		return "at most " + amount(t.AtMost, unit)
	case "p99":
		return "p99 at most " + amount(t.AtMost, unit)
	}
	return fmt.Sprintf("%s at least %.3g times", t.Of, t.AtLeast)
}

// amount is a number of a unit, to three digits.
func amount(v float64, unit string) string {
	if unit == "bytes" {
		return size(int64(v))
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
