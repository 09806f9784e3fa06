package rewind_test

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/rewind"
	"reasonix/store"
)

// make plans and applies on both sides and compares what they say. It reports whether the move
// was made.
func (m *model) make(r rewind.Request, mv refMove) bool {
	ctx := m.t.Context()
	before, infos := m.onDisk()
	p, err := m.engine.Plan(ctx, r)
	if m.ref.refuses(mv) {
		if !errors.Is(err, rewind.ErrBusy) {
			m.fail("plan while a turn runs: %v", err)
		}
		return false
	}
	if !m.ref.selects(mv) {
		if !errors.Is(err, rewind.ErrNoPath) {
			m.fail("plan of paths that select nothing: %v", err)
		}
		return false
	}
	if errors.Is(err, rewind.ErrExpired) && m.ref.mayBeGone(mv) {
		m.note("expired")
		return false
	}
	if err != nil && !errors.Is(err, rewind.ErrConflict) {
		m.fail("plan: %v", err)
	}
	want := m.ref.plan(mv)
	m.agrees(want, p.Result())
	now, _ := m.onDisk()
	if d := cmp.Diff(before, now); d != "" {
		m.fail("planning changed files:\n%s", d)
	}
	if len(want.conflicts) > 0 {
		if _, err := m.engine.Apply(ctx, p); !errors.Is(err, rewind.ErrConflict) {
			m.fail("apply over conflicts: %v", err)
		}
		m.note("conflicts")
		return false
	}
	for _, s := range m.ref.closes(mv) {
		m.ref.endTurn(m.ref.sessions[s])
	}
	again := m.ref.plan(mv)
	done, err := m.engine.Apply(ctx, p)
	if !m.ref.selects(mv) { // all that was known of a path was that it was announced
		if !errors.Is(err, rewind.ErrNoPath) {
			m.fail("apply to paths of which no row is left: %v", err)
		}
		return false
	}
	if !want.same(again) {
		if !errors.Is(err, rewind.ErrStale) {
			m.fail("apply after the turns that it closed changed the plan: %v", err)
		}
		m.note("stale")
		return false
	}
	if err != nil {
		m.fail("apply: %v\nplanned %+v", err, again)
	}
	if m.agrees(again, done); int(done.Operation) != len(m.ref.ops)+1 {
		m.fail("operation %d is not the next", done.Operation)
	}
	m.kept(again, infos)
	m.ref.commit(mv, again)
	if r.Kind == store.OpFork {
		m.ids = append(m.ids, done.Branch)
	}
	return true
}

// agrees compares a plan with what was predicted.
func (m *model) agrees(want *refPlan, got rewind.Result) {
	conflicts, left, steps := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range got.Conflicts {
		conflicts[string(c.Path)] = true
	}
	if d := cmp.Diff(want.conflicts, conflicts); d != "" {
		m.fail("conflicts (-want +got):\n%s", d)
	}
	for _, p := range got.Left {
		left[string(p)] = true
	}
	if d := cmp.Diff(want.left, left); d != "" && len(conflicts) == 0 {
		m.fail("left (-want +got):\n%s", d)
	}
	for _, p := range got.Written {
		steps[string(p)] = true
	}
	for _, p := range got.Deleted {
		steps[string(p)] = false
	}
	moved := map[string]bool{}
	for p, s := range want.steps {
		moved[p] = s.to != ""
	}
	if d := cmp.Diff(moved, steps); d != "" && len(conflicts) == 0 {
		m.fail("written, or deleted (-want +got):\n%s", d)
	}
}

// kept checks after a move that nothing was written without need (I5), and that what is gone
// from the disk is in the store (I7).
func (m *model) kept(p *refPlan, was map[string]os.FileInfo) {
	_, is := m.onDisk()
	for path, info := range is {
		if _, moved := p.steps[path]; !moved && (was[path] == nil || !os.SameFile(was[path], info) || !was[path].ModTime().Equal(info.ModTime())) {
			m.fail("I5: %q was written and need not be", path)
		}
	}
	m.must(m.capture.Store.View(m.t.Context(), func(tx *store.Tx) error {
		for path, s := range p.steps {
			if s.from == "" || isDir(s.from) {
				continue
			}
			stored, err := tx.HasBlob(blob.Sum([]byte(contentOf(s.from))))
			if err != nil {
				return err
			}
			if !stored {
				m.fail("I7: %.20q, which was %q, is not stored", s.from, path)
			}
		}
		return nil
	}))
}

// contentOf is the content of a file or the target of a link.
func contentOf(state string) string {
	if isLink(state) {
		return state[2:]
	}
	return state[4:]
}

// selects reports whether every path of a move is one that it is about, or that is known.
func (r *reference) selects(mv refMove) bool {
	_, asked := r.asks(mv)
	for _, o := range mv.only {
		about := r.sessions[mv.session].head.known(o) != unknown
		for p := range asked {
			about = about || p == o || inside(p, o)
		}
		if !about {
			return false
		}
	}
	return true
}

func (m *model) rewind(scope store.Scope) {
	s := m.at()
	turns := m.ref.sessions[s].head.turns()
	n := m.rnd.IntN(len(turns) + 1)
	r := rewind.Request{Kind: store.OpRewind, Session: m.ids[s], Turn: n, Scope: scope}
	mv := refMove{kind: store.OpRewind, session: s, files: scope != store.Conversation, stays: scope == store.Code}
	if n < len(turns) {
		mv.target = turns[n].parent
	} else {
		mv.stays = true
	}
	m.options(&r, &mv)
	m.note("rewind s%d to %d of %d %v force=%v skip=%v %q", s, n, len(turns), scope, mv.force, mv.skip, mv.only)
	head, before := m.ref.sessions[s].head, maps.Clone(m.ref.disk)
	if !m.make(r, mv) {
		return
	}
	if n < len(turns) && mv.files {
		m.exact(turns[n], head)
	}
	if m.rnd.IntN(3) == 0 { // I9: taken back at once it is as before
		m.check(false)
		m.note("undo at once")
		if !m.undo(s, m.busyAnywhere(), 0) {
			m.fail("undo was refused though nothing happened")
		}
		if d := cmp.Diff(before, m.ref.disk); d != "" {
			m.fail("I9:\n%s", d)
		}
	}
}

// busyAnywhere reports whether only force gets a move through.
func (m *model) busyAnywhere() bool {
	return m.ref.refuses(refMove{files: true})
}

func (m *model) options(r *rewind.Request, mv *refMove) {
	switch m.rnd.IntN(4) {
	case 0:
		r.Force, mv.force = true, true
	case 1:
		r.Skip, mv.skip = true, true
	}
	if m.rnd.IntN(6) == 0 && mv.files {
		for range 1 + m.rnd.IntN(3) {
			p := m.path()
			r.Only, mv.only = append(r.Only, store.Path(p)), append(mv.only, p)
		}
	}
}

func (m *model) fork() {
	s := m.at()
	turns := m.ref.sessions[s].head.turns()
	n := m.rnd.IntN(len(turns) + 1)
	code := m.rnd.IntN(3) == 0
	r := rewind.Request{Kind: store.OpFork, Session: m.ids[s], Turn: n, Code: code}
	mv := refMove{kind: store.OpFork, session: s, files: code}
	if n < len(turns) {
		mv.target = turns[n].parent
	} else {
		mv.stays = true
	}
	if m.rnd.IntN(4) == 0 {
		r.Force, mv.force = true, true
	}
	m.note("fork s%d at %d of %d code=%v force=%v", s, n, len(turns), code, mv.force)
	parent := m.ref.sessions[s].head.messages()
	if !m.make(r, mv) {
		return
	}
	if got := m.messages(len(m.ids) - 1); !slices.Equal(got, parent[:len(got)]) { // I10
		m.fail("I10: fork has %q, parent %q", got, parent)
	}
}

// switchTo goes to a session, and at times back. A folder that somebody removed, and that the way
// there had to make again, may stay.
func (m *model) switchTo() {
	from, to := m.ref.current, m.rnd.IntN(len(m.ids))
	before := maps.Clone(m.ref.disk)
	if !m.switchOne(to, m.rnd.IntN(4) == 0) || m.rnd.IntN(3) > 0 {
		return
	}
	m.check(false)
	there := m.ref.ops[len(m.ref.ops)-1].moved
	if !m.switchOne(from, m.busyAnywhere()) {
		return
	}
	for _, p := range differing(before, m.ref.disk) {
		if s := there[p]; !s.implied || m.ref.disk[p] != s.to {
			m.fail("there and back: %q is %.20q, was %.20q", p, m.ref.disk[p], before[p])
		}
	}
}

func (m *model) switchOne(to int, force bool) bool {
	from := m.ref.current
	m.note("switch s%d to s%d force=%v", from, to, force)
	return m.make(rewind.Request{Kind: store.OpSwitch, Session: m.ids[to], Force: force},
		refMove{kind: store.OpSwitch, session: from, to: to, files: true, force: force})
}

// undo takes back an operation, 0 for the newest that stands.
func (m *model) undo(s int, force bool, id int) bool {
	op := m.ref.undoable(s)
	if id != 0 {
		op = m.ref.ops[id-1]
	}
	m.note("undo in s%d force=%v op=%d", s, force, id)
	r := rewind.Request{Kind: store.OpUndo, Session: m.ids[s], Force: force, Op: store.OpID(id)}
	return m.takeBack(r, op, s, rewind.ErrNothingToUndo)
}

func (m *model) redo(s int, force bool) bool {
	m.note("redo in s%d force=%v", s, force)
	r := rewind.Request{Kind: store.OpRedo, Session: m.ids[s], Force: force}
	return m.takeBack(r, m.ref.redoable(s), s, rewind.ErrNothingToRedo)
}

func (m *model) takeBack(r rewind.Request, op *refOp, s int, none error) bool {
	if op == nil {
		if _, err := m.engine.Plan(m.t.Context(), r); !errors.Is(err, none) {
			m.fail("nothing to take back: %v", err)
		}
		return false
	}
	mv := refMove{kind: r.Kind, session: s, target: op.from, files: true, force: r.Force, of: op}
	if !m.make(r, mv) {
		return false
	}
	m.returned(op)
	return true
}

func (m *model) undoTo(s int) {
	var ids []int
	stands := m.ref.standing()
	for _, o := range m.ref.ops {
		if o.session == s && o.kind.Undoable() && stands[o] {
			ids = append(ids, o.id)
		}
	}
	if len(ids) > 0 {
		m.undo(s, m.rnd.IntN(2) == 0, ids[m.rnd.IntN(len(ids))])
	}
}
