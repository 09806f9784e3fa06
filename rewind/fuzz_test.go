package rewind_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// script reads decisions from the input of a fuzz target; at its end they are all 0.
type script struct {
	rest   []byte
	untrue bool // rows were made up
}

func (s *script) pick(n int) int {
	if len(s.rest) == 0 {
		return 0
	}
	b := int(s.rest[0])
	s.rest = s.rest[1:]
	return b % n
}

// scriptPaths collide: some lie below others, and one is never to be touched.
var scriptPaths = []string{"a", "d", "d/x", "d/e", "d/e/y", "a/b", ".git/config"}

func (s *script) path() string { return scriptPaths[s.pick(len(scriptPaths))] }

// scriptContents are those that rows may refer to.
var scriptContents = []string{"zero", "one", "a"}

// onDisk makes p anything, as a person may.
func (s *script) onDisk(w *world, p string) {
	name := filepath.Join(w.dir, p)
	what := s.pick(5)
	_ = os.RemoveAll(name)
	if what > 0 && os.MkdirAll(filepath.Dir(name), 0o755) != nil {
		return // a file is in the way
	}
	content := scriptContents[s.pick(len(scriptContents))]
	switch what {
	case 1:
		w.must(os.WriteFile(name, []byte(content), 0o644))
	case 2:
		w.must(os.WriteFile(name, []byte(content), 0o600))
	case 3:
		w.must(os.Symlink(content, name))
	case 4:
		w.must(os.Mkdir(name, 0o755))
	}
}

// state is any state that a row may hold, whether or not it ever was.
func (s *script) state() store.State {
	content := scriptContents[s.pick(len(scriptContents))]
	h, size := blob.Sum([]byte(content)), int64(len(content))
	switch s.pick(6) {
	case 1:
		return store.State{Kind: store.File, Mode: 0o644, Blob: h, Size: size}
	case 2:
		return store.State{Kind: store.File, Mode: 0o400, Blob: h, Size: size}
	case 3:
		return store.State{Kind: store.Symlink, Blob: h, Size: size}
	case 4:
		return store.State{Kind: store.Dir, Mode: 0o755}
	case 5:
		return store.UncapturedState
	}
	return store.AbsentState
}

// rows puts rows into the history that nobody saw happen, as a damaged or hostile store may.
func (s *script) rows(w *world) {
	s.untrue = true
	w.must(w.capture.Store.Update(w.t.Context(), func(tx *store.WriteTx) error {
		ses, err := tx.Session(w.ids[0])
		if err != nil {
			return err
		}
		n, err := tx.AddNode(ses.Head, store.AppendNode)
		if err != nil {
			return err
		}
		for range 1 + s.pick(4) {
			c := store.Change{
				Path: store.Path(s.path()), Source: store.SourceTool, Origin: store.Agent, Before: s.state(), After: s.state(),
			}
			if s.pick(3) == 2 {
				c.Source, c.Origin = store.SourceExternal, store.External
			}
			if err := tx.AppendChange(n, c); err != nil {
				return err
			}
		}
		return tx.SetHead(ses.ID, n.ID)
	}))
}

// turn is one of the agent's, with edits that it announces.
func (s *script) turn(w *world) {
	ctx := w.t.Context()
	_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "", nil)
	w.must(err)
	for range s.pick(3) {
		p := s.path()
		e := agent.Edit{Call: "c", Tool: "edit", Paths: []string{p}}
		_, err := w.recorder.BeforeEdit(ctx, w.ids[0], e)
		w.must(err)
		s.onDisk(w, p)
		_, err = w.recorder.AfterEdit(ctx, w.ids[0], e)
		w.must(err)
	}
	w.must(w.recorder.EndTurn(ctx, w.ids[0], store.TurnDone))
}

func (s *script) request(w *world) rewind.Request {
	r := rewind.Request{Session: w.ids[0], Kind: store.OpRewind, Turn: s.pick(5) - 1, Scope: store.Scope(1 + s.pick(3))}
	switch s.pick(8) {
	case 1:
		r.Kind = store.OpUndo
	case 2:
		r.Kind = store.OpRedo
	case 3:
		r.Kind, r.Code = store.OpFork, s.pick(2) == 1
	case 4:
		r.Kind = store.OpSwitch
	}
	switch s.pick(4) {
	case 1:
		r.Force = true
	case 2:
		r.Skip = true
	case 3:
		r.Only = []store.Path{store.Path(s.path())}
	}
	return r
}

// refusals are what a plan may say instead of being one.
var refusals = []error{
	rewind.ErrConflict, rewind.ErrNothingToUndo, rewind.ErrNothingToRedo, rewind.ErrInvalid, rewind.ErrNoPath,
	store.ErrNoTurn, workspace.ErrProtected,
}

// FuzzPlan plays any history, true or not, over a few paths of any kind. A plan must not panic.
// It either refuses, with an error that can be told from others, and nothing changes; or it can
// be applied, is then done, and can be undone to the byte.
func FuzzPlan(f *testing.F) {
	for seed := range 40 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 3))
		in := make([]byte, 20+rnd.IntN(100))
		for i := range in {
			in[i] = byte(rnd.Uint32())
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		w := newWorld(t, 1)
		defer func() { w.close() }()
		w.learn(scriptContents)
		s := &script{rest: in[:min(len(in), 120)]}
		for len(s.rest) > 0 {
			switch s.pick(4) {
			case 0:
				s.turn(w)
			case 1:
				s.rows(w)
			case 2:
				s.onDisk(w, s.path())
			case 3:
				w.attempt(s.request(w))
			}
		}
		for _, scope := range []store.Scope{store.Code, store.Conversation, store.Both} {
			w.attempt(rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Scope: scope, Force: true})
		}
		problems, err := w.capture.Store.Verify(t.Context(), true, nil)
		w.must(err)
		for _, p := range problems {
			if p.Code != "chain" || !s.untrue { // rows that contradict one another
				w.fail("verify: %+v", p)
			}
		}
	})
}

// learn stores contents: rows may only refer to those that are there.
func (w *world) learn(contents []string) {
	w.t.Helper()
	e := agent.Edit{Call: "learn", Tool: "edit"}
	for _, c := range contents {
		w.put("content "+c, "644:"+c)
		e.Paths = append(e.Paths, "content "+c)
	}
	_, err := w.recorder.BeginTurn(w.t.Context(), w.ids[0], "", "", nil)
	w.must(err)
	_, err = w.recorder.BeforeEdit(w.t.Context(), w.ids[0], e)
	w.must(err)
	w.must(w.recorder.EndTurn(w.t.Context(), w.ids[0], store.TurnDone))
}

// attempt plans and, if the plan is one, applies it, takes it back and makes it again.
func (w *world) attempt(r rewind.Request) {
	w.t.Helper()
	ctx := w.t.Context()
	before := manifest(w.t, w.dir)
	w.note("%+v", r)
	p, err := w.engine.Plan(ctx, r)
	w.unchanged("a plan", before)
	if err != nil {
		for _, r := range refusals {
			if errors.Is(err, r) {
				return
			}
		}
		w.fail("plan: %v", err)
	}
	planned := p.Result()
	done, err := w.engine.Apply(ctx, p)
	if err != nil {
		w.fail("a plan that was good could not be applied: %v\n%+v", err, planned)
	}
	planned.Operation, planned.Branch, planned.Left, done.Left = done.Operation, done.Branch, nil, nil
	if d := cmp.Diff(planned, done); d != "" {
		w.fail("planned and done differ:\n%s", d)
	}
	if r.Kind != store.OpRewind {
		return
	}
	after := manifest(w.t, w.dir)
	w.mustMove(rewind.Request{Kind: store.OpUndo, Session: r.Session})
	w.unchanged("undo", before)
	w.mustMove(rewind.Request{Kind: store.OpRedo, Session: r.Session})
	w.unchanged("redo", after)
}

func (w *world) mustMove(r rewind.Request) {
	w.t.Helper()
	if err := move(w.t.Context(), w.engine, r); err != nil {
		w.fail("%+v: %v", r, err)
	}
}

func (w *world) unchanged(what string, want map[string]string) {
	w.t.Helper()
	if d := cmp.Diff(want, manifest(w.t, w.dir)); d != "" {
		w.fail("%s (-want +got):\n%s", what, d)
	}
}
