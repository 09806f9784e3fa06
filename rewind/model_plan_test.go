package rewind_test

import (
	"maps"
	"slices"

	"reasonix/store"
)

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
	top := a
	for ; !onB[top]; top = top.parent {
		for _, r := range slices.Backward(top.rows) {
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

// refMove is a move from the head of session, which of a switch is the current one.
type refMove struct {
	kind        store.OpKind
	session     int
	to          int      // of a switch
	target      *refNode // nil for where the last turn ended
	stays       bool
	files       bool
	force, skip bool
	only        []string
	of          *refOp
}

// moving is the session whose head moves.
func (m refMove) moving() int {
	if m.kind == store.OpSwitch {
		return m.to
	}
	return m.session
}

// refPlan is what a move would do.
type refPlan struct {
	target    *refNode
	asked     map[string]ask
	pins      map[string]refPin
	looked    map[string]refRow // what is not as the line knows it
	steps     map[string]refStep
	left      map[string]bool
	conflicts map[string]bool
}

// refPin is what an undo wants of a path and what its operation had made of it.
type refPin struct {
	want, made string
	left       bool
}

type refStep struct {
	from, to string
	implied  bool
}

// same reports whether what was planned holds after turns were closed.
func (p *refPlan) same(q *refPlan) bool {
	return p.target == q.target && len(q.conflicts) == 0 && maps.Equal(p.steps, q.steps) && maps.Equal(p.left, q.left)
}

// asks is what a move asks of the paths that the history knows.
func (r *reference) asks(m refMove) (*refNode, map[string]ask) {
	head := r.sessions[m.session].head
	switch {
	case m.kind == store.OpSwitch:
		to := r.sessions[m.to].head
		return to, between(head, to)
	case m.target != nil:
		return m.target, between(head, m.target)
	case m.files:
		return nil, tip(head)
	}
	return nil, nil // the conversation is there already
}

func (r *reference) plan(m refMove) *refPlan {
	s := r.sessions[m.session]
	p := &refPlan{
		pins: map[string]refPin{}, looked: map[string]refRow{},
		steps: map[string]refStep{}, left: map[string]bool{}, conflicts: map[string]bool{},
	}
	p.target, p.asked = r.asks(m)
	overlap := overlapping(s.head, p.target)
	hold := map[string]bool{}
	if m.of != nil {
		for path, s := range m.of.moved {
			p.pins[path] = refPin{want: s.from, made: s.to}
		}
		for path, state := range m.of.left {
			if hold[path] = state == uncaptured; !hold[path] {
				p.pins[path] = refPin{want: state, made: state, left: true}
			}
		}
	}
	for _, path := range p.paths() {
		q := p.asked[path]
		pin, pinned := p.pins[path]
		want, disk := q.want, r.disk[path]
		if pinned {
			want = pin.want
		}
		was := s.head.known(path)
		if _, ok := p.asked[path]; ok && was == unknown {
			was = q.expect
		}
		newest := s.head.newest(path)
		if was != unknown && was != disk {
			row := refRow{path: path, before: was, after: disk, agent: announced(s.calls, path)}
			p.looked[path], newest = row, &row
			q.agent = q.agent || row.agent
		}
		foreign := newest != nil && !newest.agent && !(pinned && disk == pin.made)
		switch {
		case disk == want:
		case !m.files, hold[path], !m.selects(path), want == uncaptured:
			p.left[path] = true
		case !q.agent && (!pinned || pin.left):
			p.left[path] = true
		case foreign && p.clash(m, path, false):
		case overlap[path] && !pinned && p.clash(m, path, false):
		default:
			p.steps[path] = refStep{from: disk, to: want}
		}
	}
	r.shape(m, p)
	for path, step := range p.steps {
		was := s.head.known(path)
		if _, ok := p.looked[path]; !ok && step.implied && was != unknown && was != step.from {
			p.looked[path] = refRow{path: path, before: was, after: step.from}
		}
	}
	return p
}

// paths are those that the history, or the operation that is taken back, is about.
func (p *refPlan) paths() []string {
	all := slices.Collect(maps.Keys(p.asked))
	for path := range p.pins {
		all = append(all, path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func announced(calls []*refCall, p string) bool {
	return slices.ContainsFunc(calls, func(c *refCall) bool { return slices.Contains(c.paths, p) })
}

func (m refMove) selects(path string) bool {
	return len(m.only) == 0 || slices.ContainsFunc(m.only, func(o string) bool { return path == o || inside(path, o) })
}

// clash reports whether a conflict takes the path out of the plan.
func (p *refPlan) clash(m refMove, path string, final bool) bool {
	switch {
	case m.skip:
		p.left[path] = true
	case m.force && !final:
		return false
	default:
		p.conflicts[path] = true
	}
	delete(p.steps, path)
	return true
}

// shape brings the steps into agreement with the folders: those that are needed are made, what
// lies in a folder that becomes a file is in the way, and folders that hold something stay.
func (r *reference) shape(m refMove, p *refPlan) {
	for was := map[string]refStep(nil); was == nil || !maps.Equal(was, p.steps); {
		was = maps.Clone(p.steps)
		for _, path := range slices.Sorted(maps.Keys(p.steps)) {
			if s, ok := p.steps[path]; ok && s.to != "" {
				r.needFolders(m, p, path)
			}
			if s, ok := p.steps[path]; ok && isDir(s.from) && s.to != "" && !isDir(s.to) {
				r.clearFolder(m, p, path)
			}
		}
	}
	paths := slices.Sorted(maps.Keys(p.steps))
	for _, path := range slices.Backward(paths) {
		s := p.steps[path]
		stays := func(q string) bool { s, ok := p.steps[q]; return !ok || s.to != "" }
		if isDir(s.from) && s.to == "" && (slices.ContainsFunc(r.disk.below(path), stays) ||
			slices.ContainsFunc(paths, func(q string) bool { return inside(q, path) && p.steps[q].to != "" })) {
			delete(p.steps, path)
			p.left[path] = true
		}
	}
}

func (r *reference) needFolders(m refMove, p *refPlan, path string) {
	for _, up := range above(path) {
		s, planned := p.steps[up]
		is := r.disk[up]
		switch {
		case planned && isDir(s.to):
			continue
		case planned, isLink(is):
			p.clash(m, path, true)
			return
		case isDir(is):
			return
		case is != "" && p.clash(m, path, false):
			return
		}
		p.steps[up] = refStep{from: is, to: "d755", implied: true}
		delete(p.left, up)
	}
}

func (r *reference) clearFolder(m refMove, p *refPlan, path string) {
	extra := slices.DeleteFunc(r.disk.below(path), func(q string) bool {
		s, ok := p.steps[q]
		return ok && s.to == ""
	})
	if len(extra) == 0 || p.clash(m, path, false) {
		return
	}
	for _, q := range extra {
		p.steps[q] = refStep{from: r.disk[q], implied: true}
		delete(p.left, q)
	}
}
