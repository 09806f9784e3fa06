package report

import (
	"slices"

	"reasonix/rewind"
	"reasonix/store"
)

// Move is what a rewind, undo, redo, switch or fork did or, of a dry run, would do.
type Move struct {
	Operation  *string         `json:"operation"` // nil of a plan
	Kind       string          `json:"kind"`
	Session    store.SessionID `json:"session"`
	Turn       *int            `json:"turn"`
	Scope      *string         `json:"scope"`
	Written    []string        `json:"written"`
	Deleted    []string        `json:"deleted"`
	Conflicts  []Conflict      `json:"conflicts"`
	AlsoUndoes []AlsoUndoes    `json:"also_undoes"`
	Left       []string        `json:"left"`
	NotCovered []NotCovered    `json:"not_covered"`
	Messages   int64           `json:"messages"`
	Prompt     string          `json:"prompt,omitempty"`
	Undoes     *string         `json:"undoes,omitempty"`
	DryRun     bool            `json:"dry_run"`
	PathsB64   []PathName      `json:"paths_b64,omitempty"`
	// Of a fork.
	Branch store.SessionID `json:"branchId,omitempty"`
	Parent store.SessionID `json:"parent,omitempty"`
}

// Conflict is a path that stops a move.
type Conflict struct {
	Path       string   `json:"path"`
	PathB64    string   `json:"path_b64,omitempty"`
	Reason     string   `json:"reason"`
	LastWriter string   `json:"last_writer"`
	Entries    []string `json:"entries,omitempty"`
	Final      bool     `json:"final,omitempty"` // force does not help
}

// AlsoUndoes is a path where somebody else's older change goes too.
type AlsoUndoes struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"`
	Writer  string `json:"writer"`
}

// NotCovered is a path whose wanted state was never captured.
type NotCovered struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"`
	Reason  string `json:"reason"`
}

// NewMove is a result as it is reported; dry says that it is a plan.
func NewMove(res rewind.Result, dry bool) Move {
	out := Move{
		Operation: OpID(res.Operation), Kind: res.Kind.String(), Session: res.Session, Written: Names(res, res.Written),
		Deleted: Names(res, res.Deleted), Left: Names(res, res.Left), Messages: res.Messages, Prompt: res.Prompt,
		Undoes: OpID(res.Undoes), DryRun: dry, Branch: res.Branch, Parent: res.Parent,
		Conflicts: []Conflict{}, AlsoUndoes: []AlsoUndoes{}, NotCovered: []NotCovered{},
		PathsB64: exactNames(res, res.Written, res.Deleted, res.Left),
	}
	if res.Turn >= 0 {
		out.Turn = &res.Turn
	}
	if res.Kind == store.OpRewind {
		name := res.Scope.String()
		out.Scope = &name
	}
	if res.Branch != "" {
		out.Session = res.Branch
	}
	for _, c := range res.Conflicts {
		out.Conflicts = append(out.Conflicts, Conflict{
			Path: NameOf(res, c.Path), PathB64: exactName(res, c.Path), Reason: c.Reason, LastWriter: c.LastWriter,
			Entries: Names(res, c.Entries), Final: c.Final,
		})
		out.PathsB64 = append(out.PathsB64, exactNames(res, c.Entries)...)
	}
	for _, u := range res.AlsoUndoes {
		out.AlsoUndoes = append(out.AlsoUndoes, AlsoUndoes{Path: NameOf(res, u.Path), PathB64: exactName(res, u.Path), Writer: u.Writer})
	}
	for _, n := range res.NotCovered {
		out.NotCovered = append(out.NotCovered, NotCovered{Path: NameOf(res, n.Path), PathB64: exactName(res, n.Path), Reason: n.Reason})
	}
	return out
}

// Names are paths of a result for lists; folders end in a slash.
func Names(res rewind.Result, paths []store.Path) []string {
	all := make([]string, 0, len(paths))
	for _, p := range paths {
		all = append(all, NameOf(res, p))
	}
	return all
}

// NameOf is one path of a result.
func NameOf(res rewind.Result, p store.Path) string {
	if res.Folders[p] {
		return Text(p) + "/"
	}
	return Text(p)
}

// exactName is the name beside one that is not UTF-8; empty, and left out, for others.
func exactName(res rewind.Result, p store.Path) string {
	if res.Folders[p] {
		p += "/"
	}
	return B64(p)
}

// exactNames are those of the paths that are not UTF-8.
func exactNames(res rewind.Result, lists ...[]store.Path) []PathName {
	var all []PathName
	for _, p := range slices.Concat(lists...) {
		if b := exactName(res, p); b != "" {
			all = append(all, PathName{Path: NameOf(res, p), B64: b})
		}
	}
	return all
}

// Deletion is the deletion of a session, or what took one back.
type Deletion struct {
	Operation *string         `json:"operation"`
	Session   store.SessionID `json:"session"`
	Undoes    *string         `json:"undoes,omitempty"`
}
