package store

import (
	"fmt"
	"strings"
	"time"

	"reasonix/blob"
)

// Path names a file below the workspace root: slash-separated, relative, clean, without a
// leading "./" or any "..". It is a byte string: a name on disk need not be UTF-8, and two
// names are one path only when their bytes are equal. The root itself is "." and is never
// recorded. internal/workspace is the only maker of Paths from names of the outside.
type Path string

// Parent is the folder that p lies in, "" when that is the workspace root.
func (p Path) Parent() Path {
	i := strings.LastIndexByte(string(p), '/')
	return p[:max(i, 0)]
}

// Below reports whether p lies in folder q or below it.
func (p Path) Below(q Path) bool { return len(p) > len(q) && p[len(q)] == '/' && p[:len(q)] == q }

// SessionID is a session's public id: eight characters of [0-9a-z], unique in its store.
type SessionID string

// NodeID identifies a node of the history tree. Zero is no node.
type NodeID int64

// OpID identifies an operation. Later operations have larger ids. Zero is no operation.
type OpID int64

// Kind is what a path is.
type Kind uint8

// The numbers are stored; they never change.
const (
	Absent     Kind = 1 // nothing is there
	File       Kind = 2 // a regular file: Mode, Blob and Size are its own
	Symlink    Kind = 3 // a symbolic link: Blob holds the target's bytes, Mode is 0
	Dir        Kind = 4 // a folder: Mode only; what it holds are paths of their own
	Uncaptured Kind = 5 // something that was not captured (I6): never deleted, never overwritten
)

var kindNames = [...]string{Absent: "absent", File: "file", Symlink: "symlink", Dir: "dir", Uncaptured: "uncaptured"}

func (k Kind) String() string { return enumName(kindNames[:], k) }

// State is what a path is at one moment. States are equal exactly when == says so.
// The zero State is invalid and stands for "not known".
type State struct {
	Kind Kind
	Mode uint32    // permission bits, at most 0o777; 0 for absent, symlink, uncaptured
	Blob blob.Hash // content of a file, target of a symlink; else zero
	Size int64     // bytes of the content or the target
}

// AbsentState is the state of a path where nothing is.
var AbsentState = State{Kind: Absent}

// UncapturedState is the state of a path that could not, or was not to be, captured.
var UncapturedState = State{Kind: Uncaptured}

// Known reports whether s says anything at all.
func (s State) Known() bool { return s.Kind != 0 }

// HasContent reports whether s refers to a blob.
func (s State) HasContent() bool { return s.Kind == File || s.Kind == Symlink }

func (s State) String() string {
	switch s.Kind {
	case File:
		return fmt.Sprintf("file %04o %d bytes %s", s.Mode, s.Size, s.Blob.Short())
	case Symlink:
		return "symlink " + s.Blob.Short()
	case Dir:
		return fmt.Sprintf("dir %04o", s.Mode)
	case Absent, Uncaptured:
		return s.Kind.String()
	}
	return "unknown"
}

// Source says how a row came to be.
type Source uint8

// The numbers are stored; they never change.
const (
	SourceTool     Source = 1 // an announced edit of the agent
	SourceShell    Source = 2 // a command of the agent
	SourceExternal Source = 3 // seen on disk, done by somebody else
	SourceRestore  Source = 4 // written by a code rewind
	SourceCarry    Source = 5 // left on disk by a move of the head
	SourceImport   Source = 6 // read from another program's files
)

var sourceNames = [...]string{
	SourceTool: "tool", SourceShell: "shell", SourceExternal: "external",
	SourceRestore: "restore", SourceCarry: "carry", SourceImport: "import",
}

func (s Source) String() string { return enumName(sourceNames[:], s) }

// Origin says whose change a row is: the agent's own, or somebody else's (I12, I13).
type Origin uint8

// The numbers are stored; they never change.
const (
	Agent    Origin = 1
	External Origin = 2
)

var originNames = [...]string{Agent: "agent", External: "external"}

func (o Origin) String() string { return enumName(originNames[:], o) }

// Change is one row of a node: a path's state before and after.
type Change struct {
	Path          Path
	Source        Source
	Origin        Origin
	Before, After State
}

// NodeKind is the kind of a history node.
type NodeKind uint8

// The numbers are stored; they never change.
const (
	RootNode    NodeKind = 1 // a new session
	TurnNode    NodeKind = 2 // begin-turn
	AppendNode  NodeKind = 3 // anything outside an open turn's own node
	RestoreNode NodeKind = 4 // a code rewind
	CarryNode   NodeKind = 5 // a move of the head that leaves files as they are
)

var nodeKindNames = [...]string{
	RootNode: "root", TurnNode: "turn", AppendNode: "append", RestoreNode: "restore", CarryNode: "carry",
}

func (k NodeKind) String() string { return enumName(nodeKindNames[:], k) }

// Node is one step of the history tree. Its address is (Segment, Depth): a segment is a run
// of nodes each of which is the child of the one before, named by its first node's id.
type Node struct {
	ID       NodeID
	Parent   NodeID // 0 for the first root of the store
	Kind     NodeKind
	Segment  NodeID
	Depth    int64 // nodes above it, up to the top of the tree
	Turn     int   // number of the last turn at or above it in its session; -1 before turn 0
	MsgStart int64 // messages of the line above it, up to its session's root
	MsgCount int64 // its own messages
	Created  time.Time
}

// Messages is the number of messages of the line that ends with n.
func (n Node) Messages() int64 { return n.MsgStart + n.MsgCount }

// Status is the state of a turn.
type Status uint8

// The numbers are stored; they never change.
const (
	TurnOpen        Status = 1
	TurnDone        Status = 2
	TurnInterrupted Status = 3
	TurnFailed      Status = 4
)

var statusNames = [...]string{
	TurnOpen: "open", TurnDone: "done", TurnInterrupted: "interrupted", TurnFailed: "failed",
}

func (s Status) String() string { return enumName(statusNames[:], s) }

// Turn is a turn of a session's line.
type Turn struct {
	Node      Node
	Key       string // the caller's own key of the prompt; may be empty
	Prompt    string
	Status    Status
	MsgIndex  int64 // messages of the line before the turn: its message boundary
	Messages  int64 // messages of the turn's own
	StartedAt time.Time
	EndedAt   time.Time // zero while open
}

// Number is the turn's number along its session's line, from 0.
func (t Turn) Number() int { return t.Node.Turn }

// Session is a named line of conversation: a pointer to a node.
type Session struct {
	ID       SessionID
	Name     string
	Source   string // the agent that feeds it; "" for a fork made here
	SourceID string // the agent's own id of it
	Head     NodeID
	Root     NodeID // its root node; a fork shares its parent's
	Open     NodeID // the node that takes rows and messages while a turn is open, else 0
	OpenTurn NodeID // the turn node of the turn that is open, else 0
	Parent   SessionID
	ForkTurn int // turn of the parent it was forked at; -1 when it is no fork
	ForkMsg  int64
	Created  time.Time
	Updated  time.Time // last event or operation
	Current  bool      // the workspace's current session
	Turns    int
	Messages int64
}

// Message is one message of a conversation.
type Message struct {
	Index int64  // position in the full line of its session; -1 for a message of a compaction
	Turn  int    // turn that it belongs to or follows; -1 before turn 0
	Role  string // the "role" of JSON; "" when it has none
	JSON  []byte // exactly as it came in
}

// Gap is something that a turn may have changed and that was not captured.
type Gap struct {
	Turn   int
	Reason string // one of the Gap… constants
	Path   Path   // "" when it is about no single path
	Tool   string
	Detail string
}

// The reasons of gaps. They are part of the documented interface.
const (
	GapShellNotScanned  = "shell_not_scanned"
	GapOutside          = "outside_workspace"
	GapProtected        = "protected"        // below .git or the store itself
	GapInvalidPath      = "invalid_path"     // a name that cannot be a path here
	GapUnreadable       = "unreadable"       // open, read or stat refused
	GapSpecial          = "special_file"     // socket, device, pipe
	GapDeadline         = "capture_deadline" // not done in time
	GapFailed           = "capture_failed"   // an error of ours or the system's; the log says which
	GapLateWrite        = "late_write"       // an after-event for a sealed node
	GapNoBefore         = "no_before"        // an after-event without its before-event
	GapLocked           = "locked"           // an operation held the workspace
	GapTooMany          = "too_many_entries" // a folder with more entries than one event may name
	GapSymlinkedParent  = "symlinked_parent" // a parent became a link meanwhile
	GapChangedWhileRead = "changed_while_read"
	GapTooLarge         = "too_large"        // over the limit of bytes of one file
	GapTooManyFiles     = "too_many_files"   // a scan's limit of files
	GapTooManyBytes     = "too_many_bytes"   // a scan's limit of bytes
	GapIgnoreRules      = "ignore_rules"     // a file of ignore rules that cannot be used
	GapScanIncomplete   = "scan_incomplete"  // a scan ran into its deadline
	GapOverlap          = "overlapping_exec" // commands of several sessions ran at once
)

// OpKind is the kind of an operation.
type OpKind uint8

// The numbers are stored; they never change.
const (
	OpRewind  OpKind = 1
	OpUndo    OpKind = 2
	OpRedo    OpKind = 3
	OpSwitch  OpKind = 4
	OpFork    OpKind = 5
	OpCompact OpKind = 6
	OpImport  OpKind = 7
	OpGC      OpKind = 8
	OpDelete  OpKind = 9
)

var opKindNames = [...]string{
	OpRewind: "rewind", OpUndo: "undo", OpRedo: "redo", OpSwitch: "switch", OpFork: "fork",
	OpCompact: "compact", OpImport: "import", OpGC: "gc", OpDelete: "delete",
}

func (k OpKind) String() string { return enumName(opKindNames[:], k) }

// Undoable reports whether undo-rewind may take k back; other kinds are passed over.
func (k OpKind) Undoable() bool {
	return k == OpRewind || k == OpRedo || k == OpCompact || k == OpDelete
}

// OpState is how far an operation has come.
type OpState uint8

// The numbers are stored; they never change.
const (
	Applying   OpState = 1 // intent committed, files may be in either state
	Applied    OpState = 2
	RolledBack OpState = 3
)

var opStateNames = [...]string{Applying: "applying", Applied: "applied", RolledBack: "rolled_back"}

func (s OpState) String() string { return enumName(opStateNames[:], s) }

// Scope says what a rewind moves.
type Scope uint8

// The numbers are stored; they never change.
const (
	Code         Scope = 1
	Conversation Scope = 2
	Both         Scope = 3
)

var scopeNames = [...]string{Code: "code", Conversation: "conversation", Both: "both"}

func (s Scope) String() string { return enumName(scopeNames[:], s) }

// ParseScope reads "code", "conversation" or "both"; anything else is an error.
func ParseScope(s string) (Scope, error) {
	for i, name := range scopeNames {
		if name != "" && name == s {
			return Scope(i), nil
		}
	}
	return 0, fmt.Errorf("unknown scope %q: it is code, conversation or both", s)
}

// Operation is an entry of the append-only log.
type Operation struct {
	ID       OpID
	Session  SessionID
	Kind     OpKind
	Scope    Scope // 0 where it has none
	Turn     int   // target; -1 where it has none
	State    OpState
	Of       OpID // what an undo or redo takes back
	UndoneBy OpID // the standing operation that takes it back; 0 while it stands
	HeadFrom NodeID
	HeadTo   NodeID // 0 until applied
	Written  int    // paths that it wrote
	Deleted  int    // paths that it removed
	Created  time.Time
}

// OpPath is a path of an operation.
type OpPath struct {
	Path     Path
	From, To State // equal where the operation left the path alone
	Left     bool
}

func enumName[T ~uint8](names []string, v T) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("invalid(%d)", uint8(v))
}
