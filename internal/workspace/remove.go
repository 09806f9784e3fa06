package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"reasonix/store"
)

// remove removes the file or link leaf of f. It goes to its staged name first, where it is
// examined: nobody writes to it by name there.
func (a *applier) remove(f *folder, leaf string, it *item) error {
	found, err := a.look(f, leaf, it, false)
	if err != nil || found == isTo || found == isBetween {
		return err
	}
	if found == isOther {
		return &StaleError{Path: it.Path}
	}
	a.dirty.folder(f)
	err = errors.ErrUnsupported
	if a.canSwap() {
		err = a.moveAside(f, leaf, it)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return f.unlink(leaf, it.Path)
	case errors.Is(err, fs.ErrNotExist):
		return nil // somebody removed it since the look
	case err != nil:
		return err
	}
	it.home, it.held = f.path, heldUnknown
	found, err = a.look(f, it.name, it, true)
	if err == nil && found != isFrom {
		err = &StaleError{Path: it.Path}
	}
	if err != nil {
		if back := a.renameNew(f, it.name, f, leaf, it.Path); back != nil {
			return errors.Join(err, fmt.Errorf("put back %q, which lies at %q: %w", it.Path, join(f.path, it.name), back))
		}
		it.held = heldNothing
		return err
	}
	it.held = heldOld
	if it.parentGoes {
		return a.unlinkHeld(f, it)
	}
	return nil // dropStaged removes it
}

// moveAside renames leaf to its staged name.
func (a *applier) moveAside(f *folder, leaf string, it *item) error {
	err := a.renameNew(f, leaf, f, it.name, it.Path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// A leftover of an attempt that nobody swept.
	if err := f.unlink(it.name, it.Path); err != nil {
		return err
	}
	return a.renameNew(f, leaf, f, it.name, it.Path)
}

// unlinkHeld removes the staged file of it, which is new or known to be in the store (I7).
func (a *applier) unlinkHeld(h *folder, it *item) error {
	if err := h.unlink(it.name, it.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	it.held = heldNothing
	a.dirty.folder(h)
	return nil
}

// Discard removes what is still staged; after an Apply that succeeded nothing is. What an
// interrupted Apply took out of its place and could not examine is put back, or stays under
// its staged name, with an error, when it cannot be.
func (s *Staged) Discard() error {
	ctx := context.Background() // rolling back does not end with the caller's patience
	a := &applier{s: s, ctx: ctx, c: s.r.cursor(), dirty: newDirty(s.r, false)}
	defer a.c.close()
	return errors.Join(a.dropStaged(), a.dirty.sync(ctx))
}

// dropStaged removes what is still staged: what was replaced, and what was staged for steps
// that turned out to be done already. It goes on after an error. It is the dearest part of a
// large Apply (ext4 takes 0.2 ms to free a file), so several workers share it.
func (a *applier) dropStaged() error {
	var staged []*item
	for _, it := range a.s.items {
		if it.held != heldNothing {
			staged = append(staged, it)
		}
	}
	var mu sync.Mutex // guards errs
	var errs []error
	err := a.s.r.eachBatch(a.ctx, len(staged), stageWorkers, func(_ context.Context, c *cursor, i int) error {
		if err := a.drop(c, staged[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, fmt.Errorf("discard staged %q: %w", staged[i].Path, err))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

func (a *applier) drop(c *cursor, it *item) error {
	h, err := c.enter(it.home)
	if meansAbsent(err) {
		return nil // it went away with its folder
	}
	if err != nil {
		return err
	}
	if it.held == heldUnknown {
		if err := a.rescue(c, h, it); err != nil || it.held == heldNothing {
			return err
		}
	}
	return a.unlinkHeld(h, it)
}

// rescue decides about what came out and was not examined: the From state may go, anything
// else goes back to its place.
func (a *applier) rescue(c *cursor, h *folder, it *item) error {
	found, err := a.look(h, it.name, it, true)
	if err != nil {
		return err
	}
	if found == isFrom {
		it.held = heldOld
		return nil
	}
	dir, leaf := split(it.Path)
	f, err := c.enter(dir)
	if err != nil {
		return err
	}
	fi, err := f.lstat(leaf)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := a.renameNew(h, it.name, f, leaf, it.Path); err != nil {
			return err
		}
		it.held = heldNothing
		a.dirty.folder(f)
		return nil
	case err == nil && it.isMade(fi):
		return a.swapBack(h, f, leaf, it)
	}
	return errors.Join(err, fmt.Errorf("%q holds what was at this path, and stays", join(h.path, it.name)))
}

// Sweep removes the staged files of the operation id that a crash left, wherever they can lie
// for the given paths, and makes that durable. It is idempotent; files of other operations
// stay. Call it before the operation's paths are read for rolling back.
//
// What is removed is a staged content, or what was replaced, which is in the store (I7). The one
// exception cannot be told apart: an edit of somebody else that hit the few microseconds between
// the last look and the exchange, when the power failed in the next ones.
func (r *Root) Sweep(id string, paths []store.Path) error {
	c := r.cursor()
	defer c.close()
	d := newDirty(r, false)
	var errs []error
	for _, p := range slices.SortedFunc(slices.Values(paths), comparePaths) {
		if err := c.sweep(p, stageName(id, p), d); err != nil {
			errs = append(errs, fmt.Errorf("sweep %q: %w", p, err))
		}
	}
	return errors.Join(append(errs, d.sync(context.Background()))...)
}

// sweep looks for a staged file in every folder from the root down to that of p.
func (c *cursor) sweep(p store.Path, name string, d *dirty) error {
	if err := c.r.check(p); err != nil {
		return err
	}
	dir, _ := split(p)
	last, err := c.nearest(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a folder is closed only once nothing staged is left in it
	}
	if err != nil {
		return err
	}
	for _, f := range c.chain {
		fi, err := f.lstat(name)
		if err == nil && !fi.IsDir() {
			err = f.unlink(name, p)
			d.folder(f)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if f == last {
			break
		}
	}
	return nil
}
