package rewind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/store"
)

// Plan is a move that was worked out and not yet made. It is opaque, and good for one Apply.
type Plan struct {
	request Request
	draft   *draft
	used    bool
}

// Result says what the plan would do.
func (p *Plan) Result() Result { return p.draft.result }

// Plan works out a move and writes nothing. A plan with conflicts is returned together with
// ErrConflict; its Result lists them. Other errors: ErrBusy, store.ErrNoTurn, ErrNoSession,
// *DamageError, ErrExpired, ErrNothingToUndo, ErrNothingToRedo, ErrReadOnly, and ErrStale when
// another operation is at work meanwhile.
func (e *Engine) Plan(ctx context.Context, r Request) (*Plan, error) {
	var a *aim
	err := e.capture.Store.View(ctx, func(tx *store.Tx) error {
		var err error
		if a, err = resolve(tx, r); err != nil {
			return err
		}
		return e.idle(tx, r, a)
	})
	if err != nil {
		return nil, err
	}
	d, err := e.draft(ctx, r, a, nil)
	if err != nil {
		return nil, err
	}
	p := &Plan{request: r, draft: d}
	if len(d.result.Conflicts) > 0 {
		return p, ErrConflict
	}
	return p, e.provable(ctx, d)
}

// draft is a plan's substance.
type draft struct {
	aim    *aim
	moves  map[store.Path]store.Move
	seen   map[store.Path]capture.Reading
	looked []store.Change // differences from what the line knows, to be recorded before the move
	steps  map[store.Path]step
	left   map[store.Path]bool
	result Result
}

// step is a path that will be written.
type step struct {
	from, to store.State
	implied  bool // not asked for by the history: a folder to be made, or something in the way
}

// draft reads the disk and decides about every path. Readings of an earlier draft are used
// again where an lstat proves that they still hold.
func (e *Engine) draft(ctx context.Context, r Request, a *aim, earlier map[store.Path]capture.Reading) (*draft, error) {
	d := &draft{
		aim: a, moves: map[store.Path]store.Move{}, steps: map[store.Path]step{}, left: map[store.Path]bool{},
		seen: maps.Clone(earlier),
		result: Result{
			Kind: r.Kind, Session: a.moving.ID, Turn: a.turn, Scope: r.Scope,
			Messages: a.messages, Prompt: a.prompt, Undoes: a.of.ID,
		},
	}
	if r.Kind == store.OpFork {
		d.result.Parent = a.session.ID
	}
	var stale []store.Path
	for _, m := range a.moves {
		d.moves[m.Path] = m
		if was, ok := d.seen[m.Path]; !ok || !e.capture.Root.Unchanged(m.Path, was.Sig) {
			stale = append(stale, m.Path)
		}
	}
	if err := e.read(ctx, d, stale); err != nil {
		return nil, err
	}
	if err := e.only(ctx, r, a); err != nil {
		return nil, err
	}
	conflicts := map[store.Path]Conflict{}
	undoes := map[store.Path]bool{}
	for _, m := range a.moves {
		d.decide(r, m, conflicts, undoes)
	}
	if err := e.shape(ctx, r, d, conflicts); err != nil {
		return nil, err
	}
	if err := e.lookImplied(ctx, d); err != nil {
		return nil, err
	}
	return d, e.report(ctx, d, conflicts, undoes)
}

// only refuses names that select nothing: a slip there would leave all files as they are and
// look like success. A path that the line knows, and that simply needs no change, is fine.
func (e *Engine) only(ctx context.Context, r Request, a *aim) error {
	if len(r.Only) == 0 {
		return nil
	}
	if !a.files {
		return fmt.Errorf("paths select files, and this move leaves files alone: %w", ErrInvalid)
	}
	return e.capture.Store.View(ctx, func(tx *store.Tx) error {
		for _, o := range r.Only {
			if slices.ContainsFunc(a.moves, func(m store.Move) bool { return m.Path == o || m.Path.Below(o) }) {
				continue
			}
			row, err := tx.Newest(a.from, o)
			if err != nil {
				return err
			}
			if row == nil {
				return fmt.Errorf("%s: %w", o, ErrNoPath)
			}
		}
		return nil
	})
}

func (e *Engine) read(ctx context.Context, d *draft, paths []store.Path) error {
	if d.seen == nil {
		d.seen = map[store.Path]capture.Reading{}
	}
	read, err := e.capture.Sum(ctx, paths)
	if err != nil {
		return err
	}
	for _, r := range read {
		d.seen[r.Path] = r
	}
	return nil
}

// decide sorts one path into steps, left or conflicts (I5, I6, I12, I13).
func (d *draft) decide(r Request, m store.Move, conflicts map[store.Path]Conflict, undoes map[store.Path]bool) {
	p, a, disk := m.Path, d.aim, d.seen[m.Path].State
	last := m.Last
	if last == 0 && a.newest[p] != nil {
		last = a.newest[p].Origin
	}
	unverified := m.Expect.Kind == store.Uncaptured
	if m.Expect.Known() && m.Expect != disk {
		c := store.Change{Path: p, Source: store.SourceExternal, Origin: store.External, Before: m.Expect, After: disk}
		if a.called[p] {
			c.Source, c.Origin = store.SourceTool, store.Agent
			m.Agent = true
		} else {
			m.Foreign = true
		}
		m.Last, last = c.Origin, c.Origin
		d.looked = append(d.looked, c)
		d.moves[p] = m
	}
	pinned, isPinned := a.pins[p]
	want := m.Want
	if isPinned {
		want = pinned.want
	}
	switch {
	case disk == want:
	case !a.files || a.hold[p] || !wanted(r.Only, p):
		d.left[p] = true
	case want.Kind == store.Uncaptured:
		d.result.NotCovered = append(d.result.NotCovered, NotCovered{Path: p, Reason: NotCaptured})
		d.left[p] = true
	case !m.Agent && (!isPinned || pinned.left):
		d.left[p] = true // only a person changed it (I13)
	case disk.Kind == store.Uncaptured:
		d.clash(r, conflicts, Conflict{Path: p, Reason: NotCaptured, Final: true})
	case last == store.External && !(isPinned && disk == pinned.made):
		c := Conflict{Path: p, Reason: ChangedByOther}
		if unverified {
			c.Reason = Unverified
		}
		if !d.clash(r, conflicts, c) {
			d.steps[p] = step{from: disk, to: want}
		}
	case a.overlap[p] && !isPinned && d.clash(r, conflicts, Conflict{Path: p, Reason: Overlapping}):
	default:
		d.steps[p] = step{from: disk, to: want}
		undoes[p] = m.Foreign
	}
}

// lookImplied compares what is implied, and no move is about, with what the line knows of it:
// somebody removed a folder that is needed again, or put something where a file goes.
func (e *Engine) lookImplied(ctx context.Context, d *draft) error {
	var paths []store.Path
	for p, s := range d.steps {
		if _, moved := d.moves[p]; s.implied && !moved {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return e.capture.Store.View(ctx, func(tx *store.Tx) error {
		known, err := tx.Known(d.aim.from, paths)
		if err != nil {
			return err
		}
		for p, row := range known {
			d.aim.newest[p] = row
			if disk := d.steps[p].from; row.After != disk {
				c := store.Change{Path: p, Source: store.SourceExternal, Origin: store.External, Before: row.After, After: disk}
				d.looked = append(d.looked, c)
				row.Origin = c.Origin
			}
		}
		slices.SortFunc(d.looked, func(a, b store.Change) int { return strings.Compare(string(a.Path), string(b.Path)) })
		return nil
	})
}

// clash records a conflict unless the request overrides it; it reports whether the path is
// out of the plan.
func (d *draft) clash(r Request, conflicts map[store.Path]Conflict, c Conflict) bool {
	switch {
	case r.Skip:
		d.left[c.Path] = true
		delete(d.steps, c.Path)
	case r.Force && !c.Final:
		return false
	default:
		conflicts[c.Path] = c
		delete(d.steps, c.Path)
	}
	return true
}

// wanted reports whether p is one of only, or lies below one.
func wanted(only []store.Path, p store.Path) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(o store.Path) bool {
		return p == o || p.Below(o)
	})
}

// report fills the lists of the result, in order.
func (e *Engine) report(ctx context.Context, d *draft, conflicts map[store.Path]Conflict, undoes map[store.Path]bool) error {
	d.result.Folders = map[store.Path]bool{}
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		is := d.steps[p].to
		if is.Kind == store.Absent {
			d.result.Deleted = append(d.result.Deleted, p)
			is = d.steps[p].from
		} else {
			d.result.Written = append(d.result.Written, p)
		}
		if is.Kind == store.Dir {
			d.result.Folders[p] = true
		}
	}
	d.result.Left = slices.Sorted(maps.Keys(d.left))
	for _, p := range d.result.Left {
		if d.seen[p].State.Kind == store.Dir {
			d.result.Folders[p] = true
		}
	}
	return e.capture.Store.View(ctx, func(tx *store.Tx) error {
		if err := explain(tx, d); err != nil {
			return err
		}
		for _, p := range slices.Sorted(maps.Keys(conflicts)) {
			c := conflicts[p]
			w, err := lastWriter(tx, d, p)
			if err != nil {
				return err
			}
			c.LastWriter = w
			d.result.Conflicts = append(d.result.Conflicts, c)
		}
		for _, p := range slices.Sorted(maps.Keys(undoes)) {
			if _, goes := d.steps[p]; !undoes[p] || !goes {
				continue
			}
			w, err := foreignWriter(tx, d, p)
			if err != nil {
				return err
			}
			d.result.AlsoUndoes = append(d.result.AlsoUndoes, AlsoUndoes{Path: p, Writer: w})
		}
		return nil
	})
}

// explain gives the paths that are not covered the reason of their gap.
func explain(tx *store.Tx, d *draft) error {
	if len(d.result.NotCovered) == 0 {
		return nil
	}
	gaps, err := tx.Gaps(d.aim.from, -1)
	if err != nil {
		return err
	}
	for i, n := range d.result.NotCovered {
		for _, g := range slices.Backward(gaps) {
			if g.Path == n.Path {
				d.result.NotCovered[i].Reason = g.Reason
				break
			}
		}
	}
	return nil
}

// provable reads every content that the plan needs: an operation that could not be finished
// is not begun.
func (e *Engine) provable(ctx context.Context, d *draft) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		s := d.steps[p]
		if !s.to.HasContent() || (s.from.Kind == s.to.Kind && s.from.Blob == s.to.Blob) {
			continue
		}
		g.Go(func() error {
			err := e.capture.Store.Blobs().Verify(ctx, s.to.Blob)
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil:
				return fmt.Errorf("check contents: %w", ctx.Err())
			case errors.Is(err, blob.ErrExpired):
				return fmt.Errorf("%s: %w", p, ErrExpired)
			}
			return &DamageError{Path: p, Blob: s.to.Blob, Err: err}
		})
	}
	return g.Wait()
}
