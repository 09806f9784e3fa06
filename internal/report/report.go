// Package report holds the shapes in which results are given to other programs: those of the
// command line's --json, which the HTTP API answers with too. docs/json.md describes them. What
// package view prepares has its shapes there.
package report

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"reasonix/internal/view"
	"reasonix/store"
)

// PathName is the exact name of a path that a list of strings can only show with U+FFFD.
type PathName struct {
	Path string `json:"path"`
	B64  string `json:"path_b64"`
}

// Text is a path, or another name of the system, as a JSON string shows it.
func Text[T ~string](name T) string { return strings.ToValidUTF8(string(name), "\uFFFD") }

// B64 is the exact name beside one that is not UTF-8; empty, and left out, for others.
func B64(p store.Path) string {
	if utf8.ValidString(string(p)) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(p))
}

// OpID is an operation's id as JSON has it, a string; nil for none.
func OpID(id store.OpID) *string {
	if id == 0 {
		return nil
	}
	text := strconv.FormatInt(int64(id), 10)
	return &text
}

// Error says why something was not done.
type Error struct {
	Code    string `json:"code"` // a stable word
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do next; may be empty
}

// Session is a session in a list of them.
type Session struct {
	Session   store.SessionID  `json:"session"`
	Name      string           `json:"name"`
	Source    string           `json:"source"`
	SourceID  string           `json:"source_id"`
	Parent    *store.SessionID `json:"parent"`    // nil of what is no fork
	ForkTurn  *int             `json:"fork_turn"` // of the parent
	Turns     int              `json:"turns"`
	Messages  int64            `json:"messages"`
	CreatedMS int64            `json:"created_ms"`
	UpdatedMS int64            `json:"updated_ms"`
	IsCurrent bool             `json:"is_current"`
}

// NewSession is a session as it is reported.
func NewSession(s store.Session) Session {
	out := Session{
		Session: s.ID, Name: s.Name, Source: s.Source, SourceID: s.SourceID, Turns: s.Turns, Messages: s.Messages,
		CreatedMS: s.Created.UnixMilli(), UpdatedMS: s.Updated.UnixMilli(), IsCurrent: s.Current,
	}
	if s.Parent != "" {
		out.Parent, out.ForkTurn = &s.Parent, &s.ForkTurn
	}
	return out
}

// Sessions are the sessions of a workspace.
type Sessions struct {
	Workspace string    `json:"workspace"`
	Sessions  []Session `json:"sessions"` // the one last used first
	// Nested are other workspaces with a store in or around this one.
	Nested []string `json:"nested"`
}

// NewSessions is a list as it is reported.
func NewSessions(root string, all []store.Session, nested []string) Sessions {
	out := Sessions{Workspace: Text(root), Sessions: []Session{}, Nested: []string{}}
	for _, s := range all {
		out.Sessions = append(out.Sessions, NewSession(s))
	}
	for _, n := range nested {
		out.Nested = append(out.Nested, Text(n))
	}
	return out
}

// Tree is all sessions with their forks.
type Tree struct {
	Tree []*view.Branch `json:"tree"`
}

// Operation is an entry of the operation log.
type Operation struct {
	Operation string          `json:"operation"`
	Session   store.SessionID `json:"session"`
	Kind      string          `json:"kind"`
	Scope     *string         `json:"scope"`
	Turn      *int            `json:"turn"`
	State     string          `json:"state"`
	Written   int             `json:"written"`
	Deleted   int             `json:"deleted"`
	CreatedMS int64           `json:"created_ms"`
	Of        *string         `json:"of"`        // what an undo or redo names
	UndoneBy  *string         `json:"undone_by"` // nil while it stands
}

// NewOperation is an operation as it is reported.
func NewOperation(o store.Operation) Operation {
	out := Operation{
		Operation: strconv.FormatInt(int64(o.ID), 10), Session: o.Session, Kind: o.Kind.String(), State: o.State.String(),
		Written: o.Written, Deleted: o.Deleted, CreatedMS: o.Created.UnixMilli(),
		Of: OpID(o.Of), UndoneBy: OpID(o.UndoneBy),
	}
	if o.Scope != 0 {
		scope := o.Scope.String()
		out.Scope = &scope
	}
	if o.Turn >= 0 {
		out.Turn = &o.Turn
	}
	return out
}

// Operations is a part of the operation log, newest first.
type Operations struct {
	Operations []Operation `json:"operations"`
	More       bool        `json:"more"` // older ones than these are there
}

// NewOperations is the newest limit of a log, or all of it when limit is 0.
func NewOperations(all []store.Operation, limit int) Operations {
	out := Operations{Operations: []Operation{}}
	for i, o := range all {
		if limit > 0 && i == limit {
			out.More = true
			break
		}
		out.Operations = append(out.Operations, NewOperation(o))
	}
	return out
}

// Diff is what differs between two sides.
type Diff struct {
	From  Side        `json:"from"`
	To    Side        `json:"to"`
	Files []view.File `json:"files"`
}

// Side is one side of a Diff: the start of a turn, or the disk.
type Side struct {
	Session store.SessionID `json:"session,omitempty"`
	Turn    *int            `json:"turn,omitempty"`
	Disk    bool            `json:"disk,omitempty"`
}

// NewSide is a side as it is reported.
func NewSide(s view.Side) Side {
	if s.Disk {
		return Side{Disk: true}
	}
	return Side{Session: s.Session, Turn: &s.Turn}
}
