package rewind_test

import (
	"fmt"
	"maps"
	"slices"

	"reasonix/agent"
)

// command is a shell command of the agent, which announces no paths.
type command struct {
	session int
	exec    agent.Exec
	changes []change
}

// command is one at random: up to five changes.
func (m *model) command(s int) command {
	m.value++
	c := command{session: s, exec: agent.Exec{Call: fmt.Sprint("x", m.value), Tool: "bash"}}
	for range m.rnd.IntN(6) {
		c.changes = append(c.changes, m.change())
	}
	return c
}

// exec runs a command; at times something else happens meanwhile, or its end is never told.
func (m *model) exec(s int) {
	c := m.command(s)
	m.note("s%d runs %s: %v", s, c.exec.Call, c.changes)
	_, err := m.recorder.BeforeExec(m.t.Context(), m.ids[s], c.exec)
	m.must(err)
	opens := m.ref.sessions[s].turn == nil
	m.ref.beforeExec(s, c.exec.Call)
	if opens {
		m.starts[m.ref.sessions[s].turn] = maps.Clone(m.ref.disk)
	}
	switch m.rnd.IntN(8) {
	case 0:
		m.byHand()
	case 1: // an edit beside it, of any session
		e := m.call(m.at())
		m.before(e)
		m.perform(e)
		if m.rnd.IntN(2) == 0 {
			m.after(e)
		} else {
			m.open = append(m.open, e)
		}
	case 2: // another session's command
		if other := m.rnd.IntN(len(m.ids)); other != s {
			m.exec(other)
		}
	case 3:
		m.meanwhile(s)
	}
	m.runs = append(m.runs, c)
	if m.rnd.IntN(8) > 0 {
		m.finish(len(m.runs) - 1)
	}
}

// finish lets a command do what it does, and tells its end.
func (m *model) finish(i int) {
	c := m.runs[i]
	m.runs = slices.Delete(m.runs, i, i+1)
	m.note("%s of s%d does it and ends", c.exec.Call, c.session)
	was := maps.Clone(m.ref.disk)
	for _, ch := range c.changes {
		m.do(ch)
	}
	for _, p := range differing(was, m.ref.disk) {
		owner, owned := m.owner[p]
		if !m.ref.alone(c.session, c.exec.Call, p) || owned && owner != c.session {
			m.dirty[p] = true
		}
		m.owner[p] = c.session
	}
	_, err := m.recorder.AfterExec(m.t.Context(), m.ids[c.session], c.exec)
	m.must(err)
	m.ref.afterExec(c.session, c.exec.Call)
}

// lateExec ends a command that was left running, whose turn may be over, or one that nobody
// announced.
func (m *model) lateExec() bool {
	switch {
	case m.rnd.IntN(3) == 0:
		return false
	case len(m.runs) > 0:
		m.finish(m.rnd.IntN(len(m.runs)))
		return true
	case m.rnd.IntN(3) > 0:
		return false
	}
	m.runs = append(m.runs, m.command(m.at()))
	m.finish(len(m.runs) - 1)
	return true
}

// alone reports whether a change of p now can only be the doing of the session's command.
func (r *reference) alone(session int, key, p string) bool {
	known := false
	for i, s := range r.sessions {
		for _, c := range s.calls {
			switch {
			case i == session && c.key == key:
				known = true
			case c.exec || announcing([]*refCall{c}, p) != nil:
				return false
			}
		}
	}
	return known
}

func (r *reference) beforeExec(session int, key string) {
	s := r.sessions[session]
	if s.turn == nil {
		r.beginTurn(s)
	}
	r.scan(session, false)
	s.calls = append(s.calls, &refCall{key: key, node: r.writable(s), exec: true, started: r.now})
	r.event(session)
}

func (r *reference) afterExec(session int, key string) {
	s := r.sessions[session]
	this := func(c *refCall) bool { return c.exec && c.key == key }
	r.scan(session, !slices.ContainsFunc(s.calls, this))
	s.calls = slices.DeleteFunc(s.calls, this)
	r.event(session)
}

// look scans, once that was begun.
func (r *reference) look(s *refSession) {
	if r.index != nil {
		r.scan(slices.Index(r.sessions, s), false)
	}
}

// running is a session that may have changed something: call is nil for a command that nobody
// announced.
type running struct {
	session *refSession
	call    *refCall
}

// scan finds what changed since the last one, and puts it on the lines of those whose commands run.
func (r *reference) scan(session int, ended bool) {
	was := r.index
	r.index = maps.Clone(r.disk)
	var changed []string
	if was != nil {
		changed = differing(was, r.disk)
	} else { // what the lines know is all there is to compare with
		for _, s := range r.sessions {
			for _, n := range s.head.line() {
				for _, row := range n.rows {
					changed = append(changed, row.path)
				}
			}
		}
	}
	slices.Sort(changed)
	changed = slices.DeleteFunc(slices.Compact(changed), func(p string) bool {
		return slices.ContainsFunc(r.sessions, func(s *refSession) bool { return announcing(s.calls, p) != nil })
	})
	var who []running
	since := r.now
	for _, s := range r.sessions {
		if i := slices.IndexFunc(s.calls, func(c *refCall) bool { return c.exec }); i >= 0 {
			who = append(who, running{s, s.calls[i]})
			since = min(since, s.calls[i].started)
		}
	}
	self := r.sessions[session]
	if ended && !slices.ContainsFunc(who, func(w running) bool { return w.session == self }) {
		who = append(who, running{self, nil})
	}
	if len(who) == 0 {
		r.foreign(self, changed)
	}
	recorded := r.recorded(since, changed)
	for _, w := range who {
		for _, p := range changed {
			if !slices.ContainsFunc(recorded[p], func(s *refSession) bool { return s != w.session }) {
				r.ran(w.session, p, was, len(who) > 1)
			}
		}
	}
}

// foreign puts what nobody's command did on the line of the session that looks.
func (r *reference) foreign(s *refSession, changed []string) {
	for _, p := range changed {
		if known := s.head.known(p); known != unknown && known != r.disk[p] {
			n := r.writable(s)
			n.rows = append(n.rows, refRow{path: p, before: known, after: r.disk[p]})
		}
	}
}

// recorded are the sessions that have lately recorded the present state of a path as their doing.
func (r *reference) recorded(since int, changed []string) map[string][]*refSession {
	all := map[string][]*refSession{}
	for _, s := range r.sessions {
		if s.updated < since {
			continue
		}
		for _, p := range changed {
			if row := s.head.newest(p); row != nil && row.after == r.disk[p] && row.agent && !row.shell {
				all[p] = append(all[p], s)
			}
		}
	}
	return all
}

// ran puts a path on the line of a session whose command may have changed it.
func (r *reference) ran(s *refSession, p string, was folder, overlap bool) {
	known, before := s.head.known(p), was[p]
	if known == r.disk[p] || known == unknown && was == nil {
		return
	}
	n := r.writable(s)
	i := n.last(p)
	again := i >= 0 && n.rows[i].shell
	if known != unknown && was == nil {
		before = known
	} else if known != unknown && known != before {
		n.rows = append(n.rows, refRow{path: p, before: known, after: before})
		again = false
	}
	if overlap {
		if n.overlap == nil {
			n.overlap = map[string]bool{}
		}
		n.overlap[p] = true
	}
	if again {
		n.rows[i].after = r.disk[p]
		return
	}
	n.rows = append(n.rows, refRow{path: p, before: before, after: r.disk[p], agent: true, shell: true})
}

// overlapping are the paths that commands of several sessions may have written below a target.
func overlapping(head, target *refNode) map[string]bool {
	all := map[string]bool{}
	if target == nil {
		return all
	}
	on := map[*refNode]bool{}
	for _, n := range target.line() {
		on[n] = true
	}
	for _, n := range head.line() {
		if !on[n] {
			maps.Copy(all, n.overlap)
		}
	}
	return all
}
