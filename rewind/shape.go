package rewind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// shape makes the steps fit the folders on disk: folders that files need, folders that must
// be empty before they can go, and what stands in the way of either.
func (e *Engine) shape(ctx context.Context, r Request, d *draft, conflicts map[store.Path]Conflict) error {
	for again := true; again; {
		was := maps.Clone(d.steps)
		for _, p := range slices.Sorted(maps.Keys(d.steps)) {
			s, ok := d.steps[p]
			if !ok {
				continue
			}
			var err error
			if s.to.Kind != store.Absent {
				err = e.needParents(ctx, r, d, p, conflicts)
			}
			if _, still := d.steps[p]; err == nil && still && s.from.Kind == store.Dir && s.to.Kind != store.Dir && s.to.Kind != store.Absent {
				err = e.clearFolder(ctx, r, d, p, conflicts)
			}
			if err != nil {
				return err
			}
		}
		again = !maps.Equal(was, d.steps)
	}
	if err := e.keepFolders(d); err != nil {
		return err
	}
	return e.writable(d)
}

// needParents sees to the folders above a path that will be there.
func (e *Engine) needParents(ctx context.Context, r Request, d *draft, p store.Path, conflicts map[store.Path]Conflict) error {
	for up := p.Parent(); up != ""; up = up.Parent() {
		if s, ok := d.steps[up]; ok {
			if s.to.Kind != store.Dir {
				d.clash(r, conflicts, Conflict{Path: p, Reason: InTheWay, Entries: []store.Path{up}, Final: true})
				return nil
			}
			continue
		}
		if _, read := d.seen[up]; !read {
			if err := e.read(ctx, d, []store.Path{up}); err != nil {
				return err
			}
		}
		is := d.seen[up].State
		switch is.Kind {
		case store.Dir:
			return nil
		case store.Absent:
		case store.Symlink:
			d.clash(r, conflicts, Conflict{Path: p, Reason: SymlinkedParent, Entries: []store.Path{up}, Final: true})
			return nil
		case store.File, store.Uncaptured:
			c := Conflict{Path: p, Reason: InTheWay, Entries: []store.Path{up}, Final: is.Kind == store.Uncaptured}
			if d.clash(r, conflicts, c) {
				return nil
			}
		}
		d.steps[up] = step{from: is, to: store.State{Kind: store.Dir, Mode: 0o755}, implied: true}
		delete(d.left, up)
	}
	return nil
}

// clearFolder sees to what lies in a folder whose place a file or link needs.
func (e *Engine) clearFolder(ctx context.Context, r Request, d *draft, p store.Path, conflicts map[store.Path]Conflict) error {
	extra, sealed, err := e.unplanned(d, p)
	if err != nil || len(extra) == 0 {
		return err
	}
	if !sealed && r.Force {
		if err := e.read(ctx, d, extra); err != nil {
			return err
		}
		sealed = slices.ContainsFunc(extra, func(x store.Path) bool { return d.seen[x].State.Kind == store.Uncaptured })
	}
	if d.clash(r, conflicts, Conflict{Path: p, Reason: InTheWay, Entries: extra[:min(20, len(extra))], Final: sealed}) {
		return nil
	}
	for _, x := range extra {
		d.steps[x] = step{from: d.seen[x].State, to: store.AbsentState, implied: true}
		delete(d.left, x)
	}
	return nil
}

// unplanned lists what lies below a folder on disk and will not be gone; sealed is true when
// something of it may never be touched.
func (e *Engine) unplanned(d *draft, p store.Path) (extra []store.Path, sealed bool, err error) {
	entries, err := e.capture.Root.List(p)
	if err != nil {
		return nil, false, gone(p, err)
	}
	for _, en := range entries {
		s, planned := d.steps[en.Path]
		if !planned || s.to.Kind != store.Absent {
			extra = append(extra, en.Path)
		}
		if en.Protected {
			sealed = true
			continue
		}
		if en.Kind == store.Dir {
			below, sealedBelow, err := e.unplanned(d, en.Path)
			if err != nil {
				return nil, false, err
			}
			extra, sealed = append(extra, below...), sealed || sealedBelow
		}
	}
	return extra, sealed, nil
}

// gone is the error of a folder that cannot be listed. It was there when the plan read it: if it is
// not any more, another operation is at work, and the plan is out of date before it is made.
func gone(p store.Path, err error) error {
	var blocked *workspace.BlockedError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &blocked) {
		return fmt.Errorf("list %s: %w: the folder went away meanwhile", p, ErrStale)
	}
	return fmt.Errorf("list %s: %w", p, err)
}

// keepFolders takes out of the plan the removal of folders that will not be empty: they hold
// something that is not the agent's. The deepest are looked at first.
func (e *Engine) keepFolders(d *draft) error {
	paths := slices.Sorted(maps.Keys(d.steps))
	for _, p := range slices.Backward(paths) {
		s := d.steps[p]
		if s.from.Kind != store.Dir || s.to.Kind != store.Absent {
			continue
		}
		entries, err := e.capture.Root.List(p)
		if err != nil {
			return gone(p, err)
		}
		stays := slices.ContainsFunc(entries, func(en workspace.Entry) bool {
			s, planned := d.steps[en.Path]
			return !planned || s.to.Kind != store.Absent
		})
		// Something below it may be about to be made as well.
		stays = stays || slices.ContainsFunc(paths, func(q store.Path) bool {
			q2, planned := d.steps[q]
			return planned && q2.to.Kind != store.Absent && q.Below(p)
		})
		if stays {
			delete(d.steps, p)
			d.left[p] = true
		}
	}
	return nil
}

// writable refuses, before anything is written, what the system would refuse in the middle.
func (e *Engine) writable(d *draft) error {
	asked := map[store.Path]bool{}
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		up := p.Parent()
		if _, planned := d.steps[up]; planned || asked[up] {
			continue
		}
		asked[up] = true
		if err := e.capture.Root.Writable(p); err != nil {
			return fmt.Errorf("%w: %w", ErrReadOnly, err)
		}
	}
	return nil
}
