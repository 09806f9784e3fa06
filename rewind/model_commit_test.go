package rewind_test

import (
	"maps"
	"slices"

	"reasonix/store"
)

type refOp struct {
	id, of  int // of is 0 but for undo and redo
	kind    store.OpKind
	session int
	from    *refNode
	moved   map[string]refStep
	left    map[string]string // path → its state then
	was     folder            // all files, as they were before
	said    []string          // the conversation, as it was before
}

// closes are the sessions whose open turns a move closes.
func (r *reference) closes(m refMove) []int {
	var all []int
	for i, s := range r.sessions {
		own := i == m.session || i == m.moving()
		if s.turn != nil && (own || m.files && r.busy(i)) {
			all = append(all, i)
		}
	}
	return all
}

// The times after which a session does not count as running, in seconds.
const (
	refTurnTime = 15
	refCallTime = 600
)

func (r *reference) busy(session int) bool {
	s := r.sessions[session]
	quiet := r.now - s.last
	return s.turn != nil && (quiet < refTurnTime || len(s.calls) > 0 && quiet < refCallTime)
}

// refuses reports whether a running turn stops a move.
func (r *reference) refuses(m refMove) bool {
	for i := range r.sessions {
		if !m.force && (m.files || i == m.session) && r.busy(i) {
			return true
		}
	}
	return false
}

// commit makes a move that was planned.
func (r *reference) commit(m refMove, p *refPlan) {
	s := r.sessions[m.session]
	op := &refOp{
		id: len(r.ops) + 1, kind: m.kind, session: m.moving(), moved: p.steps, left: map[string]string{},
		was: maps.Clone(r.disk), said: r.sessions[m.moving()].head.messages(),
	}
	if m.of != nil {
		op.of = m.of.id
	}
	from := r.below(s.head, store.AppendNode, slices.Collect(maps.Values(p.looked)))
	for path := range p.left {
		op.left[path] = r.disk[path]
	}
	for path, s := range p.steps {
		if r.disk[path] = s.to; s.to == "" {
			delete(r.disk, path)
		}
	}
	var to *refNode
	if p.target == nil || m.stays {
		var rows []refRow
		for path, s := range p.steps {
			rows = append(rows, refRow{path: path, before: s.from, after: s.to, agent: true})
		}
		to = r.below(from, store.RestoreNode, rows)
	} else {
		to = r.below(p.target, store.CarryNode, r.carried(p, from))
	}
	op.from = from
	r.ops = append(r.ops, op)
	r.seal(from)
	switch m.kind {
	case store.OpFork:
		r.seal(to)
		s.head, s.updated = from, r.now
		r.sessions = append(r.sessions, &refSession{head: to, updated: r.now})
		r.current = len(r.sessions) - 1
	case store.OpSwitch:
		s.head, s.updated = from, r.now
		if m.to != m.session {
			r.move(r.sessions[m.to], to)
		}
		r.current = m.to
	default:
		r.move(s, to)
	}
}

// move lets a session point to a node.
func (r *reference) move(s *refSession, to *refNode) {
	if to != s.open {
		r.seal(to)
		if s.open != nil {
			r.seal(s.open)
		}
	}
	s.head, s.updated = to, r.now
}

// below adds a node with rows, by path; without rows there is no node.
func (r *reference) below(parent *refNode, kind store.NodeKind, rows []refRow) *refNode {
	if len(rows) == 0 {
		return parent
	}
	n := r.child(parent, kind)
	n.rows = slices.SortedFunc(slices.Values(rows), func(a, b refRow) int {
		if a.path < b.path {
			return -1
		}
		return 1
	})
	return n
}

// carried is where the disk is not as the line that was reached knows it.
func (r *reference) carried(p *refPlan, from *refNode) []refRow {
	paths := p.paths()
	for path := range p.steps {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var rows []refRow
	for _, path := range slices.Compact(paths) {
		there := p.target.known(path)
		if q, ok := p.asked[path]; ok && there == unknown {
			there = q.want
		}
		newest := from.newest(path)
		agent := newest != nil && newest.agent
		if s := p.steps[path]; there == unknown && s.implied {
			there, agent = s.from, true
		}
		if there != unknown && there != r.disk[path] {
			rows = append(rows, refRow{path: path, before: there, after: r.disk[path], agent: agent})
		}
	}
	return rows
}

// stands follows the definition: no standing later operation of the session covers it.
func (r *reference) standing() map[*refOp]bool {
	stands := map[*refOp]bool{}
	for i, x := range slices.Backward(r.ops) {
		stands[x] = !slices.ContainsFunc(r.ops[i+1:], func(y *refOp) bool {
			return stands[y] && y.session == x.session && y.of != 0 && y.of <= x.id
		})
	}
	return stands
}

// undoable is the operation that an undo takes back, nil when there is none.
func (r *reference) undoable(session int) *refOp {
	stands := r.standing()
	for _, o := range slices.Backward(r.ops) {
		if o.session == session && o.kind.Undoable() && stands[o] {
			return o
		}
	}
	return nil
}

// redoable is the undo that a redo takes back, nil when there is none.
func (r *reference) redoable(session int) *refOp {
	stands := r.standing()
	for _, o := range slices.Backward(r.ops) {
		if o.session != session || !stands[o] {
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
