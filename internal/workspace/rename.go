package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"reasonix/store"
)

// canSwap reports whether names can be exchanged here. A file system may still be unable to:
// then the calls give errors.ErrUnsupported.
func (a *applier) canSwap() bool { return canSwap && !a.s.r.noSwap }

// exchange swaps the names old in from and name in to, in one step. p is the path that it is about.
func (a *applier) exchange(from *folder, old string, to *folder, name string, p store.Path) error {
	return a.call("exchange", exchangeAt, from, old, to, name, p)
}

// renameNew renames without replacing: fs.ErrExist when name is there. Where the system cannot
// do that in one step, something made between two system calls is overwritten.
func (a *applier) renameNew(from *folder, old string, to *folder, name string, p store.Path) error {
	if a.canSwap() {
		err := a.call("rename", renameNewAt, from, old, to, name, p)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if _, err := to.lstat(name); err == nil {
		return &fs.PathError{Op: "rename", Path: string(p), Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.rename(from, old, to, name, p)
}

// rename renames and replaces what has the name.
func (a *applier) rename(from *folder, old string, to *folder, name string, p store.Path) error {
	return a.call("rename", renameAt, from, old, to, name, p)
}

type renameCall func(from *os.File, old string, to *os.File, name string) error

func (a *applier) call(op string, do renameCall, from *folder, old string, to *folder, name string, p store.Path) error {
	hf, err := from.handle()
	if err != nil {
		return err
	}
	ht, err := to.handle()
	if err != nil {
		return err
	}
	if err := a.s.r.fault(op, p); err != nil {
		return err
	}
	if err = do(hf, old, ht, name); err == nil {
		return nil
	}
	if isUnsupported(err) {
		err = errors.Join(errors.ErrUnsupported, err)
	}
	return &fs.PathError{Op: op, Path: string(p), Err: err}
}

// chmod sets the permission bits of name, which lstat described as fi, through an open handle:
// no link is followed and nothing else that took the name is changed. Folders keep their
// setgid and sticky bits; a setuid bit is never set.
func (a *applier) chmod(f *folder, name string, it *item, fi fs.FileInfo, mode uint32) error {
	bits := fs.FileMode(mode).Perm()
	if fi.IsDir() {
		bits |= fi.Mode() & (fs.ModeSetgid | fs.ModeSticky)
	}
	if err := a.s.r.fault("chmod", it.Path); err != nil {
		return err
	}
	file, err := f.openFile(name)
	if errors.Is(err, fs.ErrPermission) {
		a.dirty.folder(f)
		return chmodAt(f, name, bits)
	}
	if err != nil {
		return err
	}
	now, err := file.Stat()
	if err == nil && !os.SameFile(fi, now) {
		err = &StaleError{Path: it.Path}
	}
	if err == nil {
		err = file.Chmod(bits)
	}
	if errors.Is(err, fs.ErrPermission) { // Windows wants a handle that may write attributes
		err = chmodAt(f, name, bits)
	}
	if err != nil {
		_ = file.Close() // the first error is the one to tell
		return fmt.Errorf("chmod: %w", err)
	}
	return a.dirty.file(a.ctx, f, file, it.Path)
}
