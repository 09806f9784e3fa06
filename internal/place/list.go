package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// Entry is a store in the state folder.
type Entry struct {
	Place    Place // Root as the store has it; "" when it could not be read
	Sessions int
	Size     int64 // bytes of the file
	Modified time.Time
	Missing  bool  // the workspace is not there any more, or another folder is
	Err      error // why the store could not be read
}

// List reads all stores of the state folder, by name; it changes none.
func (w Where) List(ctx context.Context) ([]Entry, error) {
	dirs, err := os.ReadDir(w.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list stores: %w", err)
	}
	var all []Entry
	for _, d := range dirs {
		name := filepath.Join(w.State, d.Name(), file)
		fi, err := os.Stat(name)
		if err != nil || fi.Size() == 0 {
			continue
		}
		e := Entry{Place: Place{Store: name}, Size: fi.Size(), Modified: fi.ModTime()}
		e.Err = e.read(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, e)
	}
	return all, nil
}

func (e *Entry) read(ctx context.Context) error {
	s, err := store.Open(ctx, e.Place.Store, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		recorded, err := tx.Workspace()
		if err != nil {
			return err
		}
		e.Place.Root = recorded.Root
		id, err := workspace.IdentityOf(recorded.Root)
		e.Missing = err != nil || id.Device != recorded.Device || id.Inode != recorded.Inode
		sessions, err := tx.Sessions()
		e.Sessions = len(sessions)
		return err
	})
	return errors.Join(err, s.Close())
}

// Nested are the roots of other stores whose workspaces lie in root or around it: what is
// recorded there is not recorded here.
func (w Where) Nested(ctx context.Context, root string) ([]string, error) {
	entries, err := w.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		other := e.Place.Root
		if other == "" || other == root || e.Missing || w.Alone(other) {
			continue
		}
		if inside(other, root) || inside(root, other) {
			all = append(all, other)
		}
	}
	return all, nil
}

// Rebinding is a store that is about to be bound to another folder.
type Rebinding struct {
	From, To store.Workspace
	Old, New Place
	Sessions int
}

// PlanMove works out how the store of the workspace that was at old comes to belong to the
// folder dir: after a rename, or when another folder took the place of the old one.
func (w Where) PlanMove(ctx context.Context, old, dir string) (Rebinding, error) {
	var m Rebinding
	root, err := Canonical(dir)
	if err != nil {
		return m, err
	}
	if m.To, err = Workspace(root); err != nil {
		return m, err
	}
	if m.Old, err = w.oldPlace(old); err != nil {
		return m, err
	}
	if m.New = w.Of(root); m.Old.Given {
		m.New = m.Old
		m.New.Root = root
	}
	if m.New.Store != m.Old.Store && isStore(m.New.Store) {
		return m, fmt.Errorf("%s: %w", root, ErrOccupied)
	}
	if err := w.allowed(m.New.Store); err != nil {
		return m, err
	}
	s, err := store.Open(ctx, m.Old.Store, store.Options{ReadOnly: true})
	if err != nil {
		return m, err
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		if m.From, err = tx.Workspace(); err != nil {
			return err
		}
		sessions, err := tx.Sessions()
		m.Sessions = len(sessions)
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		return m, err
	}
	id, err := workspace.IdentityOf(m.From.Root)
	there := err == nil && id.Device == m.From.Device && id.Inode == m.From.Inode
	same := m.To.Device == m.From.Device && m.To.Inode == m.From.Inode
	if there && !same {
		return m, fmt.Errorf("%s is still there, so it was not moved to %s: %w", m.From.Root, root, ErrOccupied)
	}
	return m, nil
}

// oldPlace is the store of a root that may not exist any more.
func (w Where) oldPlace(old string) (Place, error) {
	if w.Store != "" {
		return w.given()
	}
	abs, err := filepath.Abs(old)
	if err != nil {
		return Place{}, err
	}
	for _, root := range []string{abs, resolved(abs)} {
		if p := w.Of(root); isStore(p.Store) {
			return p, nil
		}
	}
	return Place{}, fmt.Errorf("%w for %s", ErrNoStore, abs)
}

// Move makes a planned rebinding. The store is bound first and its folder renamed then: after
// a crash in between the same move finds it at the old place and goes on. lock keeps other
// processes out of the workspace meanwhile.
func (w Where) Move(ctx context.Context, m Rebinding, lock func(*store.Store) (unlock func(), err error)) error {
	s, err := store.Open(ctx, m.Old.Store, store.Options{})
	if err != nil {
		return err
	}
	unlock, err := lock(s)
	if err == nil {
		err = s.Update(ctx, func(tx *store.WriteTx) error { return tx.MoveWorkspace(m.To) })
		unlock()
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("move the store: %w", err)
	}
	from, to := filepath.Dir(m.Old.Store), filepath.Dir(m.New.Store)
	if from == to {
		return nil
	}
	// An empty folder may have been left there by a store that was never begun.
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move the store: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("move the store: %w", err)
	}
	return nil
}
