package rewind_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/rewind"
	"reasonix/store"
)

// edits plays one turn in session s: each pair is a path and its new state.
func (w *world) edits(s int, pairs ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.recorder.BeginTurn(ctx, w.ids[s], "", "a turn", nil)
	w.must(err)
	for i := 0; i < len(pairs); i += 2 {
		w.edit(s, pairs[i], pairs[i+1])
	}
	w.must(w.recorder.EndTurn(ctx, w.ids[s], store.TurnDone))
}

func (w *world) edit(s int, p, state string) {
	w.t.Helper()
	e := agent.Edit{Call: p + state, Tool: "edit", Paths: []string{p}}
	_, err := w.recorder.BeforeEdit(w.t.Context(), w.ids[s], e)
	w.must(err)
	if state != "" {
		w.must(os.MkdirAll(filepath.Dir(filepath.Join(w.dir, p)), 0o755))
	}
	w.put(p, state)
	_, err = w.recorder.AfterEdit(w.t.Context(), w.ids[s], e)
	w.must(err)
}

func (w *world) newSession() int {
	w.t.Helper()
	s, err := w.recorder.Session(w.t.Context(), "test", fmt.Sprint("s", len(w.ids)))
	w.must(err)
	w.ids = append(w.ids, s.ID)
	return len(w.ids) - 1
}

// plan plans a rewind of session s and returns what it says.
func (w *world) plan(r rewind.Request) (*rewind.Plan, rewind.Result, error) {
	w.t.Helper()
	if r.Kind == 0 {
		r.Kind = store.OpRewind
	}
	if r.Session == "" {
		r.Session = w.ids[0]
	}
	if r.Scope == 0 {
		r.Scope = store.Both
	}
	p, err := w.engine.Plan(w.t.Context(), r)
	if p == nil {
		return nil, rewind.Result{}, err
	}
	return p, p.Result(), err
}

func (w *world) do(r rewind.Request) rewind.Result {
	w.t.Helper()
	p, _, err := w.plan(r)
	w.must(err)
	res, err := w.engine.Apply(w.t.Context(), p)
	w.must(err)
	w.verify(true)
	return res
}

func (w *world) refused(r rewind.Request, want ...rewind.Conflict) {
	w.t.Helper()
	before := manifest(w.t, w.dir)
	p, got, err := w.plan(r)
	if !errors.Is(err, rewind.ErrConflict) {
		w.fail("%+v: %v, want a conflict", r, err)
	}
	if d := cmp.Diff(want, got.Conflicts); d != "" {
		w.fail("conflicts (-want +got):\n%s", d)
	}
	if _, err := w.engine.Apply(w.t.Context(), p); !errors.Is(err, rewind.ErrConflict) {
		w.fail("apply: %v", err)
	}
	if d := cmp.Diff(before, manifest(w.t, w.dir)); d != "" {
		w.fail("a refused move changed files:\n%s", d)
	}
}

func (w *world) has(p, want string) {
	w.t.Helper()
	got := ""
	name := filepath.Join(w.dir, p)
	switch info, err := os.Lstat(name); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		w.fail("%v", err)
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(name)
		w.must(err)
		got = "->" + target
	default:
		b, err := os.ReadFile(name)
		w.must(err)
		got = fmt.Sprintf("%o:%s", info.Mode().Perm(), b)
	}
	if got != want {
		w.fail("%q is %q, want %q", p, got, want)
	}
}

// TestHandEditIsAConflict is case 4 and I12: an edit after the agent's last one stops the
// rewind; forced over it comes back by undo, and is a conflict again.
func TestHandEditIsAConflict(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:original")
	w.edits(0, "a", "644:agent", "b", "644:agent's")
	w.put("a", "600:by hand")
	clash := rewind.Conflict{Path: "a", Reason: rewind.ChangedByOther, LastWriter: "somebody outside"}
	w.refused(rewind.Request{}, clash)
	w.do(rewind.Request{Skip: true})
	w.has("a", "600:by hand")
	w.has("b", "")
	w.do(rewind.Request{Kind: store.OpUndo})
	w.has("b", "644:agent's")
	w.refused(rewind.Request{}, clash) // the same whether or not a look has recorded it
	w.do(rewind.Request{Force: true})
	w.has("a", "644:original")
	w.do(rewind.Request{Kind: store.OpUndo})
	w.has("a", "600:by hand")
	w.refused(rewind.Request{}, clash)
}

// TestOnlyWhatTheAgentChanged is case 5 and I13.
func TestOnlyWhatTheAgentChanged(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("u", "644:person 0")
	w.edits(0, "a", "644:agent", "u", "644:agent too")
	w.do(rewind.Request{Kind: store.OpUndo, Op: w.do(rewind.Request{Scope: store.Code}).Operation})
	w.put("u", "644:person 1")
	w.edits(0, "a", "644:agent 2")
	w.put("u", "644:person 2")
	res := w.do(rewind.Request{Turn: 1})
	w.has("u", "644:person 2")
	w.has("a", "644:agent")
	if len(res.Written) != 1 || res.Written[0] != "a" {
		t.Errorf("wrote %v", res.Written)
	}
}

// TestAlsoUndoes lists a person's change that goes with the agent's newer one.
func TestAlsoUndoes(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:original")
	w.edits(0, "a", "644:agent 1")
	w.put("a", "644:person")
	w.edits(0, "a", "644:agent 2")
	_, res, err := w.plan(rewind.Request{})
	w.must(err)
	if d := cmp.Diff([]rewind.AlsoUndoes{{Path: "a", Writer: "somebody outside"}}, res.AlsoUndoes); d != "" {
		t.Error(d)
	}
	w.do(rewind.Request{Turn: 1})
	w.has("a", "644:agent 1") // what was known when turn 1 began
	w.do(rewind.Request{Kind: store.OpUndo})
	w.has("a", "644:agent 2")
}

// TestAnotherSessionWroteLast names the session and turn that did.
func TestAnotherSessionWroteLast(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "a", "644:first")
	two := w.newSession()
	w.edits(two, "a", "644:second")
	writer := fmt.Sprintf("session %s, turn 0", w.ids[two])
	w.refused(rewind.Request{}, rewind.Conflict{Path: "a", Reason: rewind.ChangedByOther, LastWriter: writer})
	w.do(rewind.Request{Session: w.ids[two]})
	w.has("a", "644:first")
	w.do(rewind.Request{})
	w.has("a", "")
}

// TestInTheWay is I6: a folder with something of a person's in it is not replaced by a file,
// unless forced, and then all of it comes back by undo.
func TestInTheWay(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("x", "644:a file")
	e := agent.Edit{Tool: "shell", Paths: []string{"x", "x/new"}}
	ctx := t.Context()
	_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "", nil)
	w.must(err)
	_, err = w.recorder.BeforeEdit(ctx, w.ids[0], e)
	w.must(err)
	w.put("x", "")
	w.must(os.Mkdir(filepath.Join(w.dir, "x"), 0o755))
	w.put("x/new", "644:agent's")
	_, err = w.recorder.AfterEdit(ctx, w.ids[0], e)
	w.must(err)
	w.must(w.recorder.EndTurn(ctx, w.ids[0], store.TurnDone))
	w.must(os.Mkdir(filepath.Join(w.dir, "x/mine"), 0o700))
	w.put("x/mine/notes", "600:precious")
	before := manifest(t, w.dir)
	w.refused(rewind.Request{}, rewind.Conflict{
		Path: "x", Reason: rewind.InTheWay, LastWriter: "this session, turn 0", Entries: []store.Path{"x/mine", "x/mine/notes"},
	})
	w.do(rewind.Request{Skip: true})
	w.has("x/mine/notes", "600:precious")
	w.do(rewind.Request{Kind: store.OpUndo})
	if d := cmp.Diff(before, manifest(t, w.dir)); d != "" {
		t.Fatal(d)
	}
	w.do(rewind.Request{Force: true})
	w.has("x", "644:a file")
	w.do(rewind.Request{Kind: store.OpUndo})
	if d := cmp.Diff(before, manifest(t, w.dir)); d != "" {
		t.Fatal(d)
	}
	w.must(os.Mkdir(filepath.Join(w.dir, "x/.git"), 0o755))
	w.refused(rewind.Request{Force: true}, rewind.Conflict{
		Path: "x", Reason: rewind.InTheWay, LastWriter: "this session, turn 0", Final: true,
		Entries: []store.Path{"x/.git", "x/mine", "x/mine/notes"},
	})
}

// TestPlantedLink is case 32 and I11: a parent that became a link is never written through.
func TestPlantedLink(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	victim := t.TempDir()
	w.must(os.WriteFile(filepath.Join(victim, "f"), []byte("victim"), 0o644))
	w.must(os.Mkdir(filepath.Join(w.dir, "d"), 0o755))
	w.put("d/f", "644:original")
	w.edits(0, "d/f", "644:agent")
	w.must(os.RemoveAll(filepath.Join(w.dir, "d")))
	w.must(os.Symlink(victim, filepath.Join(w.dir, "d")))
	for _, force := range []bool{false, true} {
		_, res, err := w.plan(rewind.Request{Force: force})
		if !errors.Is(err, rewind.ErrConflict) || len(res.Conflicts) != 1 {
			t.Fatalf("force=%v: %v, %+v", force, err, res)
		}
	}
	b, err := os.ReadFile(filepath.Join(victim, "f"))
	if err != nil || string(b) != "victim" {
		t.Errorf("victim: %q, %v", b, err)
	}
}

// TestDamagedBlobChangesNothing is case 6: the error names path and blob, the file stays.
func TestDamagedBlobChangesNothing(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:original")
	w.edits(0, "a", "644:agent", "b", "644:agent")
	w.damage("original")
	_, _, err := w.plan(rewind.Request{})
	var d *rewind.DamageError
	if !errors.As(err, &d) || d.Path != "a" {
		t.Fatalf("plan over damage: %v", err)
	}
	w.has("a", "644:agent")
	w.has("b", "644:agent")
	p, _, err := w.plan(rewind.Request{Only: []store.Path{"b"}})
	w.must(err)
	_, err = w.engine.Apply(t.Context(), p)
	w.must(err)
	w.has("b", "")
	problems, err := w.capture.Store.Verify(t.Context(), true, nil)
	w.must(err)
	if len(problems) == 0 {
		t.Error("verify finds nothing")
	}
	for _, p := range problems {
		if p.Code != store.ProblemBlob || p.Path != "a" {
			t.Errorf("verify: %+v", p)
		}
	}
}

// TestStalePlan is I8's other half: what was shown is what happens, or nothing does.
func TestStalePlan(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "a", "644:agent", "b", "644:agent")
	for name, change := range map[string]func(){
		"a file":    func() { w.put("b", "644:by hand") },
		"a mode":    func() { w.put("b", "644:agent"); w.must(os.Chmod(filepath.Join(w.dir, "b"), 0o600)) },
		"a message": func() { raw, _ := w.message(); w.must(w.recorder.Append(t.Context(), w.ids[0], []jsonRaw{raw})) },
	} {
		w.put("b", "644:agent")
		p, _, err := w.plan(rewind.Request{})
		w.must(err)
		change()
		before := manifest(t, w.dir)
		if _, err := w.engine.Apply(t.Context(), p); !errors.Is(err, rewind.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(before, manifest(t, w.dir)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	w.put("b", "644:agent")
	p, _, err := w.plan(rewind.Request{})
	w.must(err)
	_, err = w.engine.Apply(t.Context(), p)
	w.must(err)
	if _, err := w.engine.Apply(t.Context(), p); !errors.Is(err, rewind.ErrStale) {
		t.Errorf("a plan used twice: %v", err)
	}
}

// TestBusy is the rules of what counts as running.
func TestBusy(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	ctx := t.Context()
	now := time.Unix(1_900_000_000, 0)
	w.at(func() time.Time { return now })
	two := w.newSession()
	w.edits(0, "a", "644:agent")
	_, err := w.recorder.BeginTurn(ctx, w.ids[two], "", "", nil)
	w.must(err)
	busy := func(r rewind.Request, want bool) {
		t.Helper()
		_, _, err := w.plan(r)
		if errors.Is(err, rewind.ErrBusy) != want || (!want && err != nil) {
			t.Errorf("%+v: %v, want busy=%v", r, err, want)
		}
	}
	busy(rewind.Request{}, true) // any session, for what may write files
	busy(rewind.Request{Scope: store.Conversation}, false)
	busy(rewind.Request{Kind: store.OpFork}, false)
	busy(rewind.Request{Kind: store.OpFork, Code: true}, true)
	busy(rewind.Request{Force: true}, false)
	now = now.Add(16 * time.Second)
	busy(rewind.Request{}, false) // quiet for long enough
	_, err = w.recorder.BeforeEdit(ctx, w.ids[two], agent.Edit{Call: "c", Tool: "edit_file", Paths: []string{"b"}})
	w.must(err)
	now = now.Add(9 * time.Minute)
	busy(rewind.Request{}, true)
	_, _, err = w.plan(rewind.Request{})
	if err == nil || !strings.Contains(err.Error(), "edit_file on b") {
		t.Errorf("the error does not say what runs: %v", err)
	}
	now = now.Add(2 * time.Minute)
	busy(rewind.Request{}, false) // no event for longer than a call may take
	unlock, err := w.capture.LockTurn(ctx, w.ids[two])
	w.must(err)
	busy(rewind.Request{}, true) // a live process
	unlock()
	busy(rewind.Request{}, false)
	w.put("b", "644:written by the call")
	w.do(rewind.Request{Session: w.ids[two], Turn: 0, Force: true})
	w.has("b", "")
}
