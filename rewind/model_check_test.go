package rewind_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/store"
)

// exact checks a rewind of files against full copies, which owe nothing to the reference: what
// the agent changed since a turn began, and nobody else ever did, is as it was then (I4).
func (m *model) exact(turn, head *refNode) {
	op := m.ref.ops[len(m.ref.ops)-1]
	for p, q := range between(head, turn.parent) {
		was := m.starts[turn][p]
		if _, left := op.left[p]; left || m.dirty[p] || !q.agent || turn.parent.known(p) != was {
			continue
		}
		if m.ref.disk[p] != was {
			m.fail("I4: %q is %.20q, was %.20q when turn %d began", p, m.ref.disk[p], was, turn.turn)
		}
	}
}

// returned checks that taking an operation back gave what was there before it (I9): all files,
// when nobody wrote one since, else those that it moved. Not counted is what somebody changed
// earlier and nobody had looked at, with the folders that the line's idea of it needs, nor what a
// command that ended after the operation has to answer for: when it did that is not known.
func (m *model) returned(op *refOp) {
	newest := m.ref.ops[len(m.ref.ops)-1]
	late := func(p string) bool {
		_, moved := op.moved[p]
		_, left := op.left[p]
		for n := newest.from; n != nil && n != op.from && !moved && !left; n = n.parent {
			if slices.ContainsFunc(n.rows, func(r refRow) bool { return r.path == p && r.shell }) {
				return true
			}
		}
		return false
	}
	unseen := func(p string) bool {
		was := op.from.known(p)
		return was != unknown && was != op.was[p] || newest.moved[p].implied || late(p)
	}
	for p, s := range op.moved {
		if _, left := newest.left[p]; m.ref.disk[p] != s.from && !left && !unseen(p) {
			m.fail("I9: %q is %.20q, was %.20q before operation %d", p, m.ref.disk[p], s.from, op.id)
		}
	}
	others := slices.ContainsFunc(m.ref.ops[op.id-1:], func(o *refOp) bool {
		return o.session != op.session || o.kind == store.OpFork || o.kind == store.OpSwitch
	})
	for _, p := range differing(op.was, m.ref.disk) {
		if m.wrote < op.id && !others && !unseen(p) {
			m.fail("I9: %q is %.20q, was %.20q before operation %d, and nobody wrote since", p, m.ref.disk[p], op.was[p], op.id)
		}
	}
	if got := m.ref.sessions[op.session].head.messages(); !slices.Equal(op.said, got) {
		m.fail("I9: the conversation is %q, was %q before operation %d", got, op.said, op.id)
	}
}

// check compares what is cheap to compare: the disk, the log, the sessions and the current one's
// conversation; in full what its line knows, and whether the store is sound.
func (m *model) check(full bool) {
	now, _ := m.onDisk()
	if d := cmp.Diff(m.ref.disk, now); d != "" {
		m.fail("disk (-want +got):\n%s", d)
	}
	m.must(m.capture.Store.View(m.t.Context(), func(tx *store.Tx) error {
		m.checkLog(tx)
		m.checkSessions(tx)
		m.checkMessages(tx, m.ref.current)
		if full {
			m.checkKnown(tx, m.ref.current)
		}
		return nil
	}))
	if full {
		m.verify(false)
	}
}

// checkAll compares everything, down to each row of each node of each line.
func (m *model) checkAll() {
	m.check(false)
	m.must(m.capture.Store.View(m.t.Context(), func(tx *store.Tx) error {
		seen := map[store.NodeID]*refNode{}
		for s := range m.ids {
			m.checkKnown(tx, s)
			m.checkMessages(tx, s)
			m.checkTurns(tx, s)
			ses, err := tx.Session(m.ids[s])
			m.must(err)
			m.checkLine(tx, ses.Head, m.ref.sessions[s].head, seen)
		}
		ops, err := tx.Operations("")
		m.must(err)
		for i, o := range slices.Backward(ops) {
			m.checkLine(tx, o.HeadFrom, m.ref.ops[len(ops)-1-i].from, seen)
		}
		return nil
	}))
	m.verify(true)
}

func (m *model) checkLog(tx *store.Tx) {
	type entry struct {
		Kind    store.OpKind
		Session store.SessionID
		Of      store.OpID
		Stands  bool
		Files   int
	}
	ops, err := tx.Operations("")
	m.must(err)
	var got, want []entry
	for _, o := range slices.Backward(ops) {
		if o.State != store.Applied {
			m.fail("operation %d is %v", o.ID, o.State)
		}
		got = append(got, entry{o.Kind, o.Session, o.Of, o.UndoneBy == 0, o.Written + o.Deleted})
	}
	stands := m.ref.standing()
	for _, o := range m.ref.ops {
		takenBack := !stands[o] && o.kind != store.OpFork && o.kind != store.OpSwitch
		want = append(want, entry{o.kind, m.ids[o.session], store.OpID(o.of), !takenBack, len(o.moved)})
	}
	if !slices.Equal(want, got) {
		m.fail("log (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func (m *model) checkSessions(tx *store.Tx) {
	all, err := tx.Sessions()
	m.must(err)
	for _, ses := range all {
		i := slices.Index(m.ids, ses.ID)
		s := m.ref.sessions[i]
		turns, messages := len(s.head.turns()), len(s.head.messages())
		if ses.Turns != turns || ses.Messages != int64(messages) || ses.Current != (i == m.ref.current) || (ses.OpenTurn != 0) != (s.turn != nil) {
			m.fail("s%d: %+v, want %d turns, %d messages, open=%v; current is s%d", i, ses, turns, messages, s.turn != nil, m.ref.current)
		}
	}
	if len(all) != len(m.ref.sessions) {
		m.fail("%d sessions, want %d", len(all), len(m.ref.sessions))
	}
}

// checkKnown compares the newest row of every path that the history of a session mentions.
func (m *model) checkKnown(tx *store.Tx, s int) {
	head := m.ref.sessions[s].head
	newest := map[store.Path]refRow{}
	for _, n := range head.line() {
		for _, row := range slices.Backward(n.rows) {
			if _, ok := newest[store.Path(row.path)]; !ok {
				newest[store.Path(row.path)] = row
			}
		}
	}
	ses, err := tx.Session(m.ids[s])
	m.must(err)
	known, err := tx.Known(ses.Head, slices.Collect(maps.Keys(newest)))
	m.must(err)
	for p, want := range newest {
		if got := known[p]; got == nil || !want.is(got.Change) {
			m.fail("s%d says of %q: %+v, want %+v", s, p, got, want)
		}
	}
}

func (m *model) checkMessages(tx *store.Tx, s int) {
	head := m.ref.sessions[s].head
	want := head.messages()
	got, err := m.read(tx, s)
	m.must(err)
	if !slices.Equal(want, got) {
		m.fail("messages of s%d: %q, want %q", s, got, want)
	}
	ses, err := tx.Session(m.ids[s])
	m.must(err)
	var sent []string
	for msg, err := range tx.Effective(ses.Head) {
		m.must(err)
		sent = append(sent, string(msg.JSON))
	}
	if want := head.effective(); !slices.Equal(want, sent) {
		m.fail("s%d sends %q, want %q", s, sent, want)
	}
}

func (m *model) checkTurns(tx *store.Tx, s int) {
	ses, err := tx.Session(m.ids[s])
	m.must(err)
	for n, turn := range m.ref.sessions[s].head.turns() {
		got, err := tx.Turn(ses.Head, n)
		m.must(err)
		if want := int64(len(turn.parent.messages())); turn.parent.kind != store.RootNode && (got.Number() != n || got.MsgIndex != want) {
			m.fail("turn %d of s%d: number %d, boundary %d, want %d", n, s, got.Number(), got.MsgIndex, want)
		}
	}
}

// checkLine compares each node from id up to the top, or to where another line passed.
func (m *model) checkLine(tx *store.Tx, id store.NodeID, n *refNode, seen map[store.NodeID]*refNode) {
	for ; n != nil; n = n.parent {
		if was, ok := seen[id]; ok && was == n {
			return
		}
		got, err := tx.Node(id)
		m.must(err)
		rows, err := tx.NodeChanges(got)
		m.must(err)
		same := got.Kind == n.kind && got.MsgCount == int64(len(n.msgs)) &&
			slices.EqualFunc(n.rows, rows, func(r refRow, c store.Change) bool { return string(c.Path) == r.path && r.is(c) })
		if !same {
			m.fail("node %d: %+v with rows %+v, want %v with %+v", id, got, rows, n.kind, n.rows)
		}
		seen[id] = n
		id = got.Parent
	}
	if id != 0 {
		m.fail("node %d is above the top", id)
	}
}

// is reports whether a row of the store says what the reference's row says.
func (r refRow) is(c store.Change) bool {
	return stateOf(r.before) == c.Before && stateOf(r.after) == c.After && r.agent == (c.Origin == store.Agent)
}

// stateOf is a folder's state as the store has it.
func stateOf(state string) store.State {
	var s store.State
	switch {
	case state == "":
		return store.AbsentState
	case state == uncaptured:
		return store.UncapturedState
	case isLink(state):
		s.Kind = store.Symlink
	case isDir(state):
		s.Kind = store.Dir
		fmt.Sscanf(state[1:], "%o", &s.Mode)
		return s
	default:
		s.Kind = store.File
		fmt.Sscanf(state[:3], "%o", &s.Mode)
	}
	content := contentOf(state)
	s.Blob, s.Size = blob.Sum([]byte(content)), int64(len(content))
	return s
}
