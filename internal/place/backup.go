package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"reasonix/store"
)

var (
	// ErrUnsound is returned for a copy of a store that contradicts itself.
	ErrUnsound = errors.New("the copy is not sound")
	// ErrInUse is returned when another process has a store open that is to be replaced.
	ErrInUse = errors.New("another program has the store open")
)

// Backup writes a copy of a store to a new file (0600), while others write into the store: it holds
// what was committed when it began. It is checked before it gets its name, and durable then; a kill
// leaves at most a file whose name ends in .part, which the next Backup replaces. A file that is there
// already is fs.ErrExist; a copy that contradicts itself, because its store does, is ErrUnsound.
func Backup(ctx context.Context, s *store.Store, to string) (size int64, err error) {
	if _, err := os.Lstat(to); err == nil {
		return 0, &fs.PathError{Op: "back up to", Path: to, Err: fs.ErrExist}
	}
	part := to + ".part"
	if err := remove(part); err != nil {
		return 0, err
	}
	if err := s.Backup(ctx, part); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove(part)) }()
	if _, err := sound(ctx, part); err != nil {
		return 0, err
	}
	info, err := os.Stat(part)
	if err != nil {
		return 0, err
	}
	// A link, unlike a rename, replaces nothing that came meanwhile.
	if err := os.Link(part, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return 0, err
		}
		if err := os.Rename(part, to); err != nil { // a file system without links
			return 0, err
		}
	}
	return info.Size(), syncDir(filepath.Dir(to))
}

// sound opens a copy for reading and checks it.
func sound(ctx context.Context, file string) (w store.Workspace, err error) {
	s, err := store.Open(ctx, file, store.Options{ReadOnly: true})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	problems, err := s.Verify(ctx, false, nil)
	if err != nil {
		return w, err
	}
	if len(problems) > 0 {
		return w, fmt.Errorf("%s: %s: %w", file, problems[0].Detail, ErrUnsound)
	}
	err = s.View(ctx, func(tx *store.Tx) (err error) { w, err = tx.Workspace(); return err })
	return w, err
}

// Restored says what a Restore did.
type Restored struct {
	Store string
	From  string // the folder that the backup was about
	Kept  string // where the store that was there is now; "" when there was none
}

// RestoreOptions change a Restore.
type RestoreOptions struct {
	// Now names what is kept aside.
	Now time.Time
	// Other takes a backup of another folder; the history is then taken as this one's.
	Other bool
}

// Restore puts a backup in the place of the store at p. The store that is there is kept beside it; the
// backup stays as it is. The caller sees to it that no operation runs. After an error, or a kill, either
// the old store is there or the new one, whole. Errors: those of store.Open for a file that is no store
// or too new, ErrUnsound, ErrOtherFolder for one of another folder, ErrInUse.
func (p Place) Restore(ctx context.Context, file string, o RestoreOptions) (r Restored, err error) {
	was, err := sound(ctx, file)
	if err != nil {
		return r, err
	}
	if was.Root != p.Root && !o.Other {
		return r, fmt.Errorf("the backup is of %s, not of %s: %w", was.Root, p.Root, ErrOtherFolder)
	}
	ready := p.Store + ".restoring"
	defer func() {
		for _, name := range []string{ready, ready + "-wal", ready + "-shm", ready + ".lock"} {
			err = errors.Join(err, remove(name))
		}
	}()
	if err := p.prepare(ctx, file, ready); err != nil {
		return r, err
	}
	r = Restored{Store: p.Store, From: was.Root}
	r.Kept, err = p.aside(o.Now)
	if err != nil {
		return r, err
	}
	if err := os.Rename(ready, p.Store); err != nil {
		return r, err
	}
	return r, syncDir(filepath.Dir(p.Store))
}

// prepare writes a copy of the backup that is about this folder.
func (p Place) prepare(ctx context.Context, file, to string) (err error) {
	if err := remove(to); err != nil {
		return err
	}
	from, err := store.Open(ctx, file, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	if err := errors.Join(from.Backup(ctx, to), from.Close()); err != nil {
		return err
	}
	here, err := Workspace(p.Root)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, to, store.Options{})
	if err != nil {
		return err
	}
	err = s.Update(ctx, func(tx *store.WriteTx) error { return tx.MoveWorkspace(here) })
	return errors.Join(err, s.Close())
}

// aside gives the store that is there a second name. What a crash left in its WAL goes along.
func (p Place) aside(now time.Time) (kept string, err error) {
	if _, err := os.Lstat(p.Store); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	// SQLite removes this file when the last connection is closed.
	if _, err := os.Lstat(p.Store + "-shm"); err == nil {
		return "", fmt.Errorf("replace %s: %w", p.Store, ErrInUse)
	}
	kept = p.Store + ".replaced-" + now.UTC().Format("20060102-150405")
	if err := os.Link(p.Store, kept); err != nil {
		return "", fmt.Errorf("keep the present store: %w", err)
	}
	err = os.Rename(p.Store+"-wal", kept+"-wal")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return kept, err
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // which syncs no folder
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
