// Package place knows where stores lie: which one belongs to a folder, where a new one goes,
// and what other ones there are. It reads no user file and writes nothing but the folders of
// stores.
//
// A workspace is known by its canonical root: absolute, clean, no symlink in it. Its store
// lies at <state>/reasonix/<base>-<8 hex of BLAKE3(root)>/store.db, outside of it.
package place

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"reasonix/internal/workspace"
	"reasonix/store"
)

var (
	// ErrNoStore is returned when no store belongs to a folder.
	ErrNoStore = errors.New("no store")
	// ErrOtherFolder is returned when the folder at a workspace's path is not the one that its
	// store is about.
	ErrOtherFolder = errors.New("the store is about another folder")
	// ErrReserved is returned for a place that belongs to another program of the same name.
	ErrReserved = errors.New("the folder belongs to another program")
	// ErrNoFolder is returned when a workspace is named that is no folder.
	ErrNoFolder = errors.New("no such folder")
	// ErrOccupied is returned when a store would be moved to where one is already, or away
	// from a workspace that is still there.
	ErrOccupied = errors.New("the workspace has a store already")
)

// file is the name of a store in its folder.
const file = "store.db"

// maxBase bounds the readable part of a store folder's name, in bytes.
const maxBase = 80

// Where says what to look in. The zero value has no state folder and no home.
type Where struct {
	Store string   // a store named by the user; "" means the one of the workspace
	State string   // the folder that holds the stores' folders
	Home  string   // matches only itself; "" when unknown
	Temp  []string // so do these
	// Reserved are folders of another program, never written to.
	Reserved []string
}

// Place is a workspace and its store.
type Place struct {
	Root  string // canonical root; "" when the store was named and is to say it
	Store string // absolute path of the store's file
	Given bool   // the store was named by the user
}

// FromEnv reads the environment.
func FromEnv(env func(string) string) Where {
	w := Where{Store: env("REASONIX_STORE"), Home: env("HOME")}
	if w.Home == "" {
		w.Home, _ = os.UserHomeDir()
	}
	state := env("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG specification: a relative path is to be ignored
		state = filepath.Join(w.Home, ".local", "state")
	}
	w.State = filepath.Join(state, "reasonix")
	w.Temp = []string{os.TempDir(), "/tmp", "/var/tmp"}
	if w.Home != "" {
		w.Reserved = []string{filepath.Join(w.Home, ".reasonix")}
	}
	if other := env("REASONIX_HOME"); filepath.IsAbs(other) {
		w.Reserved = append(w.Reserved, other)
	}
	return w
}

// Canonical is the root of the folder dir: absolute, with symlinks resolved.
func Canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("%w: %s is a file", ErrNoFolder, real)
	}
	return real, nil
}

// Of is where the store of a canonical root lies, whether or not there is one.
func (w Where) Of(root string) Place {
	sum := blake3.Sum256([]byte(root))
	base := filepath.Base(root)
	if base == string(filepath.Separator) {
		base = "root"
	}
	if len(base) > maxBase {
		base = base[:maxBase]
	}
	return Place{Root: root, Store: filepath.Join(w.State, base+"-"+hex.EncodeToString(sum[:4]), file)}
}

// Find finds the store that belongs to the folder dir: the named one, else that of the nearest
// workspace around dir. $HOME, the file system's root and temporary folders are workspaces for
// themselves only: what lies in them is not theirs.
func (w Where) Find(dir string) (Place, error) {
	if w.Store != "" {
		p, err := w.given()
		if err == nil && !isStore(p.Store) {
			err = fmt.Errorf("%w at %s", ErrNoStore, p.Store)
		}
		return p, err
	}
	root, err := Canonical(dir)
	if err != nil {
		return Place{}, err
	}
	for at := root; ; {
		if p := w.Of(at); isStore(p.Store) && (at == root || !w.Alone(at)) {
			return p, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return Place{}, fmt.Errorf("%w for %s or a folder above it", ErrNoStore, root)
		}
		at = up
	}
}

// Alone reports whether a canonical root is one that does not stand for what lies in it.
func (w Where) Alone(root string) bool {
	if root == filepath.Dir(root) {
		return true
	}
	for _, dir := range append([]string{w.Home}, w.Temp...) {
		if dir == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real == root {
			return true
		}
	}
	return false
}

// Wide reports whether a canonical root is $HOME or the file system's: a workspace that
// nobody means to have.
func (w Where) Wide(root string) bool {
	home, err := filepath.EvalSymlinks(w.Home)
	return root == filepath.Dir(root) || w.Home != "" && err == nil && root == home
}

// NotScanned says why a canonical root is never scanned; "" when it may be. Folders in it may.
func (w Where) NotScanned(root string) string {
	switch {
	case w.Wide(root):
		return "the workspace is " + root
	case w.Alone(root):
		return "the workspace is a folder for temporary files"
	}
	return ""
}

// Make prepares the place of a root's store: its folder (0700). The store itself is made when
// it is opened.
func (w Where) Make(root string) (Place, error) {
	p, err := w.Of(root), error(nil)
	if w.Store != "" {
		if p, err = w.given(); err != nil {
			return p, err
		}
		p.Root = root
	}
	if err := w.allowed(p.Store); err != nil {
		return p, err
	}
	if err := os.MkdirAll(filepath.Dir(p.Store), 0o700); err != nil {
		return p, fmt.Errorf("make the store's folder: %w", err)
	}
	return p, nil
}

func (w Where) given() (Place, error) {
	abs, err := filepath.Abs(w.Store)
	if err != nil {
		return Place{}, fmt.Errorf("store %s: %w", w.Store, err)
	}
	return Place{Store: abs, Given: true}, w.allowed(abs)
}

// allowed refuses a store in a folder of the other program.
func (w Where) allowed(name string) error {
	real := resolved(name)
	for _, dir := range w.Reserved {
		if inside(real, resolved(dir)) {
			return fmt.Errorf("%s: %w", name, ErrReserved)
		}
	}
	return nil
}

// resolved is name with the symlinks of the part that exists resolved.
func resolved(name string) string {
	rest := ""
	for at := filepath.Clean(name); ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(at)
		if up == at {
			return filepath.Clean(name)
		}
		rest, at = filepath.Join(filepath.Base(at), rest), up
	}
}

// isStore reports whether a store was begun at name. An empty file is one whose making was
// interrupted, so nothing is lost with it.
func isStore(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && !fi.IsDir() && fi.Size() > 0
}

// Workspace describes the folder root, for a store that is made for it.
func Workspace(root string) (store.Workspace, error) {
	id, err := workspace.IdentityOf(root)
	if err != nil {
		return store.Workspace{}, fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	return store.Workspace{Root: root, Device: id.Device, Inode: id.Inode}, nil
}

// Protected is what a workspace must leave alone of its store: its files, by whatever name they
// are reached, and its folder unless that lies around the workspace or is its root.
func (p Place) Protected(root string) []string {
	all := []string{p.Store}
	if dir := resolved(filepath.Dir(p.Store)); !inside(root, dir) {
		all = append(all, dir)
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal", ".lock", ".workspace", ".scan"} {
		all = append(all, p.Store+suffix)
	}
	return all
}

// Scratch is a store for one process, in a new folder that remove deletes with all in it.
func Scratch() (store string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "reasonix-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for a store in memory: %w", err)
	}
	return filepath.Join(dir, file), func() error { return os.RemoveAll(dir) }, nil
}
