package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reasonix/store"
)

const maxLinks = 40 // symlinks followed in one name before it counts as a loop: as on Linux

// Resolve turns a name from outside, absolute or relative to the absolute folder cwd, into the
// key of its path (I2): cleaned, with symlinked parent folders resolved. The last component
// stays itself, so a symlink is a path of its own; parents that do not exist are kept as they
// are. The root may be reached under any of its names.
//
// Errors are ErrInvalid, ErrOutside and ErrProtected, and those of the file system.
func (r *Root) Resolve(cwd, name string) (store.Path, error) {
	p, err := r.resolve(cwd, name)
	if err != nil {
		return "", fmt.Errorf("resolve %q: %w", name, err)
	}
	return p, nil
}

func (r *Root) resolve(cwd, name string) (store.Path, error) {
	if err := checkOutsideName(name); err != nil {
		return "", err
	}
	abs := name
	if !filepath.IsAbs(abs) {
		if !filepath.IsAbs(cwd) {
			return "", fmt.Errorf("%w: relative to %q, which is not absolute", ErrInvalid, cwd)
		}
		abs = filepath.Join(cwd, name)
	}
	abs = filepath.Clean(abs)
	if err := r.checkGit(abs); err != nil {
		return "", err
	}
	parent, err := realPath(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return r.key(filepath.Join(parent, filepath.Base(abs)))
}

// checkGit refuses abs when it names a .git below the root. A .git that is itself a symlink
// would be gone from the resolved name.
func (r *Root) checkGit(abs string) error {
	for dir := abs; ; {
		parent, name := filepath.Dir(dir), filepath.Base(dir)
		if parent == dir {
			return nil
		}
		if isGit(name) {
			real, err := realPath(parent)
			if err != nil {
				return err
			}
			if _, ok := r.below(real); ok {
				return fmt.Errorf("%w: component %q", ErrProtected, name)
			}
		}
		dir = parent
	}
}

// key makes the Path of an absolute name whose parents are resolved.
func (r *Root) key(abs string) (store.Path, error) {
	p, ok := r.below(abs)
	if !ok {
		if p, ok = r.belowSame(abs); !ok {
			return "", ErrOutside
		}
	}
	if p == "." {
		return "", fmt.Errorf("%w: it is the root itself", ErrOutside)
	}
	if err := CheckPath(p); err != nil {
		return "", err
	}
	if r.isProtectedPath(p) {
		return "", fmt.Errorf("%w: it belongs to the store", ErrProtected)
	}
	return p, nil
}

func checkOutsideName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty", ErrInvalid)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%w: NUL byte", ErrInvalid)
	case len(name) > 4*maxPath: // before any work is spent on it
		return fmt.Errorf("%w: %d bytes", ErrInvalid, len(name))
	}
	return checkSystemPath(name)
}

// below returns the path of abs below the root, or "." for the root, by comparing names only.
func (r *Root) below(abs string) (store.Path, bool) {
	if abs == r.path {
		return ".", true
	}
	prefix := r.path
	if !os.IsPathSeparator(prefix[len(prefix)-1]) {
		prefix += string(filepath.Separator)
	}
	rel, ok := strings.CutPrefix(abs, prefix)
	if !ok || rel == "" {
		return "", false
	}
	return store.Path(filepath.ToSlash(rel)), true
}

// belowSame does what below does by comparing folders: another spelling on a file system that
// ignores case, or a second mount, is the same root.
func (r *Root) belowSame(abs string) (store.Path, bool) {
	for dir := abs; ; {
		if fi, err := os.Stat(dir); err == nil && os.SameFile(fi, r.info) {
			rel, err := filepath.Rel(dir, abs)
			return store.Path(filepath.ToSlash(rel)), err == nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// realPath resolves every symlink in the absolute name abs, links to nothing included. What
// does not exist, or may not be looked at, is kept as it is. It does so by hand because
// filepath.EvalSymlinks gives up at the first name that is missing.
func realPath(abs string) (string, error) {
	cur, todo := cutVolume(filepath.Clean(abs))
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		fi, err := os.Lstat(next)
		if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
			cur = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%w: more than %d symlinks", ErrInvalid, maxLinks)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		var more []string
		if filepath.IsAbs(target) {
			cur, more = cutVolume(target)
		} else {
			more = components(target)
		}
		todo = append(more, todo...)
	}
	return cur, nil
}

func cutVolume(abs string) (string, []string) {
	volume := filepath.VolumeName(abs)
	return volume + string(filepath.Separator), components(abs[len(volume):])
}

// components splits a name without cleaning it: "link/.." is not "." when link is a symlink.
func components(name string) []string {
	return strings.FieldsFunc(name, func(c rune) bool { return c < 0x80 && os.IsPathSeparator(uint8(c)) })
}

// LinkTarget returns the path that the symlink p finally leads to, which need not exist.
// It reports false when p is no symlink, leads out of the root, to the root itself or to
// something protected, or cannot be followed: a write through p would then not be captured.
func (r *Root) LinkTarget(p store.Path) (store.Path, bool) {
	if CheckPath(p) != nil {
		return "", false
	}
	abs := filepath.Join(r.path, filepath.FromSlash(string(p)))
	if fi, err := os.Lstat(abs); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return "", false
	}
	final, err := realPath(abs)
	if err != nil {
		return "", false
	}
	key, err := r.key(final)
	if err != nil {
		return "", false
	}
	if fi, err := os.Lstat(final); err == nil {
		return key, !r.isProtectedInfo(fi)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	return key, true
}
