package rewind_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"reasonix/agent"
	"reasonix/store"
)

// call is a tool call of the agent.
type call struct {
	session int
	edit    agent.Edit
	changes []change
}

// at is a session at random, mostly the current one.
func (m *model) at() int {
	if m.rnd.IntN(6) == 0 {
		return m.rnd.IntN(len(m.ids))
	}
	return m.ref.current
}

// call makes a call at random: one to three changes, with all that they touch announced.
func (m *model) call(s int) call {
	m.value++
	c := call{session: s, edit: agent.Edit{Call: fmt.Sprint("c", m.value), Tool: "edit"}}
	for range 1 + max(0, m.rnd.IntN(6)-3) {
		ch := m.change()
		if m.rnd.IntN(12) == 0 {
			ch.kind = nothing
		}
		name := ch.p
		if real, ok := m.ref.disk.resolve(name); ok && m.rnd.IntN(2) == 0 {
			ch.p = real // the tool goes through the links on the way, or else it replaces them
		} else {
			c.announce(m, above(name)...)
		}
		c.edit.Paths = append(c.edit.Paths, name)
		if ch.kind == rename {
			c.announce(m, above(ch.to)...)
			c.edit.Paths = append(c.edit.Paths, ch.to)
		}
		c.changes = append(c.changes, ch)
	}
	if m.rnd.IntN(30) == 0 {
		c.edit.Paths = append(c.edit.Paths, "../outside")
	}
	return c
}

// announce adds those of paths that are there and no folders.
func (c *call) announce(m *model, paths ...string) {
	for _, p := range paths {
		if state := m.ref.disk[p]; state != "" && !isDir(state) {
			c.edit.Paths = append(c.edit.Paths, p)
		}
	}
}

func (m *model) before(c call) {
	m.note("s%d announces %s: %v", c.session, c.edit.Call, c.changes)
	_, err := m.recorder.BeforeEdit(m.t.Context(), m.ids[c.session], c.edit)
	m.must(err)
	opens := m.ref.sessions[c.session].turn == nil
	m.ref.before(c.session, c.edit.Call, c.edit.Paths)
	if opens {
		m.starts[m.ref.sessions[c.session].turn] = maps.Clone(m.ref.disk)
	}
}

func (m *model) perform(c call) {
	m.note("%s does it", c.edit.Call)
	i := slices.IndexFunc(m.ref.sessions[c.session].calls, func(r *refCall) bool { return r.key == c.edit.Call })
	was := maps.Clone(m.ref.disk)
	for _, ch := range c.changes {
		m.do(ch)
	}
	for _, p := range differing(was, m.ref.disk) {
		owner, owned := m.owner[p]
		if i < 0 || !slices.Contains(m.ref.sessions[c.session].calls[i].paths, p) || owned && owner != c.session {
			m.dirty[p] = true
		}
		m.owner[p] = c.session
	}
}

func (m *model) after(c call) {
	m.note("s%d ends %s", c.session, c.edit.Call)
	_, err := m.recorder.AfterEdit(m.t.Context(), m.ids[c.session], c.edit)
	m.must(err)
	m.ref.after(c.session, c.edit.Call, c.edit.Paths)
}

// act plays some calls of a session, one after another or several at once; a few are left open.
func (m *model) act(s int) {
	var open []call
	for range m.rnd.IntN(7) {
		if m.rnd.IntN(5) == 0 {
			m.exec(s)
			continue
		}
		if m.rnd.IntN(8) == 0 {
			m.byHand()
		}
		if len(open) == 0 || m.rnd.IntN(4) == 0 {
			c := m.call(s)
			m.before(c)
			open = append(open, c)
			if m.rnd.IntN(3) == 0 {
				m.meanwhile(s)
				continue
			}
		}
		i := m.rnd.IntN(len(open))
		m.perform(open[i])
		if m.rnd.IntN(8) == 0 {
			m.byHand()
		}
		if m.rnd.IntN(8) > 0 {
			m.after(open[i])
			open = slices.Delete(open, i, i+1)
		}
		if m.rnd.IntN(3) == 0 {
			m.say(s)
		}
	}
	for _, c := range open {
		if m.rnd.IntN(4) > 0 {
			m.perform(c)
			m.after(c)
		} else {
			m.open = append(m.open, c)
		}
	}
}

// meanwhile is what at times happens while calls are open: something else is put below the node
// that the turn records in.
func (m *model) meanwhile(s int) {
	switch m.rnd.IntN(10) {
	case 0:
		m.compact(s)
	case 1:
		if len(m.ids) < 8 {
			m.newSession()
		}
	}
}

func (m *model) say(s int) {
	raw, text := m.message()
	m.note("message in s%d", s)
	m.must(m.recorder.Append(m.t.Context(), m.ids[s], []json.RawMessage{raw}))
	n := m.ref.writable(m.ref.sessions[s])
	n.msgs = append(n.msgs, text)
	m.ref.event(s)
}

func (m *model) beginTurn(s int) {
	m.value++
	key := fmt.Sprint("k", m.value)
	raw, text := m.message()
	m.note("turn in s%d", s)
	twice := 1 + m.rnd.IntN(9)/8
	for range twice { // the same key again is the same turn
		_, err := m.recorder.BeginTurn(m.t.Context(), m.ids[s], key, "prompt", []json.RawMessage{raw})
		m.must(err)
	}
	if m.ref.sessions[s].turn == nil {
		m.ref.look(m.ref.sessions[s])
	}
	m.ref.beginTurn(m.ref.sessions[s])
	head := m.ref.sessions[s].head
	m.starts[head] = maps.Clone(m.ref.disk)
	head.msgs = append(head.msgs, text)
	m.ref.event(s)
}

func (m *model) endTurn(s int) {
	m.note("turn of s%d ends", s)
	m.must(m.recorder.EndTurn(m.t.Context(), m.ids[s], store.TurnDone))
	m.ref.endTurn(m.ref.sessions[s])
	m.ref.event(s)
}

func (m *model) turn() {
	s := m.at()
	m.beginTurn(s)
	m.act(s)
	if m.rnd.IntN(8) > 0 {
		m.endTurn(s)
	}
}

// late is an event after the fact: the end of a call from before, whose turn may be over, or
// of one that nobody announced.
func (m *model) late() {
	if m.lateExec() {
		return
	}
	if len(m.open) > 0 && m.rnd.IntN(3) > 0 {
		i := m.rnd.IntN(len(m.open))
		m.perform(m.open[i])
		m.after(m.open[i])
		m.open = slices.Delete(m.open, i, i+1)
		return
	}
	c := m.call(m.at())
	if m.rnd.IntN(2) == 0 {
		m.byHand()
	}
	m.perform(c)
	m.after(c)
}

func (m *model) newSession() {
	name := fmt.Sprintf("s%d", len(m.ids))
	m.note("new session %s", name)
	s, err := m.recorder.Session(m.t.Context(), "model", name)
	m.must(err)
	m.ids = append(m.ids, s.ID)
	m.ref.begin()
}

// compact lets one message stand for the first ones, no fewer than those that are compacted.
func (m *model) compact(s int) {
	ses := m.ref.sessions[s]
	all, low := len(ses.head.messages()), ses.head.covered()
	if all == 0 {
		return
	}
	to := max(1, low) + m.rnd.IntN(all-max(1, low)+1)
	m.note("compact %d messages of s%d", to, s)
	raw, text := m.message()
	m.must(m.recorder.Compact(m.t.Context(), m.ids[s], 0, int64(to), []json.RawMessage{raw}))
	from := ses.head
	ses.head = m.ref.child(from, store.AppendNode)
	ses.head.summary, ses.head.covers = text, to
	if ses.turn != nil {
		ses.open = ses.head
	}
	m.ref.ops = append(m.ref.ops, &refOp{
		id: len(m.ref.ops) + 1, kind: store.OpCompact, session: s, from: from,
		was: maps.Clone(m.ref.disk), said: from.messages(),
	})
	m.ref.event(s)
}
