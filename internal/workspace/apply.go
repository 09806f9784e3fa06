package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reasonix/store"
)

// Apply carries out the steps. When it returns nil every path is in its To state, but for the
// folders that Kept tells, everything is durable and no staged file is left.
//
// The order: folders that may not be written but are steps are opened; what stands in the way
// of a change between folder and no folder goes, deepest first (ErrInTheWay when the folder
// holds anything else); folders are made, shallow first; files and links are renamed into
// place; the other removals, deepest first, where a folder that is not empty stays; what was
// replaced is unlinked; sync; modes of folders, deepest first, and sync again. A parent folder that is missing and no step is an error.
//
// Each path is looked at immediately before it is replaced or removed, and, where the system
// can exchange names, again afterwards, before anything is deleted: a path that is neither From
// nor To gives a *StaleError and keeps what it holds (I7). A path that is in To already is
// passed over, so that a repetition after a crash goes on where it was stopped.
//
// After an error, and after a crash, each path is in From, in To, or in a state that its
// step's Intermediate accepts (I8). The caller then discards, reads all paths and applies the
// steps from what it found back to From.
func (s *Staged) Apply(ctx context.Context) error {
	bulk := canSyncAll && len(s.items) > fewFiles
	a := &applier{s: s, ctx: ctx, c: s.r.cursor(), dirty: newDirty(s.r, bulk)}
	defer a.c.close()
	defer func() { a.dirty.close() }()
	for _, phase := range [...]func() error{
		a.openFolders, a.clearTheWay, a.makeFolders, a.replaceAll, a.removeRest, a.dropStaged, a.syncAll, a.setModes, a.syncAll,
	} {
		if err := phase(); err != nil {
			return err
		}
	}
	return nil
}

// syncAll makes durable what is dirty. It comes before the modes of folders, since a folder may
// be closed to its owner by its mode; those are synced through the handles that set them.
func (a *applier) syncAll() error {
	err := a.dirty.sync(a.ctx)
	a.dirty.close()
	a.dirty = newDirty(a.s.r, false)
	return err
}

// Kept returns the folders that were to be removed and stay, since they hold something else.
func (s *Staged) Kept() []store.Path { return s.kept }

// applier is one run of Apply or Discard.
type applier struct {
	s     *Staged
	ctx   context.Context
	c     *cursor
	dirty *dirty
}

// each calls do for the items that want takes, in order or in reverse, which is deepest first.
func (a *applier) each(reverse bool, want func(*item) bool, do func(f *folder, leaf string, it *item) error) error {
	for i := range a.s.items {
		if reverse {
			i = len(a.s.items) - 1 - i
		}
		it := a.s.items[i]
		if !want(it) {
			continue
		}
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if err := a.one(it, do); err != nil {
			return fmt.Errorf("%s %q: %w", it.verb(), it.Path, err)
		}
	}
	return nil
}

func (a *applier) one(it *item, do func(f *folder, leaf string, it *item) error) error {
	dir, leaf := split(it.Path)
	f, err := a.c.enter(dir)
	if it.To.Kind == store.Absent && meansAbsent(err) {
		return nil // nothing is there unless a link is followed
	}
	var blocked *BlockedError
	if errors.As(err, &blocked) {
		return &BlockedError{Path: it.Path, Parent: blocked.Parent}
	}
	if err != nil {
		return err
	}
	return do(f, leaf, it)
}

func (it *item) verb() string {
	switch {
	case it.To.Kind == store.Absent:
		return "remove"
	case it.From.Kind == store.Absent:
		return "create"
	case it.From.Kind == it.To.Kind && it.From.Blob == it.To.Blob:
		return "change mode of"
	}
	return "replace"
}

// openFolders lets the owner into folders whose mode would keep this operation out. The mode
// that they are to have comes with setModes.
func (a *applier) openFolders() error {
	return a.each(false, (*item).closed, func(f *folder, leaf string, it *item) error {
		fi, err := f.lstat(leaf)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !fi.IsDir() || uint32(fi.Mode().Perm()) != it.From.Mode {
			return nil // whether that is well is seen when its turn comes
		}
		return a.chmod(f, leaf, it, fi, it.From.Mode|folderMode)
	})
}

func (a *applier) clearTheWay() error {
	inWay := func(it *item) bool { return it.inWay }
	return a.each(true, inWay, func(f *folder, leaf string, it *item) error {
		if it.From.Kind != store.Dir {
			return a.remove(f, leaf, it)
		}
		err := a.removeFolder(f, leaf, it)
		if isNotEmpty(err) {
			return ErrInTheWay
		}
		return err
	})
}

func (a *applier) makeFolders() error {
	toDir := func(it *item) bool { return it.To.Kind == store.Dir }
	return a.each(false, toDir, func(f *folder, leaf string, it *item) error {
		fi, err := f.lstat(leaf)
		if err == nil {
			if st := folderState(fi); st != it.From && st != it.To && !it.Intermediate(st) {
				return &StaleError{Path: it.Path}
			}
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if it.From.Kind == store.Dir {
			return &StaleError{Path: it.Path}
		}
		if err := a.s.r.fault("mkdir", it.Path); err != nil {
			return err
		}
		if err := f.dir.Mkdir(leaf, folderMode); err != nil {
			return err
		}
		a.dirty.folder(f)
		return nil
	})
}

// folderState is the state of what fi describes if it is a folder, else the zero state.
func folderState(fi fs.FileInfo) store.State {
	if !fi.IsDir() {
		return store.State{}
	}
	return store.State{Kind: store.Dir, Mode: uint32(fi.Mode().Perm())}
}

func (a *applier) replaceAll() error {
	return a.each(false, func(it *item) bool { return it.To.HasContent() }, a.replace)
}

func (a *applier) removeRest() error {
	rest := func(it *item) bool { return it.To.Kind == store.Absent && !it.inWay }
	return a.each(true, rest, func(f *folder, leaf string, it *item) error {
		if it.From.Kind != store.Dir {
			return a.remove(f, leaf, it)
		}
		err := a.removeFolder(f, leaf, it)
		if !isNotEmpty(err) {
			return err
		}
		a.s.kept = append(a.s.kept, it.Path)
		return a.setMode(f, leaf, it, it.From.Mode)
	})
}

func (a *applier) setModes() error {
	toDir := func(it *item) bool { return it.To.Kind == store.Dir }
	return a.each(true, toDir, func(f *folder, leaf string, it *item) error {
		return a.setMode(f, leaf, it, it.To.Mode)
	})
}

// setMode gives a folder the mode that it is to keep, if it has another one.
func (a *applier) setMode(f *folder, leaf string, it *item, mode uint32) error {
	fi, err := f.lstat(leaf)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return &StaleError{Path: it.Path}
	}
	if uint32(fi.Mode().Perm()) == mode {
		return nil
	}
	return a.chmod(f, leaf, it, fi, mode)
}

// removeFolder removes the folder leaf of f if it is empty; isNotEmpty tells the other case.
func (a *applier) removeFolder(f *folder, leaf string, it *item) error {
	fi, err := f.lstat(leaf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st := folderState(fi)
	if !fi.IsDir() {
		return a.mustBeDone(f, leaf, it)
	}
	if st != it.From && !it.Intermediate(st) {
		return &StaleError{Path: it.Path}
	}
	if a.s.r.isProtectedInfo(fi) {
		return ErrProtected
	}
	if err := a.s.r.fault("rmdir", it.Path); err != nil {
		return err
	}
	if err := rmdirAt(f, leaf); err != nil {
		return err
	}
	a.dirty.folder(f)
	return nil
}

// mustBeDone is nil when leaf is in its To state already.
func (a *applier) mustBeDone(f *folder, leaf string, it *item) error {
	found, err := a.look(f, leaf, it, false)
	if err == nil && found != isTo {
		err = &StaleError{Path: it.Path}
	}
	return err
}
