package rewind_test

import (
	"maps"
	"slices"

	"reasonix/store"
)

// reference is a naive history: every node keeps its rows and messages, every question walks
// the whole line. It predicts what the disk, the heads and the conversations must be.
// A state is a string; absent is "", not known is unknown.
type reference struct {
	disk    map[string]string
	hand    map[string]bool // states that a person made
	heads   []*refNode      // by session
	current int
	ops     []*refOp
}

const unknown = "?"

type refNode struct {
	kind   store.NodeKind
	parent *refNode
	turn   int
	rows   []refRow
	msgs   []string
	sealed bool
}

type refRow struct {
	path, before, after string
	agent               bool
}

type refOp struct {
	id, of  int // of is 0 but for undo and redo
	kind    store.OpKind
	session int
	from    *refNode
	moved   map[string][2]string
	left    map[string]string // path → its state then
}

func newReference() *reference {
	r := &reference{disk: map[string]string{}, hand: map[string]bool{"": true}}
	r.heads = []*refNode{{kind: store.RootNode, turn: -1}}
	return r
}

func child(parent *refNode, kind store.NodeKind) *refNode {
	n := &refNode{kind: kind, parent: parent, turn: parent.turn}
	parent.sealed = true
	switch kind {
	case store.RootNode:
		n.turn = -1
	case store.TurnNode:
		n.turn++
	}
	return n
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

func (n *refNode) newest(path string) *refRow {
	for _, m := range n.line() {
		for _, r := range slices.Backward(m.rows) {
			if r.path == path {
				return &r
			}
		}
	}
	return nil
}

func (n *refNode) known(path string) string {
	if r := n.newest(path); r != nil {
		return r.after
	}
	return unknown
}

// ask is what a transition asks of a path.
type ask struct {
	expect, want string
	agent        bool
}

func between(a, b *refNode) map[string]ask {
	onB := map[*refNode]bool{}
	for _, n := range b.line() {
		onB[n] = true
	}
	asked := map[string]ask{}
	var top *refNode
	for _, n := range a.line() {
		if onB[n] {
			top = n
			break
		}
		for _, r := range slices.Backward(n.rows) {
			q, ok := asked[r.path]
			if !ok {
				q.expect = r.after
			}
			q.want, q.agent = r.before, q.agent || r.agent
			asked[r.path] = q
		}
	}
	var down []*refNode
	for n := b; n != top; n = n.parent {
		down = append(down, n)
	}
	for _, n := range slices.Backward(down) {
		for _, r := range n.rows {
			q, ok := asked[r.path]
			if !ok {
				q.expect = r.before
			}
			q.want, q.agent = r.after, q.agent || r.agent
			asked[r.path] = q
		}
	}
	return asked
}

// tip is what going back to where the last turn ended asks.
func tip(head *refNode) map[string]ask {
	asked := map[string]ask{}
	for _, n := range slices.Backward(head.session()) {
		if n.turn != head.turn {
			continue
		}
		for _, r := range n.rows {
			q, ok := asked[r.path]
			if !ok {
				if !r.agent || (n.kind != store.RestoreNode && n.kind != store.CarryNode) {
					continue
				}
				q.want = r.before
			}
			q.expect, q.agent = r.after, q.agent || r.agent
			asked[r.path] = q
		}
	}
	return asked
}

// look records what is not as the line knows it, or as the other side of a move expects.
func (r *reference) look(session int, paths []string, asked map[string]ask) {
	head := r.heads[session]
	var rows []refRow
	for _, p := range paths {
		was := head.known(p)
		if was == unknown {
			if q, ok := asked[p]; ok {
				was = q.expect
			}
		}
		if was != unknown && was != r.disk[p] {
			rows = append(rows, refRow{p, was, r.disk[p], false})
		}
	}
	if len(rows) == 0 {
		return
	}
	if head.sealed || head.kind != store.TurnNode {
		head = child(head, store.AppendNode)
		head.sealed = true
		r.heads[session] = head
	}
	head.rows = append(head.rows, rows...)
}

func (r *reference) set(p, state string) {
	if state == "" {
		delete(r.disk, p)
	} else {
		r.disk[p] = state
	}
}

// edit is an announced edit: the state before is looked at, then the agent writes.
func (r *reference) edit(session int, p, state string) {
	r.look(session, []string{p}, nil)
	head := r.heads[session]
	before := r.disk[p]
	r.set(p, state)
	for i, row := range slices.Backward(head.rows) {
		if row.path == p {
			if row.agent {
				head.rows[i].after = state
				return
			}
			break
		}
	}
	head.rows = append(head.rows, refRow{p, before, state, true})
}

// endTurn looks at the paths of the turn, drops what is no change and seals.
func (r *reference) endTurn(session int) {
	head := r.heads[session]
	if head.sealed || head.kind != store.TurnNode {
		return
	}
	paths := map[string]bool{}
	for _, row := range head.rows {
		paths[row.path] = true
	}
	r.look(session, slices.Sorted(maps.Keys(paths)), nil)
	head.rows = slices.DeleteFunc(head.rows, func(row refRow) bool { return row.before == row.after })
	head.sealed = true
}

// request is a move: from the head of session to target, which is nil for where the last turn ended.
type refMove struct {
	kind        store.OpKind
	session     int
	target      *refNode
	stays       bool
	files       bool
	force, skip bool
	only        map[string]bool
	of          *refOp
}

type refResult struct {
	conflicts map[string]bool
	moved     map[string][2]string
	left      map[string]bool
	from, to  *refNode
}

// move makes a move; with conflicts nothing happens but that the disk was not looked at either.
func (r *reference) move(m refMove) refResult {
	head := r.heads[m.session]
	ask := func() map[string]ask {
		if m.target == nil && !m.files {
			return nil // the conversation is there already
		}
		if m.target == nil {
			return tip(r.heads[m.session])
		}
		return between(r.heads[m.session], m.target)
	}
	asked := ask()
	pins := map[string][2]string{}
	if m.of != nil {
		maps.Copy(pins, m.of.moved)
		for p, state := range m.of.left {
			pins[p] = [2]string{state, state}
		}
	}
	paths := slices.Sorted(maps.Keys(asked))
	for p := range pins {
		if _, ok := asked[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	r.look(m.session, paths, asked)
	looked := r.heads[m.session]
	asked = ask()
	res := refResult{conflicts: map[string]bool{}, moved: map[string][2]string{}, left: map[string]bool{}}
	for _, p := range paths {
		q := asked[p]
		pin, pinned := pins[p]
		want, disk := q.want, r.disk[p]
		if pinned {
			want = pin[0]
		}
		newest := looked.newest(p)
		foreign := newest != nil && !newest.agent && !(pinned && disk == pin[1])
		switch {
		case disk == want:
		case !m.files || (len(m.only) > 0 && !m.only[p]):
			res.left[p] = true
		case !q.agent && (!pinned || pin[0] == pin[1]):
			res.left[p] = true
		case foreign && m.skip:
			res.left[p] = true
		case foreign && !m.force:
			res.conflicts[p] = true
		default:
			res.moved[p] = [2]string{disk, want}
		}
	}
	if len(res.conflicts) > 0 {
		r.heads[m.session] = head
		return res
	}
	res.from = looked
	for p, s := range res.moved {
		r.set(p, s[1])
	}
	to := m.target
	if to == nil || m.stays {
		to = looked
	}
	kind := store.CarryNode
	var rows []refRow
	if m.stays {
		kind = store.RestoreNode
		for _, p := range slices.Sorted(maps.Keys(res.moved)) {
			rows = append(rows, refRow{p, res.moved[p][0], res.moved[p][1], true})
		}
	} else {
		for _, p := range paths {
			there := to.known(p)
			if there == unknown {
				if q, ok := asked[p]; ok {
					there = q.want
				} else {
					there = r.disk[p]
				}
			}
			if r.disk[p] != there {
				newest := looked.newest(p)
				rows = append(rows, refRow{p, there, r.disk[p], newest != nil && newest.agent})
			}
		}
	}
	to.sealed = true
	if len(rows) > 0 {
		to = child(to, kind)
		to.rows, to.sealed = rows, true
	}
	res.to = to
	left := map[string]string{}
	for p := range res.left {
		left[p] = r.disk[p]
	}
	op := &refOp{id: len(r.ops) + 1, kind: m.kind, session: m.session, from: looked, moved: res.moved, left: left}
	if m.of != nil {
		op.of = m.of.id
	}
	r.ops = append(r.ops, op)
	return res
}

// stands follows the definition: no standing later operation of the session covers it.
func (r *reference) stands(o *refOp) bool {
	stands := map[*refOp]bool{}
	for i, x := range slices.Backward(r.ops) {
		stands[x] = !slices.ContainsFunc(r.ops[i+1:], func(y *refOp) bool {
			return stands[y] && y.session == x.session && y.of != 0 && y.of <= x.id
		})
	}
	return stands[o]
}

func (r *reference) undoable(session int) *refOp {
	for _, o := range slices.Backward(r.ops) {
		if o.session == session && o.kind.Undoable() && r.stands(o) {
			return o
		}
	}
	return nil
}

func (r *reference) redoable(session int) *refOp {
	for _, o := range slices.Backward(r.ops) {
		if o.session != session || !r.stands(o) {
			continue
		}
		switch o.kind {
		case store.OpUndo:
			return o
		case store.OpRewind, store.OpCompact:
			return nil
		}
	}
	return nil
}
