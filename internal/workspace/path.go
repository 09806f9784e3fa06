package workspace

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/zeebo/blake3"

	"reasonix/store"
)

const (
	maxName = 255  // bytes of one component: the limit of every common file system
	maxPath = 4096 // bytes of a whole path: PATH_MAX on Linux

	stagePrefix = ".rx-"
	stageDigits = 16
)

// CheckPath reports why p cannot be the path of something below a root: it is empty or the
// root, absolute, not clean, has a "..", a NUL byte or a component that is too long (ErrInvalid),
// or a component that is .git in any case or the name of a staged file (ErrProtected). Every
// path is checked before it is read or written, so that a damaged or hostile store cannot
// reach elsewhere (I11).
func CheckPath(p store.Path) error {
	s := string(p)
	switch {
	case s == "" || s == ".":
		return fmt.Errorf("%w: %q names nothing below the root", ErrInvalid, s)
	case len(s) > maxPath:
		return fmt.Errorf("%w: %d bytes, more than %d", ErrInvalid, len(s), maxPath)
	}
	for name := range strings.SplitSeq(s, "/") {
		if err := checkName(name); err != nil {
			return fmt.Errorf("%w in %q", err, s)
		}
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty component", ErrInvalid)
	case name == "." || name == "..":
		return fmt.Errorf("%w: component %q", ErrInvalid, name)
	case len(name) > maxName:
		return fmt.Errorf("%w: component of %d bytes, more than %d", ErrInvalid, len(name), maxName)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%w: NUL byte", ErrInvalid)
	case isGit(name):
		return fmt.Errorf("%w: component %q", ErrProtected, name)
	case IsStaged(name):
		return fmt.Errorf("%w: %q is the name of a staged file", ErrProtected, name)
	}
	return checkSystemName(name)
}

// isGit reports whether name is .git, or another spelling of it that the system takes for .git.
func isGit(name string) bool { return strings.EqualFold(foldName(name), ".git") }

// IsStaged reports whether name, the last component of a path, is that of a staged file:
// ".rx-" and 16 hexadecimal digits. Such files are never captured or listed.
func IsStaged(name string) bool {
	digits, ok := strings.CutPrefix(name, stagePrefix)
	if !ok || len(digits) != stageDigits {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// stageName is the name of p's staged file in the operation id. It is short, whatever p is,
// and can be found again after a crash from what the store knows.
func stageName(id string, p store.Path) string {
	h := blake3.New()
	_, _ = h.WriteString(id)
	_, _ = h.Write([]byte{0})
	_, _ = h.WriteString(string(p))
	return stagePrefix + hex.EncodeToString(h.Sum(nil)[:stageDigits/2])
}

// split returns the folder of p and its last component. The folder of a top-level path is ".".
func split(p store.Path) (folder store.Path, leaf string) {
	if i := strings.LastIndexByte(string(p), '/'); i >= 0 {
		return p[:i], string(p[i+1:])
	}
	return ".", string(p)
}

// join returns the path of name in folder.
func join(folder store.Path, name string) store.Path {
	if folder == "." || folder == "" {
		return store.Path(name)
	}
	return folder + "/" + store.Path(name)
}

// isBelow reports whether p lies strictly below folder.
func isBelow(p, folder store.Path) bool {
	return folder == "." || len(p) > len(folder) && p[len(folder)] == '/' && p[:len(folder)] == folder
}

// comparePaths orders paths so that a folder comes before what it holds and all that a folder
// holds comes together: "/" is less than any other byte. ("a-b" < "a/b" by bytes alone.)
func comparePaths(a, b store.Path) int {
	n := min(len(a), len(b))
	for i := range n {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// StagedName is the name of the staged file of a path in the edit id, for writers that stage a
// file of their own beside p: what a crash leaves of it is never captured, and Sweep removes it.
func StagedName(id, p string) string { return stageName(id, store.Path(p)) }
