package view

import (
	"context"
	"errors"
	"fmt"

	udiff "github.com/aymanbagabas/go-udiff"

	"reasonix/blob"
	"reasonix/store"
)

// File is the difference of one path.
type File struct {
	Change
	Before  State  `json:"before"`
	After   State  `json:"after"`
	Added   int    `json:"added"`   // lines
	Removed int    `json:"removed"` // lines
	Binary  bool   `json:"binary"`
	Large   bool   `json:"large"` // too large for its lines to be compared
	Hunks   []Hunk `json:"hunks"`
	// Unreadable says why the contents could not be compared; "" when they were.
	Unreadable string `json:"unreadable,omitempty"`
}

// Hunk is a run of lines that differ, with lines around it that do not.
type Hunk struct {
	FromLine  int    `json:"from_line"` // of the first line, from 1; 0 when the side is empty
	FromCount int    `json:"from_count"`
	ToLine    int    `json:"to_line"`
	ToCount   int    `json:"to_count"`
	Lines     []Line `json:"lines"`
}

// Line is a line of a hunk. Its text is without the newline and need not be UTF-8.
type Line struct {
	Op        string `json:"op"` // " ", "-" or "+"
	Text      string `json:"text"`
	NoNewline bool   `json:"no_newline,omitempty"` // the file ends here without one
}

// File compares the contents of a pair. Damaged content is an error.
func (v *Viewer) File(ctx context.Context, p Pair) (File, error) {
	f := File{Change: changeOf(p), Before: stateOf(p.Before), After: stateOf(p.After), Hunks: []Hunk{}}
	if p.Before.Kind == store.Uncaptured || p.After.Kind == store.Uncaptured {
		f.Unreadable = "not captured"
		return f, nil
	}
	if p.Before.Kind == p.After.Kind && p.Before.Blob == p.After.Blob {
		return f, nil
	}
	from := p.Path
	if p.From != "" {
		from = p.From
	}
	before, err := v.content(ctx, from, p.Before)
	var after []byte
	if err == nil {
		after, err = v.content(ctx, p.Path, p.After)
	}
	switch {
	case errors.Is(err, blob.ErrTooLarge):
		f.Large = true
		return f, nil
	case errors.Is(err, errGone):
		f.Unreadable = errGone.Error()
		return f, nil
	case errors.Is(err, blob.ErrExpired):
		f.Unreadable = "dropped by gc"
		return f, nil
	case err != nil:
		return f, fmt.Errorf("compare %s: %w", p.Path, err)
	}
	if f.Binary = binary(before) || binary(after); f.Binary {
		return f, nil
	}
	f.Hunks, err = hunks(string(before), string(after))
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			switch l.Op {
			case "+":
				f.Added++
			case "-":
				f.Removed++
			}
		}
	}
	return f, err
}

// hunks compares lines. The search for the shortest difference is bounded: very different
// files give a correct one that may not be the shortest.
func hunks(before, after string) ([]Hunk, error) {
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return nil, fmt.Errorf("compare lines: %w", err)
	}
	all := make([]Hunk, 0, len(u.Hunks))
	for _, h := range u.Hunks {
		out := Hunk{FromLine: h.FromLine, ToLine: h.ToLine}
		for _, l := range h.Lines {
			line := Line{Text: l.Content}
			switch l.Kind {
			case udiff.Delete:
				line.Op = "-"
				out.FromCount++
			case udiff.Insert:
				line.Op = "+"
				out.ToCount++
			case udiff.Equal:
				line.Op = " "
				out.FromCount++
				out.ToCount++
			}
			if n := len(line.Text); n > 0 && line.Text[n-1] == '\n' {
				line.Text = line.Text[:n-1]
			} else {
				line.NoNewline = true
			}
			out.Lines = append(out.Lines, line)
		}
		// A side without lines is named by the line before it.
		if out.FromCount == 0 {
			out.FromLine--
		}
		if out.ToCount == 0 {
			out.ToLine--
		}
		all = append(all, out)
	}
	return all, nil
}
