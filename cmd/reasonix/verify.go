package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/store"
)

func verifyCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "verify",
		Usage:    "check the store: all that must hold between its parts",
		Category: "store",
		Description: "Reads only, and names each problem with the path and the turn that it concerns. Exit code 6 means\n" +
			"that there is one.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "deep", Usage: "also read every content and compare it with its hash"}},
		Action: a.verify,
	}
}

type problemJSON struct {
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Path    string `json:"path,omitempty"`
	PathB64 string `json:"path_b64,omitempty"`
	Blob    string `json:"blob,omitempty"`
	Turn    *int   `json:"turn,omitempty"`
}

func (a *app) verify(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("verify takes no arguments")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	found, err := w.Store.Verify(c.Context, c.Bool("deep"), a.progress("checking contents"))
	if err != nil {
		return err
	}
	out := struct {
		Problems []problemJSON `json:"problems"`
	}{[]problemJSON{}}
	for _, p := range found {
		out.Problems = append(out.Problems, newProblemJSON(p))
	}
	err = a.emit(out, func(to io.Writer) error { return a.printProblems(to, found) })
	if err == nil && len(found) > 0 {
		err = &told{errProblems}
	}
	return err
}

func newProblemJSON(p store.Problem) problemJSON {
	out := problemJSON{Code: p.Code, Detail: p.Detail, Path: report.Text(p.Path), PathB64: report.B64(p.Path)}
	if !p.Blob.IsZero() {
		out.Blob = p.Blob.String()
	}
	if p.Turn >= 0 {
		out.Turn = &p.Turn
	}
	return out
}

func (a *app) printProblems(w io.Writer, found []store.Problem) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(w, "no problems")
		return err
	}
	t := &text{w: w, a: a}
	for _, p := range found {
		line := a.paint(w, red, p.Code) + " " + printable(p.Detail)
		if p.Path != "" {
			line += ": " + shown(p.Path)
		}
		if p.Turn >= 0 {
			line += fmt.Sprintf(" (turn %d)", p.Turn)
		}
		t.line("%s", line)
	}
	t.line("%s", count(len(found), "problem"))
	return t.err
}
