package workspace

import (
	"errors"
	"fmt"

	"reasonix/store"
)

var (
	// ErrOutside is returned when a name leads out of the root, or is the root itself.
	ErrOutside = errors.New("path is outside the workspace")
	// ErrProtected is returned when a path is, or lies below, a .git, the store, or a staged file.
	ErrProtected = errors.New("path is protected")
	// ErrInvalid is returned when a name cannot be a path here, or a step makes no sense.
	ErrInvalid = errors.New("invalid path")
	// ErrInTheWay is returned when a folder that must make room for a file holds something
	// that is no step of the operation (I6).
	ErrInTheWay = errors.New("folder holds something that is not part of the operation")
	// ErrTwice is returned when two steps of one operation have the same path.
	ErrTwice = errors.New("path has two steps")
)

// StaleError is returned when a path is neither as expected nor as wanted: somebody changed
// it, and it was left as it is.
type StaleError struct {
	Path store.Path
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%q was changed by somebody else meanwhile", string(e.Path))
}

// BlockedError is returned when a parent of a path that is to be written is a symlink or no
// folder (I11). Nothing was written.
type BlockedError struct {
	Path   store.Path
	Parent store.Path // the component that is no real folder
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%q lies below %q, which is no real folder", string(e.Path), string(e.Parent))
}
