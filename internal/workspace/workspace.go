// Package workspace is the only code that reads or writes user files: it captures states and
// replaces files, all below one root. It knows no sessions and no SQL.
//
// Terms. A path is a store.Path: its bytes are its identity. A reading is a path's state at
// one moment, with the signature that lstat gave for it. A step is one path's way from one
// state to another. Staged files hold new contents beside their targets until they are
// renamed; IsStaged knows their names, and nothing here lists or captures them.
//
// Confinement (I11). Folders are entered one component at a time through os.Root, and each
// handle is compared with what lstat said of the name, so a symlink is never followed, neither
// one that was there before nor one that is put there meanwhile. os.Root alone would follow
// links that stay inside the root. Every Path is checked before every use, since a store may
// be damaged or made by somebody hostile.
//
// Caveats. No file system compares and swaps. Where two names can be exchanged (Linux) what
// came out is examined before it is removed; elsewhere a few microseconds remain between the
// last look and the rename. A program that holds a file open and goes on writing into it
// writes into the old file, which has no name any more. A file with several hard links is
// replaced under the recorded name only; its other names keep the old bytes.
package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"reasonix/store"
)

// Options change how a root is opened; the zero value is for every day.
type Options struct {
	// Protected are absolute files and folders that are never captured or written, compared
	// by path and by identity: the store's directory. They need not exist yet.
	Protected []string
	// Fault is a seam for tests. It is called before every system call on user files with one
	// of "lstat", "open", "read", "readlink", "readdir", "create", "write", "chmod", "fsync",
	// "sync", "rename", "exchange", "unlink", "rmdir", "mkdir", "symlink"; an error makes that
	// call fail without being made. nil means none. With a Fault everything is done in the
	// caller's goroutine, one call after another: the n-th call is the same one each time, and
	// Fault may panic to stand for a kill.
	Fault func(op string, p store.Path) error
	// Now is the clock that signatures are compared with; nil means time.Now.
	Now func() time.Time
}

// Root is an open workspace root. It is safe for concurrent use.
type Root struct {
	path   string // canonical: absolute, clean, no symlink in it
	id     Identity
	dir    *os.Root
	handle *os.File // the same folder; opened early, so that syncfs sees every later write error
	info   fs.FileInfo
	o      Options

	mu        sync.Mutex // guards protected
	protected []protected

	// noSwap makes renames behave as on systems that can neither exchange names nor refuse to
	// replace one: for tests.
	noSwap bool
}

// protected is a file or folder that is left alone.
type protected struct {
	abs  string
	path store.Path  // below the root; "" when it lies elsewhere
	info fs.FileInfo // nil while it does not exist
}

// Identity tells one folder from another at the same path. Zero is no identity.
type Identity struct {
	Device, Inode uint64 // on Windows the volume's serial number and the file index
}

// Open opens the folder dir as a workspace root. Symlinks in dir itself are resolved. It
// changes nothing. The caller closes the root.
func Open(dir string, o Options) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", dir, err)
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Root{path: abs, o: o}
	if err := r.open(); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("open workspace %s: %w", abs, err)
	}
	for _, p := range o.Protected {
		r.protected = append(r.protected, r.newProtected(p))
	}
	return r, nil
}

func (r *Root) open() (err error) {
	if r.dir, err = os.OpenRoot(r.path); err != nil {
		return err
	}
	if r.handle, err = r.dir.Open("."); err != nil {
		return err
	}
	if r.info, err = r.handle.Stat(); err != nil {
		return err
	}
	r.id, err = identityOf(r.handle)
	return err
}

// Close releases the handles of the root. Files are left as they are.
func (r *Root) Close() error {
	var first error
	if r.handle != nil {
		first = r.handle.Close()
	}
	if r.dir != nil {
		if err := r.dir.Close(); first == nil {
			first = err
		}
	}
	return first
}

// Path returns the canonical absolute path of the root.
func (r *Root) Path() string { return r.path }

// Identity returns which folder the root is, whatever it is called.
func (r *Root) Identity() Identity { return r.id }

// IdentityOf returns the identity of the file or folder that path names; links are followed. Where
// locks belong to processes nothing is opened: the path may be a store that this process has open,
// and closing any descriptor of it would drop SQLite's locks.
func IdentityOf(path string) (Identity, error) { return identityOfPath(path) }

// fault asks the test seam whether the call op on p is to fail.
func (r *Root) fault(op string, p store.Path) error {
	if r.o.Fault == nil {
		return nil
	}
	if err := r.o.Fault(op, p); err != nil {
		return &fs.PathError{Op: op, Path: string(p), Err: err}
	}
	return nil
}

func (r *Root) newProtected(abs string) protected {
	g := protected{abs: filepath.Clean(abs)}
	if real, err := realPath(g.abs); err == nil {
		g.abs = real
	}
	if rel, ok := r.below(g.abs); ok {
		g.path = rel
	}
	g.info, _ = os.Stat(g.abs)
	return g
}

// isProtectedPath reports whether p is, or lies below, a protected file or folder.
func (r *Root) isProtectedPath(p store.Path) bool {
	for i := range r.protected {
		g := &r.protected[i] // only its path, which never changes: the rest is guarded by mu
		if g.path != "" && (p == g.path || isBelow(p, g.path)) {
			return true
		}
	}
	return false
}

// isProtectedInfo reports whether fi is a protected file or folder under whatever name. A
// store that was made after the root was opened is looked up again.
func (r *Root) isProtectedInfo(fi fs.FileInfo) bool {
	if len(r.protected) == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.protected {
		g := &r.protected[i]
		if g.info == nil {
			g.info, _ = os.Stat(g.abs)
		}
		if g.info != nil && os.SameFile(g.info, fi) {
			return true
		}
	}
	return false
}
