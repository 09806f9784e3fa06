package rewind_test

import (
	"maps"
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
	now      int // seconds
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
}

type refNode struct {
	kind    store.NodeKind
	parent  *refNode
	turn    int
	rows    []refRow
	msgs    []string
	summary string // of a compaction: what stands for the first compacted messages
	covers  int
}

type refRow struct {
	path, before, after string
	agent               bool
}

type refCall struct {
	key   string
	node  *refNode
	paths []string
}

func newReference() *reference {
	root := &refNode{kind: store.RootNode, turn: -1}
	return &reference{disk: folder{}, sessions: []*refSession{{head: root, open: root}}}
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

// event notes that something of session s was recorded.
func (r *reference) event(s int) { r.current, r.sessions[s].last = s, r.now }

// writable is the node that takes the session's rows and messages.
func (r *reference) writable(s *refSession) *refNode {
	if s.open != nil {
		return s.open
	}
	s.head = r.child(s.head, store.AppendNode)
	if s.turn != nil {
		s.open = s.head
	}
	return s.head
}

func (r *reference) begin() {
	root := r.child(r.sessions[r.current].head, store.RootNode)
	r.sessions = append(r.sessions, &refSession{head: root, open: root})
	r.current = len(r.sessions) - 1
}

func (r *reference) beginTurn(s *refSession) {
	r.endTurn(s)
	s.head = r.child(s.head, store.TurnNode)
	s.open, s.turn = s.head, s.head
}

// touched records the agent's change of a path that the line knew as was.
func (r *reference) touched(s *refSession, p, was string) {
	n := r.writable(s)
	if i := n.last(p); i >= 0 && n.rows[i].agent {
		n.rows[i].after = r.disk[p]
		return
	}
	n.rows = append(n.rows, refRow{p, was, r.disk[p], true})
}

// endTurn looks at the paths of the turn and of its calls, then seals.
func (r *reference) endTurn(s *refSession) {
	if s.turn == nil {
		return
	}
	called, paths := map[string]bool{}, map[string]bool{}
	for _, c := range s.calls {
		for _, p := range c.paths {
			called[p], paths[p] = true, true
		}
	}
	if s.open != nil {
		for _, row := range s.open.rows {
			paths[row.path] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		switch was := s.head.known(p); {
		case was == unknown || was == r.disk[p]:
		case called[p]:
			r.touched(s, p, was)
		default:
			n := r.writable(s)
			n.rows = append(n.rows, refRow{p, was, r.disk[p], false})
		}
	}
	s.calls = nil
	if s.open != nil {
		r.seal(s.open)
	}
	s.turn = nil
}

// involved are the paths that an edit of the named ones may change: with what is in folders,
// where links lead to, and folders that have to be made.
func (r *reference) involved(names []string) []string {
	found := map[string]bool{}
	for _, p := range r.named(names) {
		found[p] = true
		q := p
		if to, ok := r.disk.target(p); ok {
			found[to], q = true, to
		}
		if r.disk[q] != "" && q == p {
			continue
		}
		for _, up := range above(q) {
			if r.disk[up] != "" || r.disk.blocked(up) {
				break
			}
			found[up] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (r *reference) named(names []string) []string {
	found := map[string]bool{}
	for _, name := range names {
		p, ok := r.disk.resolve(name)
		if !ok {
			continue
		}
		found[p] = true
		if isDir(r.disk[p]) {
			for _, q := range r.disk.below(p) {
				found[q] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// before is an announced edit: what differs from the line is somebody else's, unless another
// call of the session announced it.
func (r *reference) before(session int, key string, names []string) {
	s := r.sessions[session]
	if s.turn == nil {
		r.beginTurn(s)
	}
	n := r.writable(s)
	// What lies below a file or a link is not there, and a write would go somewhere else.
	paths := slices.DeleteFunc(r.involved(names), r.disk.blocked)
	for _, p := range paths {
		state := r.disk[p]
		switch was := n.known(p); {
		case was != unknown && was != state && announcing(s.calls, p) != nil:
			r.touched(s, p, was)
			continue
		case was != unknown && was != state:
			n.rows = append(n.rows, refRow{p, was, state, false})
		case was != unknown:
			if i := n.last(p); i >= 0 && n.rows[i].agent {
				continue
			}
		}
		n.rows = append(n.rows, refRow{p, state, state, true})
	}
	s.calls = append(s.calls, &refCall{key, n, paths})
	r.event(session)
}

// after is the end of a call, or of one that was never announced.
func (r *reference) after(session int, key string, names []string) {
	s := r.sessions[session]
	paths := r.named(names)
	var ended []*refCall
	for _, c := range s.calls {
		if c.key == key {
			ended = append(ended, c)
			paths = append(paths, c.paths...)
		}
	}
	gaps := 0
	for _, name := range names {
		if _, ok := r.disk.resolve(name); !ok {
			gaps++
		}
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		was, state := s.head.known(p), r.disk[p]
		call := announcing(ended, p)
		switch {
		case was == state:
			continue
		case was == unknown && call != nil:
			was = ""
		case was == unknown:
			gaps++ // what was there before is not known
			if was = uncaptured; state == "" {
				continue
			}
		}
		if call == nil && s.open == nil || call != nil && call.node != s.open {
			gaps++ // late
		}
		r.touched(s, p, was)
	}
	for range gaps {
		r.writable(s) // holds the gap
	}
	s.calls = slices.DeleteFunc(s.calls, func(c *refCall) bool { return slices.Contains(ended, c) })
	r.event(session)
}

func announcing(calls []*refCall, p string) *refCall {
	for _, c := range calls {
		if slices.ContainsFunc(c.paths, func(q string) bool { return p == q || inside(p, q) }) {
			return c
		}
	}
	return nil
}
