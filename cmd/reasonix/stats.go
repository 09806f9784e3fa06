package main

import (
	"fmt"
	"io"
	"math"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/store"
)

func statsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "stats",
		Usage:    "tell what the store holds and how much room that takes",
		Category: "store",
		Description: "History is what every recorded state and message would take by itself, unique what the different\n" +
			"ones have, stored what they take in the store: the ratio is history to stored. -v lists all sessions\n" +
			"and paths, not the ten largest.",
		Action: a.stats,
	}
}

type statsJSON struct {
	Store        string         `json:"store"`
	Size         int64          `json:"size"`
	Free         int64          `json:"free"`
	History      int64          `json:"history_bytes"`
	Unique       int64          `json:"unique_bytes"`
	Stored       int64          `json:"stored_bytes"`
	Ratio        *float64       `json:"ratio"`
	Contents     int            `json:"contents"`
	Dropped      int            `json:"dropped"`
	DroppedBytes int64          `json:"dropped_bytes"`
	Messages     int            `json:"messages"`
	MessageBytes int64          `json:"message_bytes"`
	Changes      int            `json:"changes"`
	Gaps         int            `json:"gaps"`
	Operations   int            `json:"operations"`
	Index        int64          `json:"index_bytes"`
	Forms        []formJSON     `json:"forms"`
	Sessions     []sessionStats `json:"sessions"`
	Paths        []pathStats    `json:"paths"`
}

type formJSON struct {
	Form     string `json:"form"`
	Contents int    `json:"contents"`
	Size     int64  `json:"size"`
	Stored   int64  `json:"stored"`
}

type sessionStats struct {
	Session      store.SessionID `json:"session"`
	Name         string          `json:"name"`
	Turns        int             `json:"turns"`
	Messages     int64           `json:"messages"`
	MessageBytes int64           `json:"message_bytes"`
	Changes      int             `json:"changes"`
	History      int64           `json:"history_bytes"`
}

type pathStats struct {
	Path     string `json:"path"`
	PathB64  string `json:"path_b64,omitempty"`
	Versions int    `json:"versions"`
	Size     int64  `json:"size"`
	Stored   int64  `json:"stored"`
}

func (a *app) stats(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("stats takes no arguments")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	most := 10
	if a.verbose || a.json {
		most = math.MaxInt32
	}
	var s store.Stats
	err = w.Store.View(c.Context, func(tx *store.Tx) (err error) { s, err = tx.Stats(most); return err })
	if err != nil {
		return fmt.Errorf("measure the store: %w", err)
	}
	return a.emit(newStatsJSON(w.Store.Path(), s), func(to io.Writer) error { return a.printStats(to, s) })
}

func newStatsJSON(path string, s store.Stats) statsJSON {
	out := statsJSON{
		Store: report.Text(path), Size: s.Size, Free: s.Free, History: s.History, Unique: s.Unique, Stored: s.Stored,
		Contents: s.Contents, Dropped: s.Dropped, DroppedBytes: s.DroppedBytes, Messages: s.Messages, MessageBytes: s.MessageBytes,
		Changes: s.Changes, Gaps: s.Gaps, Operations: s.Operations, Index: s.Index,
		Forms: []formJSON{}, Sessions: []sessionStats{}, Paths: []pathStats{},
	}
	if r := ratio(s); r > 0 {
		out.Ratio = &r
	}
	for _, f := range s.Forms {
		out.Forms = append(out.Forms, formJSON(f))
	}
	for _, one := range s.Sessions {
		out.Sessions = append(out.Sessions, sessionStats(one))
	}
	for _, p := range s.Paths {
		out.Paths = append(out.Paths, pathStats{report.Text(p.Path), report.B64(p.Path), p.Versions, p.Size, p.Stored})
	}
	return out
}

// ratio is history to stored, to two digits; 0 when nothing is stored.
func ratio(s store.Stats) float64 {
	if s.Stored == 0 {
		return 0
	}
	return math.Round(float64(s.History)/float64(s.Stored)*100) / 100
}

func (a *app) printStats(w io.Writer, s store.Stats) error {
	t := &text{w: w, a: a}
	t.line("history  %10s  every state and message by itself", size(s.History))
	t.line("unique   %10s  %s and %s", size(s.Unique), count(s.Contents, "content"), count(s.Messages, "message"))
	t.line("stored   %10s  %.4g times smaller than the history", size(s.Stored), ratio(s))
	t.line("file     %10s  with indexes, %s of it free", size(s.Size), size(s.Free))
	if s.Dropped > 0 {
		t.line("dropped  %10s  of %s, by gc", size(s.DroppedBytes), count(s.Dropped, "content"))
	}
	if t.err != nil {
		return t.err
	}
	forms := [][]string{{"", "form", "contents", "size", "stored"}}
	for _, f := range s.Forms {
		forms = append(forms, []string{"", f.Form, fmt.Sprint(f.Contents), size(f.Size), size(f.Stored)})
	}
	sessions := [][]string{{"", "session", "turns", "messages", "their size", "changes", "history"}}
	for _, one := range s.Sessions {
		name := string(one.Session)
		if one.Name != "" {
			name += " " + firstLine(one.Name, 30)
		}
		sessions = append(sessions, []string{
			"", name, fmt.Sprint(one.Turns), fmt.Sprint(one.Messages), size(one.MessageBytes), fmt.Sprint(one.Changes), size(one.History),
		})
	}
	paths := [][]string{{"", "path", "versions", "size", "stored"}}
	for _, p := range s.Paths {
		paths = append(paths, []string{"", shown(p.Path), fmt.Sprint(p.Versions), size(p.Size), size(p.Stored)})
	}
	for _, part := range [][][]string{forms, sessions, paths} {
		if len(part) == 1 {
			continue
		}
		for i, head := range part[0] {
			part[0][i] = a.paint(w, dim, head)
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := table(w, part); err != nil {
			return err
		}
	}
	return nil
}
