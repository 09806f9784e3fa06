package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"reasonix/store"
)

// Entry is one entry of a folder.
type Entry struct {
	Path      store.Path
	Kind      store.Kind // File, Symlink, Dir, or Uncaptured for what cannot be captured
	Protected bool       // a .git or the store: never captured, never written, not to be entered
}

// List returns what the folder p holds, sorted by name in bytes; "" and "." are the root.
// Staged files are left out. No link is followed: p below a symlink is a *BlockedError. An
// entry whose name cannot be a path here is Protected.
func (r *Root) List(p store.Path) ([]Entry, error) {
	if p == "" {
		p = "."
	}
	if p != "." {
		if err := r.check(p); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
	}
	c := r.cursor()
	defer c.close()
	f, err := c.enter(p)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", p, err)
	}
	entries, err := f.list()
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", p, err)
	}
	return entries, nil
}

func (f *folder) list() ([]Entry, error) {
	if err := f.r.fault("readdir", f.path); err != nil {
		return nil, err
	}
	// A handle of its own: the offset of a folder's handle is part of it.
	d, err := f.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, e := range found {
		if IsStaged(e.Name()) {
			continue
		}
		entry := Entry{Path: join(f.path, e.Name()), Kind: kindOf(e.Type())}
		entry.Protected = f.r.check(entry.Path) != nil
		if !entry.Protected && len(f.r.o.Protected) > 0 {
			fi, err := f.lstat(e.Name())
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since
			}
			entry.Protected = err == nil && f.r.isProtectedInfo(fi)
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return entries, nil
}

// Writable reports whether p could be made, replaced or removed as far as the permissions of
// its folder go, or of the nearest one that exists: nil, or an error that wraps
// fs.ErrPermission and names the folder. It asks for the effective user; root may do anything
// but write to a read-only file system. On Windows only trying tells, and it is nil.
func (r *Root) Writable(p store.Path) error {
	if err := r.check(p); err != nil {
		return err
	}
	c := r.cursor()
	defer c.close()
	dir, _ := split(p)
	f, err := c.nearest(dir)
	if err != nil {
		return fmt.Errorf("write %q: %w", p, err)
	}
	h, err := f.handle()
	if err != nil {
		return fmt.Errorf("write %q: %w", p, err)
	}
	if err := accessible(h); err != nil {
		return fmt.Errorf("write %q: folder %q: %w", p, f.path, err)
	}
	return nil
}
