package place

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// Options change how a place is opened; the zero value opens a store that is there.
type Options struct {
	// Create makes the store when it is missing, or was never finished by a process that was
	// killed; the place must have a root then.
	Create bool
	// Dir is where the caller stands, for a store that the user named: it must lie in the
	// workspace. "" means that the store says where the workspace is.
	Dir string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// OneConnection is for short processes; see db.Options.
	OneConnection bool
}

// Opened is a workspace with its store. The caller closes it.
type Opened struct {
	Place Place
	Store *store.Store
	Root  *workspace.Root
}

// Close closes both.
func (o *Opened) Close() error { return errors.Join(o.Root.Close(), o.Store.Close()) }

// Open opens the store of a place and the folder that it is about, after making sure that it
// still is that folder. A store that this user may not write is opened for reading.
// Errors: ErrOtherFolder, ErrNoFolder, and those of store.Open.
func (p Place) Open(ctx context.Context, o Options) (*Opened, error) {
	if create := o.Create; create && isStore(p.Store) {
		o.Create = false // what is there has its own workspace, unless it was never finished
		opened, err := p.open(ctx, o)
		if !errors.Is(err, store.ErrNoStore) || p.Root == "" {
			return opened, err
		}
		o.Create = create
	}
	return p.open(ctx, o)
}

func (p Place) open(ctx context.Context, o Options) (*Opened, error) {
	so := store.Options{Now: o.Now, OneConnection: o.OneConnection}
	if o.Create {
		w, err := Workspace(p.Root)
		if err != nil {
			return nil, err
		}
		so.Create = &w
	}
	s, err := store.Open(ctx, p.Store, so)
	if errors.Is(err, store.ErrReadOnly) && !o.Create {
		so.ReadOnly = true
		if r, rerr := store.Open(ctx, p.Store, so); rerr == nil {
			s, err = r, nil
		}
	}
	if err != nil {
		return nil, err
	}
	opened := &Opened{Place: p, Store: s}
	if err := opened.root(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return opened, nil
}

func (o *Opened) root(ctx context.Context, opt Options) error {
	var recorded store.Workspace
	err := o.Store.View(ctx, func(tx *store.Tx) (err error) { recorded, err = tx.Workspace(); return err })
	if err != nil {
		return err
	}
	if o.Place.Root, err = o.Place.rootFor(recorded, opt.Dir); err != nil {
		return err
	}
	if recorded.Root != o.Place.Root {
		return fmt.Errorf("%w: it is about %s, this is %s", ErrOtherFolder, recorded.Root, o.Place.Root)
	}
	o.Root, err = workspace.Open(recorded.Root, workspace.Options{Protected: o.Place.Protected(recorded.Root), Now: opt.Now})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	if id := o.Root.Identity(); id.Device != recorded.Device || id.Inode != recorded.Inode {
		err := fmt.Errorf("%w: %s was removed or renamed, and another folder lies there now", ErrOtherFolder, recorded.Root)
		return errors.Join(err, o.Root.Close())
	}
	return nil
}

// rootFor is the root that a caller in dir means: that of the path, or for a store that the
// user named the recorded one, when dir lies in it.
func (p Place) rootFor(recorded store.Workspace, dir string) (string, error) {
	if !p.Given || dir == "" {
		if p.Root == "" {
			return recorded.Root, nil
		}
		return p.Root, nil
	}
	root, err := Canonical(dir)
	if err == nil && inside(root, recorded.Root) {
		root = recorded.Root
	}
	return root, err
}

// inside reports whether a canonical folder is root or lies below it.
func inside(dir, root string) bool {
	return dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, string(os.PathSeparator))+string(os.PathSeparator))
}
