// Package workspace is the only code that reads or writes user files: it captures states and
// replaces files, all below one root.
package workspace

import (
	"context"
	"errors"
	"io"

	"reasonix/blob"
	"reasonix/store"
)

var (
	ErrOutside   = errors.New("path is outside the workspace")
	ErrProtected = errors.New("path is protected")
	ErrInvalid   = errors.New("invalid path")
	ErrInTheWay  = errors.New("folder holds something that is not part of the operation")
)

// StaleError is returned by Apply when a path is not in the state that was expected.
type StaleError struct{ Path store.Path }

func (e *StaleError) Error() string { return "changed meanwhile: " + string(e.Path) }

// BlockedError is returned when a parent of a path to be written is a symlink or no folder.
type BlockedError struct{ Path, Parent store.Path }

func (e *BlockedError) Error() string {
	return string(e.Path) + " lies below " + string(e.Parent) + ", which is not a real folder"
}

type Options struct {
	Protected []string
	Fault     func(op string, p store.Path) error
}

type Identity struct{ Device, Inode uint64 }

type Root struct{}

type Sig struct {
	Kind          store.Kind // 0: not known
	Mode          uint32
	Racy          bool // stamped so shortly before the reading that a later edit may look the same
	Size          int64
	MTime, CTime  int64 // unix nanoseconds
	Device, Inode uint64
}

// Same reports whether both signatures describe the same file in the same state, Racy aside.
func (s Sig) Same(t Sig) bool { panic("todo") }

type Put func(ctx context.Context, r io.Reader) (*blob.Prepared, error)

type Reading struct {
	State   store.State
	Content *blob.Prepared
	Sig     Sig
	Reason  string
	Detail  string
	Blocker store.Path
}

type Entry struct {
	Path      store.Path
	Kind      store.Kind
	Protected bool
}

type Step struct {
	Path     store.Path
	From, To store.State
	Sig      Sig // of From; zero if not known
}

type Contents func(ctx context.Context, h blob.Hash) (io.ReadCloser, error)

type Staged struct{}

func Open(dir string, o Options) (*Root, error)                                  { panic("todo") }
func (r *Root) Close() error                                                     { panic("todo") }
func (r *Root) Path() string                                                     { panic("todo") }
func (r *Root) Identity() Identity                                               { panic("todo") }
func IdentityOf(path string) (Identity, error)                                   { panic("todo") }
func (r *Root) Resolve(cwd, name string) (store.Path, error)                     { panic("todo") }
func CheckPath(p store.Path) error                                               { panic("todo") }
func (r *Root) Read(ctx context.Context, p store.Path, put Put) (Reading, error) { panic("todo") }
func (r *Root) ReadAll(ctx context.Context, paths []store.Path, put Put) ([]Reading, error) {
	panic("todo")
}
func (r *Root) Unchanged(p store.Path, s Sig) bool         { panic("todo") }
func (r *Root) List(p store.Path) ([]Entry, error)         { panic("todo") }
func (r *Root) Writable(p store.Path) error                { panic("todo") }
func (r *Root) LinkTarget(p store.Path) (store.Path, bool) { panic("todo") }
func (s Step) Intermediate(st store.State) bool            { panic("todo") }
func (r *Root) Stage(ctx context.Context, id string, steps []Step, contents Contents) (*Staged, error) {
	panic("todo")
}
func (s *Staged) Apply(ctx context.Context) error         { panic("todo") }
func (s *Staged) Discard() error                          { panic("todo") }
func (s *Staged) Kept() []store.Path                      { panic("todo") }
func (r *Root) Sweep(id string, paths []store.Path) error { panic("todo") }
func IsStaged(name string) bool                           { panic("todo") }
