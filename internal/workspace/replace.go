package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"reasonix/store"
)

// found is what a look at a path gave.
type found uint8

const (
	isOther   found = iota // somebody else's doing
	isFrom                 // as expected
	isTo                   // as wanted
	isBetween              // as an interrupted Apply may leave it
)

// look compares what lies under name in f with the step of it. moved says that it was renamed
// there, which changes ctime. A signature that is known and not racy saves reading the content.
func (a *applier) look(f *folder, name string, it *item, moved bool) (found, error) {
	kind := store.Absent
	fi, err := f.lstat(name)
	switch {
	case err == nil:
		if a.s.r.isProtectedInfo(fi) {
			return isOther, ErrProtected
		}
		sig := sigOf(fi, time.Time{})
		if s := it.Sig; !s.Racy && it.From.Kind == s.Kind && (s.Same(sig) || moved && s.sameMoved(sig)) {
			return isFrom, nil
		}
		kind = sig.Kind
	case !errors.Is(err, fs.ErrNotExist):
		return isOther, err
	}
	st := store.State{Kind: kind}
	if kind == store.Dir {
		st = folderState(fi)
	} else if st.HasContent() && (kind == it.From.Kind || kind == it.To.Kind) {
		reading, err := f.read(a.ctx, name, hashOnly)
		if err != nil {
			return isOther, err
		}
		st = reading.State
	}
	switch {
	case st == it.From:
		return isFrom, nil
	case st == it.To:
		return isTo, nil
	case kind != store.File && it.Intermediate(st): // such a file is a power cut's doing, and From for whoever goes back
		return isBetween, nil
	}
	return isOther, nil
}

// replace brings the file or link leaf of f into its To state.
func (a *applier) replace(f *folder, leaf string, it *item) error {
	found, err := a.look(f, leaf, it, false)
	if err != nil || found == isTo {
		return err
	}
	if found == isOther {
		return &StaleError{Path: it.Path}
	}
	if it.held == heldNothing {
		return a.modeOnly(f, leaf, it)
	}
	h := a.c.at(it.home)
	if h == nil {
		return fmt.Errorf("folder of the staged file %q: %w", it.home, fs.ErrNotExist)
	}
	if err := a.publish(h, it); err != nil {
		return err
	}
	a.dirty.folder(f)
	if h != f {
		a.dirty.folder(h)
	}
	if it.From.Kind == store.Absent || found == isBetween {
		return a.create(h, f, leaf, it)
	}
	return a.swap(h, f, leaf, it)
}

// modeOnly changes the permission bits of a file whose bytes, mtime and inode stay (I5).
func (a *applier) modeOnly(f *folder, leaf string, it *item) error {
	fi, err := f.lstat(leaf)
	if err != nil {
		return err
	}
	return a.chmod(f, leaf, it, fi, it.To.Mode)
}

// publish gives the staged file its final mode, at the last moment: until then nobody else may
// read what may be a secret.
func (a *applier) publish(h *folder, it *item) error {
	fi, err := h.lstat(it.name)
	if err != nil {
		return err
	}
	if !it.isMade(fi) {
		return fmt.Errorf("staged file %q was changed by somebody else", join(h.path, it.name))
	}
	if it.To.Kind != store.File {
		return nil
	}
	return a.chmod(h, it.name, it, fi, it.To.Mode)
}

// create renames the staged file to leaf, where nothing may be.
func (a *applier) create(h, f *folder, leaf string, it *item) error {
	err := a.renameNew(h, it.name, f, leaf, it.Path)
	if errors.Is(err, fs.ErrExist) {
		return &StaleError{Path: it.Path}
	}
	if err == nil {
		it.held = heldNothing
	}
	return err
}

// swap exchanges the staged file with leaf and examines what came out: it goes at the end, or
// back at once if it is not what was expected.
func (a *applier) swap(h, f *folder, leaf string, it *item) error {
	if !a.canSwap() {
		return a.renameOver(h, f, leaf, it)
	}
	err := a.exchange(h, it.name, f, leaf, it.Path)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return a.renameOver(h, f, leaf, it)
	case errors.Is(err, fs.ErrNotExist):
		return &StaleError{Path: it.Path} // removed since the look
	case err != nil:
		return err
	}
	it.held = heldUnknown
	found, err := a.look(h, it.name, it, true)
	if err == nil && found != isFrom {
		err = &StaleError{Path: it.Path}
	}
	if err != nil {
		return errors.Join(err, a.swapBack(h, f, leaf, it))
	}
	it.held = heldOld // dropStaged removes it
	return nil
}

func (a *applier) swapBack(h, f *folder, leaf string, it *item) error {
	if err := a.exchange(h, it.name, f, leaf, it.Path); err != nil {
		return fmt.Errorf("put back %q, which lies at %q: %w", it.Path, join(h.path, it.name), err)
	}
	if fi, err := h.lstat(it.name); err != nil || !it.isMade(fi) {
		// Somebody replaced the new file between the two exchanges. The newest is to have the
		// name; what it replaced may be a person's only copy and stays where it is.
		return errors.Join(err, a.exchange(h, it.name, f, leaf, it.Path))
	}
	it.held = heldNew
	return nil
}

// isMade reports whether fi is the staged file that was made for it. Times are not compared:
// some network file systems set them when they have written the file back.
func (it *item) isMade(fi fs.FileInfo) bool {
	sig := sigOf(fi, time.Time{})
	return sig.Kind == it.made.Kind && sig.Size == it.made.Size &&
		sig.Device == it.made.Device && sig.Inode == it.made.Inode
}

// renameOver replaces leaf where names cannot be exchanged. Between the look and the rename
// are two system calls.
func (a *applier) renameOver(h, f *folder, leaf string, it *item) error {
	found, err := a.look(f, leaf, it, false)
	if err != nil {
		return err
	}
	if found != isFrom {
		return &StaleError{Path: it.Path}
	}
	if err := a.rename(h, it.name, f, leaf, it.Path); err != nil {
		return err
	}
	it.held = heldNothing
	return nil
}
