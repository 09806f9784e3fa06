package rewind_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// world is a real workspace with a real store, beside the reference that predicts it.
type world struct {
	t        *testing.T
	rnd      *rand.Rand
	dir      string
	file     string
	clock    time.Time
	capture  *capture.Capturer
	recorder *agent.Recorder
	engine   *rewind.Engine
	ref      *reference
	ids      []store.SessionID
	turns    map[*refNode]map[string]string // what the line knew at the start of each turn
	value    int
	trace    []string
}

var modelPaths = []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p 7\n"}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: fastDir(t), file: filepath.Join(fastDir(t), "store.db"),
		clock: time.Unix(1_800_000_000, 0), ref: newReference(), turns: map[*refNode]map[string]string{},
	}
	w.open()
	s, err := w.recorder.Session(t.Context(), "model", "s0")
	w.must(err)
	w.ids = []store.SessionID{s.ID}
	return w
}

func (w *world) open() {
	root, err := workspace.Open(w.dir, workspace.Options{Protected: []string{filepath.Dir(w.file)}})
	w.must(err)
	s, err := store.Open(w.t.Context(), w.file, store.Options{
		Create: &store.Workspace{Root: root.Path()},
		Now:    func() time.Time { w.clock = w.clock.Add(time.Minute); return w.clock },
	})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: root}
	w.recorder = agent.NewRecorder(w.capture)
	w.engine = rewind.New(w.capture, rewind.Options{})
}

func (w *world) close() {
	w.must(w.capture.Store.Close())
	w.must(w.capture.Root.Close())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n  %s", fmt.Sprintf(format, args...), strings.Join(w.trace, "\n  "))
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// put writes a state to disk with plain system calls.
func (w *world) put(p, state string) {
	name := filepath.Join(w.dir, p)
	if err := os.RemoveAll(name); err != nil {
		w.fail("%v", err)
	}
	switch {
	case state == "":
	case strings.HasPrefix(state, "->"):
		w.must(os.Symlink(state[2:], name))
	default:
		mode, content, _ := strings.Cut(state, ":")
		perm, err := strconv.ParseUint(mode, 8, 32)
		w.must(err)
		w.must(os.WriteFile(name, []byte(content), 0o600))
		w.must(os.Chmod(name, os.FileMode(perm)))
	}
}

// onDisk reads the workspace with plain system calls.
func (w *world) onDisk() map[string]string {
	all := map[string]string{}
	entries, err := os.ReadDir(w.dir)
	w.must(err)
	for _, e := range entries {
		name := filepath.Join(w.dir, e.Name())
		info, err := os.Lstat(name)
		w.must(err)
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			w.must(err)
			all[e.Name()] = "->" + target
			continue
		}
		b, err := os.ReadFile(name)
		w.must(err)
		all[e.Name()] = fmt.Sprintf("%o:%s", info.Mode().Perm(), b)
	}
	return all
}

func (w *world) fresh() string {
	w.value++
	switch w.rnd.IntN(10) {
	case 0:
		return fmt.Sprintf("->nowhere/%d", w.value)
	case 1, 2:
		return fmt.Sprintf("755:%d", w.value)
	case 3:
		return fmt.Sprintf("444:%s%d", strings.Repeat("line\n", 200), w.value)
	}
	return fmt.Sprintf("644:%d", w.value)
}

func (w *world) path() string { return modelPaths[w.rnd.IntN(len(modelPaths))] }

func (w *world) byHand() {
	p, state := w.path(), ""
	if w.rnd.Float64() > .3 {
		state = w.fresh()
	}
	w.note("by hand %q: %.20q", p, state)
	w.put(p, state)
	w.ref.set(p, state)
	w.ref.hand[state] = true
}

func (w *world) message() (json.RawMessage, string) {
	w.value++
	m := fmt.Sprintf(`{"role":"user",  "content":"message %d"}`, w.value)
	return json.RawMessage(m), m
}

func (w *world) session() int {
	if w.rnd.Float64() < .2 {
		return w.rnd.IntN(len(w.ids))
	}
	return w.ref.current
}

func (w *world) turn() {
	s := w.session()
	id := w.ids[s]
	ctx := w.t.Context()
	raw, m := w.message()
	w.note("turn %d of s%d", w.ref.heads[s].turn+1, s)
	_, err := w.recorder.BeginTurn(ctx, id, "", "prompt", []json.RawMessage{raw})
	w.must(err)
	head := child(w.ref.heads[s], store.TurnNode)
	head.msgs = append(head.msgs, m)
	w.turns[head] = map[string]string{}
	for _, p := range modelPaths {
		w.turns[head][p] = head.parent.known(p)
	}
	w.ref.heads[s], w.ref.current = head, s
	for range w.rnd.IntN(5) {
		if w.rnd.Float64() < .15 {
			w.byHand()
		}
		p, state := w.path(), ""
		if w.rnd.Float64() > .3 {
			state = w.fresh()
		}
		w.note("edit %q: %.20q", p, state)
		e := agent.Edit{Call: fmt.Sprint(w.value), Tool: "edit", Paths: []string{p}}
		_, err := w.recorder.BeforeEdit(ctx, id, e)
		w.must(err)
		w.ref.edit(s, p, state)
		w.put(p, state)
		_, err = w.recorder.AfterEdit(ctx, id, e)
		w.must(err)
		if w.rnd.Float64() < .3 {
			raw, m := w.message()
			w.must(w.recorder.Append(ctx, id, []json.RawMessage{raw}))
			head.msgs = append(head.msgs, m)
		}
	}
	w.must(w.recorder.EndTurn(ctx, id, store.TurnDone))
	w.ref.endTurn(s)
}

func (w *world) late() {
	s := w.session()
	raw, m := w.message()
	w.note("late message in s%d", s)
	w.must(w.recorder.Append(w.t.Context(), w.ids[s], []json.RawMessage{raw}))
	head := w.ref.heads[s]
	if head.sealed || head.kind == store.TurnNode {
		head = child(head, store.AppendNode)
		head.sealed = true
	}
	head.msgs = append(head.msgs, m)
	w.ref.heads[s], w.ref.current = head, s
}

func (w *world) begin() {
	name := fmt.Sprintf("s%d", len(w.ids))
	w.note("new session %s", name)
	s, err := w.recorder.Session(w.t.Context(), "model", name)
	w.must(err)
	w.ids = append(w.ids, s.ID)
	w.ref.heads = append(w.ref.heads, child(w.ref.heads[w.ref.current], store.RootNode))
	w.ref.current = len(w.ids) - 1
}

// make plans and applies on both sides and compares what they say.
func (w *world) make(r rewind.Request, m refMove) (refResult, bool) {
	w.t.Helper()
	ctx := w.t.Context()
	before := w.onDisk()
	p, err := w.engine.Plan(ctx, r)
	if err != nil && !errors.Is(err, rewind.ErrConflict) {
		w.fail("plan: %v", err)
	}
	want := w.ref.move(m)
	got := p.Result()
	conflicts := map[string]bool{}
	for _, c := range got.Conflicts {
		conflicts[string(c.Path)] = true
	}
	if d := cmp.Diff(want.conflicts, conflicts); d != "" {
		w.fail("conflicts (-want +got):\n%s", d)
	}
	if d := cmp.Diff(before, w.onDisk()); d != "" {
		w.fail("planning changed files:\n%s", d)
	}
	if len(conflicts) > 0 {
		if _, err := w.engine.Apply(ctx, p); !errors.Is(err, rewind.ErrConflict) {
			w.fail("apply over conflicts: %v", err)
		}
		return want, false
	}
	if len(got.Written)+len(got.Deleted) != len(want.moved) {
		w.fail("plan writes %v and deletes %v, reference moves %v", got.Written, got.Deleted, want.moved)
	}
	left := map[string]bool{}
	for _, p := range got.Left {
		left[string(p)] = true
	}
	if d := cmp.Diff(want.left, left); d != "" {
		w.fail("left (-want +got):\n%s", d)
	}
	times := w.times()
	done, err := w.engine.Apply(ctx, p)
	w.must(err)
	if len(got.Written) != len(done.Written) || done.Operation == 0 {
		w.fail("applied %+v, planned %+v", done, got)
	}
	for p, t := range w.times() { // I5
		if _, moved := want.moved[p]; !moved && times[p] != t {
			w.fail("%q was written and need not be", p)
		}
	}
	if m.kind == store.OpFork {
		w.ids = append(w.ids, done.Branch)
	}
	return want, true
}

func (w *world) times() map[string]time.Time {
	all := map[string]time.Time{}
	for p := range w.onDisk() {
		info, err := os.Lstat(filepath.Join(w.dir, p))
		w.must(err)
		all[p] = info.ModTime()
	}
	return all
}

func (w *world) rewind(scope store.Scope) {
	s := w.session()
	turns := w.ref.heads[s].turns()
	n := w.rnd.IntN(len(turns) + 1)
	r := rewind.Request{Kind: store.OpRewind, Session: w.ids[s], Turn: n, Scope: scope}
	m := refMove{kind: store.OpRewind, session: s, files: scope != store.Conversation, stays: scope == store.Code}
	if n < len(turns) {
		m.target = turns[n].parent
	} else {
		m.stays = true
	}
	w.options(&r, &m)
	w.note("rewind s%d to %d %v %+v", s, n, scope, m.only)
	head, before := w.ref.heads[s], maps.Clone(w.ref.disk)
	if len(m.only) > 0 && !w.selects(m) {
		if _, err := w.engine.Plan(w.t.Context(), r); !errors.Is(err, rewind.ErrNoPath) {
			w.fail("a path that selects nothing: %v", err)
		}
		return
	}
	res, ok := w.make(r, m)
	if !ok {
		return
	}
	w.ref.heads[s] = res.to
	if n < len(turns) && scope != store.Conversation { // I4, said without the tree
		for p, q := range between(head, turns[n].parent) {
			was := w.turns[turns[n]][p]
			if q.agent && !res.left[p] && was != unknown && w.ref.disk[p] != was {
				w.fail("I4: %q is %.20q, was %.20q at the start of turn %d", p, w.ref.disk[p], was, n)
			}
		}
	}
	if w.rnd.Float64() < .3 { // I9: taken back at once it is as before
		w.check()
		w.note("undo at once")
		if !w.undo(s, false, 0) {
			w.fail("undo was refused though nothing happened")
		}
		if d := cmp.Diff(before, w.onDisk()); d != "" {
			w.fail("I9:\n%s", d)
		}
	}
}

// selects reports whether every path of a move is one that it is about, or that is known.
func (w *world) selects(m refMove) bool {
	head := w.ref.heads[m.session]
	asked := tip(head)
	if m.target != nil {
		asked = between(head, m.target)
	}
	for p := range m.only {
		if _, ok := asked[p]; !ok && head.known(p) == unknown {
			return false
		}
	}
	return true
}

func (w *world) options(r *rewind.Request, m *refMove) {
	switch w.rnd.IntN(4) {
	case 0:
		r.Force, m.force = true, true
	case 1:
		r.Skip, m.skip = true, true
	}
	if w.rnd.IntN(6) == 0 && m.files {
		m.only = map[string]bool{}
		for range 3 {
			p := w.path()
			m.only[p] = true
		}
		for p := range m.only {
			r.Only = append(r.Only, store.Path(p))
		}
	}
}

func (w *world) fork() {
	s := w.session()
	turns := w.ref.heads[s].turns()
	n := w.rnd.IntN(len(turns) + 1)
	code := w.rnd.IntN(3) == 0
	m := refMove{kind: store.OpFork, session: s, files: code}
	if n < len(turns) {
		m.target = turns[n].parent
	} else {
		m.stays = true
	}
	w.note("fork s%d at %d code=%v", s, n, code)
	parent := w.ref.heads[s].messages()
	res, ok := w.make(rewind.Request{Kind: store.OpFork, Session: w.ids[s], Turn: n, Code: code}, m)
	if !ok {
		return
	}
	w.ref.heads[s] = res.from
	w.ref.heads = append(w.ref.heads, res.to)
	w.ref.current = len(w.ref.heads) - 1
	if got := w.messages(len(w.ids) - 1); !slices.Equal(got, parent[:len(got)]) { // I10
		w.fail("I10: fork has %q, parent %q", got, parent)
	}
}

func (w *world) switchTo() {
	from, to := w.ref.current, w.rnd.IntN(len(w.ids))
	if from == to {
		return
	}
	w.note("switch s%d to s%d", from, to)
	before := w.onDisk()
	if w.switchOne(from, to) && w.rnd.Float64() < .4 {
		w.check()
		w.note("and back")
		if w.switchOne(to, from) {
			if d := cmp.Diff(before, w.onDisk()); d != "" {
				w.fail("there and back:\n%s", d)
			}
		}
	}
}

func (w *world) switchOne(from, to int) bool {
	m := refMove{kind: store.OpSwitch, session: from, target: w.ref.heads[to], files: true}
	res, ok := w.make(rewind.Request{Kind: store.OpSwitch, Session: w.ids[to]}, m)
	if ok {
		w.ref.ops[len(w.ref.ops)-1].session = to
		w.ref.heads[from], w.ref.heads[to], w.ref.current = res.from, res.to, to
	}
	return ok
}

func (w *world) undo(s int, force bool, id int) bool {
	op := w.ref.undoable(s)
	if id != 0 {
		op = w.ref.ops[id-1]
	}
	r := rewind.Request{Kind: store.OpUndo, Session: w.ids[s], Force: force, Op: store.OpID(id)}
	w.note("undo in s%d force=%v op=%d", s, force, id)
	if op == nil {
		if _, err := w.engine.Plan(w.t.Context(), r); !errors.Is(err, rewind.ErrNothingToUndo) {
			w.fail("undo of nothing: %v", err)
		}
		return false
	}
	res, ok := w.make(r, refMove{kind: store.OpUndo, session: s, target: op.from, files: true, force: force, of: op})
	if ok {
		w.ref.heads[s] = res.to
		w.pinned("undo", op)
	}
	return ok
}

func (w *world) redo(s int, force bool) {
	op := w.ref.redoable(s)
	r := rewind.Request{Kind: store.OpRedo, Session: w.ids[s], Force: force}
	w.note("redo in s%d force=%v", s, force)
	if op == nil {
		if _, err := w.engine.Plan(w.t.Context(), r); !errors.Is(err, rewind.ErrNothingToRedo) {
			w.fail("redo of nothing: %v", err)
		}
		return
	}
	res, ok := w.make(r, refMove{kind: store.OpRedo, session: s, target: op.from, files: true, force: force, of: op})
	if ok {
		w.ref.heads[s] = res.to
		w.pinned("redo", op)
	}
}

func (w *world) pinned(what string, op *refOp) {
	for p, s := range op.moved {
		if w.ref.disk[p] != s[0] {
			w.fail("I9: after %s %q is %.20q, not %.20q", what, p, w.ref.disk[p], s[0])
		}
	}
}

func (w *world) undoTo(s int) {
	var ids []int
	for _, o := range w.ref.ops {
		if o.session == s && o.kind.Undoable() && w.ref.stands(o) {
			ids = append(ids, o.id)
		}
	}
	if len(ids) > 0 {
		w.undo(s, true, ids[w.rnd.IntN(len(ids))])
	}
}

func (w *world) compact() {
	s := w.session()
	head := w.ref.heads[s]
	if len(head.messages()) == 0 {
		return
	}
	w.note("compact s%d", s)
	raw, _ := w.message()
	w.must(w.recorder.Compact(w.t.Context(), w.ids[s], 0, -1, []json.RawMessage{raw}))
	n := child(head, store.AppendNode)
	n.sealed = true
	head.sealed = true
	w.ref.heads[s], w.ref.current = n, s
	w.ref.ops = append(w.ref.ops, &refOp{id: len(w.ref.ops) + 1, kind: store.OpCompact, session: s, from: head})
}

func (w *world) messages(s int) []string {
	var all []string
	w.must(w.capture.Store.View(w.t.Context(), func(tx *store.Tx) error {
		ses, err := tx.Session(w.ids[s])
		if err != nil {
			return err
		}
		for m, err := range tx.Messages(ses.Head, 0, -1) {
			if err != nil {
				return err
			}
			if m.Index != int64(len(all)) {
				return fmt.Errorf("message %d comes as number %d", m.Index, len(all))
			}
			all = append(all, string(m.JSON))
		}
		return nil
	}))
	return all
}

// check compares disk, conversations, turns and pointers with the reference.
func (w *world) check() {
	w.t.Helper()
	if d := cmp.Diff(w.ref.disk, w.onDisk()); d != "" {
		w.fail("disk (-want +got):\n%s", d)
	}
	for s, head := range w.ref.heads {
		if want, got := head.messages(), w.messages(s); !slices.Equal(want, got) {
			w.fail("messages of s%d: %q, want %q", s, got, want)
		}
	}
	w.must(w.capture.Store.View(w.t.Context(), func(tx *store.Tx) error {
		for s, head := range w.ref.heads {
			ses, err := tx.Session(w.ids[s])
			if err != nil {
				return err
			}
			turns := head.turns()
			if ses.Turns != len(turns) || ses.Current != (s == w.ref.current) {
				return fmt.Errorf("s%d has %d turns, current=%v; want %d, current s%d", s, ses.Turns, ses.Current, len(turns), w.ref.current)
			}
			for n, turn := range turns {
				got, err := tx.Turn(ses.Head, n)
				if err != nil {
					return err
				}
				if want := int64(len(turn.parent.messages())); got.Number() != n || got.MsgIndex != want {
					return fmt.Errorf("turn %d of s%d: number %d, boundary %d, want %d", n, s, got.Number(), got.MsgIndex, want)
				}
			}
			for _, p := range modelPaths {
				row, err := tx.Newest(ses.Head, store.Path(p))
				if err != nil {
					return err
				}
				if (row == nil) != (head.newest(p) == nil) {
					return fmt.Errorf("s%d knows %q: %v, want %v", s, p, row != nil, head.newest(p) != nil)
				}
				if row != nil && (row.Origin == store.Agent) != head.newest(p).agent {
					return fmt.Errorf("s%d: the newest row of %q is the %v's", s, p, row.Origin)
				}
			}
		}
		return nil
	}))
}

func (w *world) verify(deep bool) {
	w.t.Helper()
	problems, err := w.capture.Store.Verify(context.Background(), deep, nil)
	w.must(err)
	for _, p := range problems {
		w.fail("verify: %+v", p)
	}
}

func (w *world) step() {
	if w.rnd.Float64() < .2 {
		w.byHand()
	}
	switch x := w.rnd.IntN(100); {
	case x < 36:
		w.turn()
	case x < 39:
		w.late()
	case x < 49:
		w.rewind(store.Both)
	case x < 58:
		w.rewind(store.Code)
	case x < 66:
		w.rewind(store.Conversation)
	case x < 71:
		w.fork()
	case x < 74:
		w.begin()
	case x < 80:
		w.switchTo()
	case x < 88:
		w.undo(w.session(), w.rnd.IntN(3) == 0, 0)
	case x < 90:
		w.undoTo(w.session())
	case x < 96:
		w.redo(w.session(), w.rnd.IntN(3) == 0)
	case x < 98:
		w.compact()
	default:
		w.note("reopen")
		w.close()
		w.open()
	}
	w.check()
	if w.rnd.IntN(8) == 0 {
		w.verify(false)
	}
}

// TestModel plays random turns, hand edits, moves, forks, compactions and reopenings against
// the reference (I2–I5, I7, I9, I10, I12, I13).
func TestModel(t *testing.T) {
	seeds, steps := uint64(40), 60
	if n, err := strconv.ParseUint(os.Getenv("REASONIX_MODEL_SEEDS"), 10, 32); err == nil {
		seeds = n
	} else if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			defer func() { w.close() }()
			for range steps {
				w.step()
			}
			w.verify(true)
		})
	}
}
