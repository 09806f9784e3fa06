// Package bench measures what this program promises about time and space, on the machine and the
// tree at hand, beside the two usual ways to do the same: a shadow git repository, and one JSON
// file for each turn with the contents in it.
//
// Terms. A line is one row of the table: a figure of ours and those of others for the same work.
// Sides are measured by turns, one right after the other, in several rounds; what is reported
// are medians, and the median of the ratios within a round, since a machine that others use too
// is slower in one minute than in the next.
//
// Everything happens in folders that are made for a line or a run and removed afterwards. A tree
// that is given is only read.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Options say what is measured; the zero value, with Now, is the whole table but what needs
// processes.
type Options struct {
	// Tree is the folder whose copy is scanned and whose texts are edited; "" means files that
	// are made up.
	Tree string
	// Only are the names of lines; none means all.
	Only []string
	// Quick makes everything a small part of its size, in one round: whether it works, not how fast.
	Quick bool
	// Program is the file of the program, for what processes do; "" leaves that out.
	Program string
	// Now is the clock. It must not be nil.
	Now func() time.Time
	// Begin, if any, is told of each line before it is measured, with how many come in all.
	Begin func(name string, number, of int)
	// Done, if any, is told of each line once it is measured.
	Done func(Line)
}

// Beside is another way to do the work of a line.
type Beside struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`   // in the unit of the line
	Ratio   float64 `json:"ratio"`   // how many times ours that is: above 1 it is slower, or larger
	Missing string  `json:"missing"` // why it was not measured; "" when it was
}

// Target is what a line has to reach.
type Target struct {
	// Of is "value", "p99" or the name of one of Beside, whose ratio then counts.
	Of      string  `json:"of"`
	AtLeast float64 `json:"at_least"` // 0 where AtMost counts
	AtMost  float64 `json:"at_most"`  // 0 where AtLeast counts
	Met     *bool   `json:"met"`      // nil where it was not measured, or only quickly
}

// Line is one row of the table.
type Line struct {
	Name    string   `json:"name"` // stable
	What    string   `json:"what"`
	Unit    string   `json:"unit"`  // ms, bytes or MiB
	Value   float64  `json:"value"` // a median where it is a time
	P99     float64  `json:"p99"`   // 0 where there are too few for one
	Beside  []Beside `json:"beside"`
	Targets []Target `json:"targets"`
	Note    string   `json:"note"`
	Missing string   `json:"missing"` // why nothing was measured; "" when it was
	Error   string   `json:"error"`   // what went wrong; "" when nothing did
}

// ErrNoLine is returned when no line has a name that was asked for.
var ErrNoLine = errors.New("no such line")

// errMissing ends a line that cannot be measured here.
type errMissing string

func (e errMissing) Error() string { return string(e) }

// line is how a row comes about.
type line struct {
	name, what, unit string
	targets          []Target
	measure          func(*rig) (figures, error)
}

// figures are what a line measured.
type figures struct {
	value, p99 float64
	beside     []Beside
	note       string
}

// all are the lines, in the order of the table. Those about memory come first: what a process is said to
// have had at most begins, on Linux, with what the one that started it had.
func all() []line {
	return slices.Concat(memoryLines(), recordLines(), processLines(), scanLines(), restoreLines(), sizeLines(), conversationLines(), writerLines())
}

// List is what can be measured: names and what they stand for.
func List() []Line {
	var lines []Line
	for _, l := range all() {
		lines = append(lines, Line{Name: l.name, What: l.what, Unit: l.unit, Beside: []Beside{}, Targets: l.targets})
	}
	return lines
}

// Run measures. A line that fails says so and does not keep others from being measured; errors are
// ErrNoLine, that of ctx, and that no folder can be made.
func Run(ctx context.Context, o Options) ([]Line, error) {
	chosen, err := choose(o.Only)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "reasonix-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return nil, err
	}
	r := &rig{ctx: ctx, o: o, temp: temp, kept: map[string]any{}}
	if r.git, err = exec.LookPath("git"); err != nil {
		r.git = ""
	}
	defer r.close()
	var done []Line
	for i, l := range chosen {
		if o.Begin != nil {
			o.Begin(l.name, i+1, len(chosen))
		}
		out := r.one(l)
		if err := ctx.Err(); err != nil {
			return done, err
		}
		if o.Done != nil {
			o.Done(out)
		}
		done = append(done, out)
	}
	return done, nil
}

// choose finds the lines with the names only, in the order of the table.
func choose(only []string) ([]line, error) {
	lines := all()
	for _, name := range only {
		if !slices.ContainsFunc(lines, func(l line) bool { return l.name == name }) {
			return nil, fmt.Errorf("%q: %w", name, ErrNoLine)
		}
	}
	if len(only) == 0 {
		return lines, nil
	}
	return slices.DeleteFunc(lines, func(l line) bool { return !slices.Contains(only, l.name) }), nil
}

// one measures one line.
func (r *rig) one(l line) Line {
	out := Line{Name: l.name, What: l.what, Unit: l.unit, Beside: []Beside{}, Targets: []Target{}}
	f, err := l.measure(r)
	var missing errMissing
	switch {
	case errors.As(err, &missing):
		out.Missing = missing.Error()
	case err != nil:
		out.Error = err.Error()
	default:
		out.Value, out.P99, out.Note = f.value, f.p99, f.note
		out.Beside = append(out.Beside, f.beside...)
	}
	for _, t := range l.targets {
		if !r.o.Quick && out.Missing == "" && out.Error == "" {
			t.Met = t.met(f)
		}
		out.Targets = append(out.Targets, t)
	}
	return out
}

// met compares; nil where what it is of was not measured.
func (t Target) met(f figures) *bool {
	got := f.value
	switch t.Of {
	case "value":
	case "p99":
		got = f.p99
	default:
		i := slices.IndexFunc(f.beside, func(b Beside) bool { return b.Name == t.Of && b.Missing == "" })
		if i < 0 {
			return nil
		}
		got = f.beside[i].Ratio
	}
	met := got >= t.AtLeast && (t.AtMost == 0 || got <= t.AtMost)
	return &met
}
