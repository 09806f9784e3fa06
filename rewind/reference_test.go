package rewind_test

import (
	"slices"

	"reasonix/store"
)

// reference is a naive history: every node keeps its rows and messages, every question walks
// the whole line. It predicts what the disk, the heads and the conversations must be.
type reference struct {
	disk     folder
	sessions []*refSession
	current  int
	ops      []*refOp
	index    folder            // what the last scan saw; nil before the first
	now      int               // seconds
	expired  map[*refNode]bool // states whose contents a collection may have dropped
}

// What a line may say of a path beside the states of a folder.
const (
	unknown    = "?" // nothing
	uncaptured = "!" // that it is not known
)

type refSession struct {
	head, open, turn *refNode // open takes rows and messages; turn is the open one
	calls            []*refCall
	last             int // when its last event came
	updated          int // when its last event or operation did
}

type refNode struct {
	kind    store.NodeKind
	parent  *refNode
	turn    int
	rows    []refRow
	msgs    []string
	summary string // of a compaction: what stands for the first compacted messages
	covers  int
	overlap map[string]bool // paths that commands of several sessions may have written
}

type refRow struct {
	path, before, after string
	agent               bool
	shell               bool // of a command
}

type refCall struct {
	key     string
	node    *refNode
	paths   []string
	exec    bool // a command, which announces no paths
	started int
}

func newReference() *reference {
	root := &refNode{kind: store.RootNode, turn: -1}
	return &reference{disk: folder{}, expired: map[*refNode]bool{}, sessions: []*refSession{{head: root, open: root}}}
}

// child adds a node below parent, which is sealed by that.
func (r *reference) child(parent *refNode, kind store.NodeKind) *refNode {
	r.seal(parent)
	n := &refNode{kind: kind, parent: parent, turn: parent.turn}
	switch kind {
	case store.RootNode:
		n.turn = -1
	case store.TurnNode:
		n.turn++
	}
	return n
}

// seal drops what turned out to be no change, but for paths of calls that are still open.
func (r *reference) seal(n *refNode) {
	called, open := map[string]bool{}, false
	for _, s := range r.sessions {
		if s.open == n {
			s.open, open = nil, true
		}
		for _, c := range s.calls {
			for _, p := range c.paths {
				called[p] = true
			}
		}
	}
	if open {
		n.rows = slices.DeleteFunc(n.rows, func(row refRow) bool { return row.before == row.after && !called[row.path] })
	}
}

func (n *refNode) line() []*refNode { // from n up to the top
	var all []*refNode
	for ; n != nil; n = n.parent {
		all = append(all, n)
	}
	return all
}

func (n *refNode) session() []*refNode { // from n up to its root
	all := n.line()
	i := slices.IndexFunc(all, func(m *refNode) bool { return m.kind == store.RootNode })
	return all[:i+1]
}

func (n *refNode) turns() []*refNode { // by number
	var all []*refNode
	for _, m := range slices.Backward(n.session()) {
		if m.kind == store.TurnNode {
			all = append(all, m)
		}
	}
	return all
}

func (n *refNode) messages() []string {
	var all []string
	for _, m := range slices.Backward(n.session()) {
		all = append(all, m.msgs...)
	}
	return all
}

// effective is what a model is sent: each compaction covers all that earlier ones do.
func (n *refNode) effective() []string {
	all := n.messages()
	for _, m := range n.session() {
		if m.covers > 0 {
			return append([]string{m.summary}, all[m.covers:]...)
		}
	}
	return all
}

// covered is how many messages are compacted.
func (n *refNode) covered() int {
	for _, m := range n.session() {
		if m.covers > 0 {
			return m.covers
		}
	}
	return 0
}

func (n *refNode) newest(path string) *refRow {
	for ; n != nil; n = n.parent {
		for i, row := range slices.Backward(n.rows) {
			if row.path == path {
				return &n.rows[i]
			}
		}
	}
	return nil
}

func (n *refNode) known(path string) string {
	if row := n.newest(path); row != nil {
		return row.after
	}
	return unknown
}

func (n *refNode) last(path string) int { // index of the last row about path, -1 for none
	for i, row := range slices.Backward(n.rows) {
		if row.path == path {
			return i
		}
	}
	return -1
}
