// Package rewind moves files and the head of a session together: rewind, undo, redo, switch
// and fork are one primitive, planned first, then applied as one transaction that any crash
// leaves either undone or done (I8).
//
// A Plan reads and writes nothing. Apply takes the workspace lock, makes the plan anew and
// compares, so that what happens is what was shown. The intent, with the state of every path
// before and after, is committed before the first write; a crash afterwards is rolled back by
// Recover from those states.
package rewind

import (
	"errors"
	"fmt"
	"time"

	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/store"
)

var (
	// ErrConflict is returned, with a Result that lists them, when conflicts stop an operation.
	ErrConflict = errors.New("files are not as the history knows them")
	// ErrStale is returned when head or files are no longer as planned, or a plan is used twice.
	ErrStale = errors.New("the plan is out of date")
	// ErrBusy is returned, as a *BusyError, while a turn runs.
	ErrBusy = errors.New("a turn is running")
	// ErrNothingToUndo is returned when no undoable operation of the session stands.
	ErrNothingToUndo = errors.New("nothing to undo")
	// ErrNothingToRedo is returned when the newest standing operation is no undo.
	ErrNothingToRedo = errors.New("nothing to redo")
	// ErrNotUndoable is returned for an operation that undo passes over, or that is undone already.
	ErrNotUndoable = errors.New("the operation cannot be undone")
	// ErrExpired is returned when collection dropped a content that the move would have to write.
	ErrExpired = errors.New("it was dropped by gc, so that turn cannot be restored any more")
	// ErrInvalid is returned when a request contradicts itself.
	ErrInvalid = errors.New("invalid request")
	// ErrNoPath is returned when one of Only is nothing that the move is about.
	ErrNoPath = errors.New("nothing was recorded of the path")
	// ErrReadOnly is returned when the system would refuse to change a file that has to change.
	ErrReadOnly = errors.New("files cannot be changed")
)

// BusyError says what runs. It matches ErrBusy.
type BusyError struct {
	Session store.SessionID
	Tool    string // of the oldest open call; "" when none is open
	Path    store.Path
	Age     time.Duration // of the open call, or since the last event
}

func (e *BusyError) Error() string {
	if e.Tool == "" {
		return fmt.Sprintf("session %s has a turn running, its last event was %s ago", e.Session, e.Age.Round(time.Second))
	}
	if e.Path == "" {
		return fmt.Sprintf("session %s is running %s since %s", e.Session, e.Tool, e.Age.Round(time.Second))
	}
	return fmt.Sprintf("session %s is running %s on %s since %s", e.Session, e.Tool, e.Path, e.Age.Round(time.Second))
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// DamageError names the content that an operation needs and that cannot be read.
type DamageError struct {
	Path store.Path
	Blob blob.Hash
	Err  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s needs the damaged blob %s: %v", e.Path, e.Blob, e.Err)
}

// Unwrap gives blob's own error.
func (e *DamageError) Unwrap() error { return e.Err }

// Latest stands for the number of the session's last turn.
const Latest = -1

// Request says what to do. Kind decides which other fields count.
type Request struct {
	Kind    store.OpKind    // OpRewind, OpUndo, OpRedo, OpSwitch or OpFork
	Session store.SessionID // whose head moves; of a fork, the parent; of a switch, where to go
	// Turn of a rewind or a fork: a number from 0, Latest, or the number after the last turn,
	// which means where the last turn ended.
	Turn  int
	Scope store.Scope  // of a rewind
	Op    store.OpID   // of an undo: return to before this one; 0 means the newest that stands
	Name  string       // of a fork's session
	Code  bool         // of a fork: take the files there too
	Only  []store.Path // only these paths and what lies below them; none means all
	Force bool         // go on over conflicts and close a running turn
	Skip  bool         // leave conflicting paths alone
}

// Engine moves the heads of one store over one workspace. It is safe for concurrent use, and
// beside other processes.
type Engine struct {
	capture *capture.Capturer
	options Options
}

// Options change an engine; the zero value is for every day.
type Options struct {
	// CallTimeout is how long an announced call counts as running without any event of its
	// session; 0 means 10 minutes.
	CallTimeout time.Duration
	// LockWait is how long Apply waits for the workspace lock before it returns
	// capture.ErrLocked; 0 means 10 seconds.
	LockWait time.Duration
	// Point is called with the name of each step of Apply, for the tests that stop there.
	Point func(name string)
}

// New makes an engine.
func New(c *capture.Capturer, o Options) *Engine {
	if o.CallTimeout <= 0 {
		o.CallTimeout = 10 * time.Minute
	}
	if o.LockWait <= 0 {
		o.LockWait = 10 * time.Second
	}
	if o.Point == nil {
		o.Point = func(string) {}
	}
	return &Engine{capture: c, options: o}
}

// Result is what an operation does or, of a plan, would do. Lists are sorted by path.
type Result struct {
	Operation  store.OpID // 0 of a plan
	Kind       store.OpKind
	Session    store.SessionID
	Turn       int // -1 where it has none
	Scope      store.Scope
	Written    []store.Path
	Deleted    []store.Path
	Conflicts  []Conflict // of a plan that cannot be applied; empty once applied
	AlsoUndoes []AlsoUndoes
	Left       []store.Path // differ from the target and stay as they are
	// Folders are those of Written, Deleted and Left that are, or were, folders.
	Folders    map[store.Path]bool
	NotCovered []NotCovered
	Messages   int64           // of the conversation afterwards
	Prompt     string          // of the turn that a conversation was rewound to
	Branch     store.SessionID // the new session of a fork, once applied
	Parent     store.SessionID // of a fork
	Undoes     store.OpID      // of an undo or redo: what it takes back
}

// The reasons of conflicts. They are part of the documented interface.
const (
	ChangedByOther  = "changed_by_other" // somebody else wrote last (I12)
	Unverified      = "unverified"       // the state expected on disk was never recorded
	Overlapping     = "overlapping_exec" // commands of several sessions may have written it
	InTheWay        = "in_the_way"       // something not recorded lies where a file must go (I6)
	NotCaptured     = "not_captured"     // what lies there cannot be captured, so not replaced either
	SymlinkedParent = "symlinked_parent" // a parent folder became a link; writing would follow it
)

// Conflict is a path that stops an operation.
type Conflict struct {
	Path       store.Path
	Reason     string
	LastWriter string
	Entries    []store.Path // of InTheWay: what lies there, at most 20
	Final      bool         // Force does not help
}

// AlsoUndoes is a path whose older foreign change goes with the agent's newer one.
type AlsoUndoes struct {
	Path   store.Path
	Writer string
}

// NotCovered is a path whose wanted state was never captured; it is left alone (I6).
type NotCovered struct {
	Path   store.Path
	Reason string
}
