package rewind_test

import (
	"maps"
	"slices"

	"reasonix/store"
)

// event notes that something of session s was recorded.
func (r *reference) event(s int) {
	r.current, r.sessions[s].last, r.sessions[s].updated = s, r.now, r.now
}

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
	r.sessions = append(r.sessions, &refSession{head: root, open: root, updated: r.now})
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
	if i := n.last(p); i >= 0 && n.rows[i].agent && !n.rows[i].shell {
		n.rows[i].after = r.disk[p]
		return
	}
	n.rows = append(n.rows, refRow{path: p, before: was, after: r.disk[p], agent: true})
}

// endTurn looks at the paths of the turn and of its calls, then seals.
func (r *reference) endTurn(s *refSession) {
	if s.turn == nil {
		return
	}
	r.look(s)
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
			n.rows = append(n.rows, refRow{path: p, before: was, after: r.disk[p]})
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
			n.rows = append(n.rows, refRow{path: p, before: was, after: state})
		case was != unknown:
			if i := n.last(p); i >= 0 && n.rows[i].agent && !n.rows[i].shell {
				continue
			}
		}
		n.rows = append(n.rows, refRow{path: p, before: state, after: state, agent: true})
	}
	s.calls = append(s.calls, &refCall{key: key, node: n, paths: paths})
	r.event(session)
}

// after is the end of a call, or of one that was never announced.
func (r *reference) after(session int, key string, names []string) {
	s := r.sessions[session]
	paths := r.named(names)
	var ended []*refCall
	for _, c := range s.calls {
		if c.key == key && !c.exec {
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
