package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"reasonix/store"
)

// folder is an open folder of the workspace that was reached without following a link. All
// names given to its methods are single components.
type folder struct {
	r    *Root
	path store.Path // "." for the root
	name string     // last component
	dir  *os.Root
	file *os.File    // the same folder, for the calls that os.Root lacks; nil until needed
	info fs.FileInfo // of the open handle
}

// cursor is a chain of open folders from the root to the one that was entered last. Walking
// paths in the order of comparePaths (or its reverse) opens each folder about once, and never
// more handles are open than the tree is deep. It is for one goroutine.
type cursor struct {
	r     *Root
	chain []*folder
}

func (r *Root) cursor() *cursor {
	return &cursor{r: r, chain: []*folder{{r: r, path: ".", dir: r.dir, file: r.handle, info: r.info}}}
}

func (c *cursor) close() { c.cut(1) }

// cut closes all folders but the first n. The first is the root, which is not the cursor's.
func (c *cursor) cut(n int) {
	for _, f := range c.chain[n:] {
		f.close()
	}
	c.chain = c.chain[:n]
}

// enter returns the folder p ("." is the root). It stays open until the cursor leaves it.
// Folders that are open already are compared with what their names lead to now, so that
// nothing is done in a folder that was moved away (I11).
//
// Errors: fs.ErrNotExist when a component is missing, *BlockedError when one is a symlink or
// no folder, ErrProtected when one is the store under another name.
func (c *cursor) enter(p store.Path) (*folder, error) {
	if p == "." {
		return c.chain[0], nil
	}
	depth := 0
	for start := 0; start < len(p); depth++ {
		end := len(p)
		if i := strings.IndexByte(string(p[start:]), '/'); i >= 0 {
			end = start + i
		}
		if err := c.step(depth, p[:end], string(p[start:end])); err != nil {
			c.cut(depth + 1)
			return nil, err
		}
		start = end + 1
	}
	return c.chain[depth], nil
}

// step makes sure that the folder p, called name, is open below chain[depth].
func (c *cursor) step(depth int, p store.Path, name string) error {
	parent := c.chain[depth]
	fi, err := parent.lstat(name)
	if err != nil {
		if isNotDir(err) {
			return &BlockedError{Path: p, Parent: p}
		}
		return err
	}
	if !fi.IsDir() {
		return &BlockedError{Path: p, Parent: p}
	}
	if depth+1 < len(c.chain) {
		if f := c.chain[depth+1]; f.name == name && os.SameFile(f.info, fi) {
			return nil
		}
		c.cut(depth + 1)
	}
	f, err := parent.open(p, name, fi)
	if err != nil {
		return err
	}
	c.chain = append(c.chain, f)
	return nil
}

// nearest enters the deepest folder on the way to p that exists and is a real one.
func (c *cursor) nearest(p store.Path) (*folder, error) {
	for {
		f, err := c.enter(p)
		if err == nil {
			return f, nil
		}
		if !meansAbsent(err) {
			return nil, err
		}
		p, _ = split(p)
	}
}

// at returns the folder p of the chain that was entered last; p is "." or a parent of it.
func (c *cursor) at(p store.Path) *folder {
	for _, f := range c.chain {
		if f.path == p {
			return f
		}
	}
	return nil
}

// meansAbsent reports whether err says that nothing is at a location, as a link is not followed.
func meansAbsent(err error) bool {
	var blocked *BlockedError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &blocked)
}

// open opens the child folder p, which lstat described as fi.
func (f *folder) open(p store.Path, name string, fi fs.FileInfo) (*folder, error) {
	if f.r.isProtectedInfo(fi) {
		return nil, fmt.Errorf("%w: %q is the store", ErrProtected, p)
	}
	if err := f.r.fault("open", p); err != nil {
		return nil, err
	}
	dir, err := f.dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	child := &folder{r: f.r, path: p, name: name, dir: dir}
	child.info, err = dir.Stat(".")
	if err == nil && !os.SameFile(child.info, fi) {
		// Swapped since the lstat. OpenRoot follows links that stay inside the root.
		err = &BlockedError{Path: p, Parent: p}
	}
	if err != nil {
		child.close()
		return nil, err
	}
	return child, nil
}

func (f *folder) close() {
	if f.file != nil {
		_ = f.file.Close() // a folder's handle: nothing was written through it
	}
	_ = f.dir.Close()
}

func (f *folder) lstat(name string) (fs.FileInfo, error) {
	if err := f.r.fault("lstat", join(f.path, name)); err != nil {
		return nil, err
	}
	return f.dir.Lstat(name)
}

// openFile opens a file for reading. os.Root may have followed a link that stays inside the
// root: the caller compares what it got with what lstat said.
func (f *folder) openFile(name string) (*os.File, error) {
	if err := f.r.fault("open", join(f.path, name)); err != nil {
		return nil, err
	}
	return f.dir.OpenFile(name, openFlags, 0)
}

// handle returns an open file of the folder itself.
func (f *folder) handle() (*os.File, error) {
	if f.file == nil {
		file, err := f.dir.Open(".")
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	return f.file, nil
}

// check is CheckPath and the protected paths of r.
func (r *Root) check(p store.Path) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if r.isProtectedPath(p) {
		return fmt.Errorf("%w: %q belongs to the store", ErrProtected, p)
	}
	return nil
}
