package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// crash is what stops a move in the middle, as if the process ended there: no code of ours
// that would clean up runs afterwards, and the system releases the locks.
type crash struct{}

// faults makes the n-th call fail or stop.
type faults struct {
	n     int // which call; 0 means none
	calls int
	halt  bool // stop there instead of failing, and let nothing happen afterwards
	dead  bool
	err   error
}

func (f *faults) call() error {
	if f.dead {
		panic(crash{})
	}
	f.calls++
	if f.calls != f.n {
		return nil
	}
	if f.halt {
		f.dead = true
		panic(crash{})
	}
	return f.err
}

// broken opens the world's store and root anew with faults on all calls of both.
func (w *world) broken(f *faults) (*store.Store, *workspace.Root, *rewind.Engine) {
	w.t.Helper()
	root, err := workspace.Open(w.dir, workspace.Options{
		Protected: []string{filepath.Dir(w.file)},
		Fault:     func(string, store.Path) error { return f.call() },
	})
	w.must(err)
	n := f.n
	f.n = 0 // opening is not what is tested
	s, err := store.Open(w.t.Context(), w.file, store.Options{Fault: func(string) error { return f.call() }})
	w.must(err)
	f.n, f.calls = n, 0
	return s, root, rewind.New(&capture.Capturer{Store: s, Root: root}, rewind.Options{})
}

// attempt runs fn and says whether it was stopped.
func attempt(fn func() error) (stopped bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			stopped, err = true, errors.New("stopped")
		}
	}()
	return false, fn()
}

// shape is what a move may change: files, conversations, turns.
func (w *world) shapeOf() map[string]string {
	all := manifest(w.t, w.dir)
	w.must(w.capture.Store.View(w.t.Context(), func(tx *store.Tx) error {
		sessions, err := tx.Sessions()
		if err != nil {
			return err
		}
		for _, s := range sessions {
			all["session "+string(s.ID)] = fmt.Sprint(s.Turns, s.Messages, s.Current)
		}
		return nil
	}))
	return all
}

// TestFaultAtEveryCall fails, and separately stops, the n-th call on files or the store for
// n = 1, 2, 3 … until none is left, in a move of every kind (I7, I8 and the crash table).
// Afterwards the world is as before or as after, and no staged file is left.
func TestFaultAtEveryCall(t *testing.T) {
	type scenario struct {
		name    string
		request rewind.Request
		prepare func(w *world)
	}
	rewound := func(scope store.Scope) func(*world) {
		return func(w *world) { w.do(rewind.Request{Turn: 1, Scope: scope, Force: true}) }
	}
	scenarios := []scenario{
		{"rewind code", rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Code, Force: true}, nil},
		{"rewind both", rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Both, Force: true}, nil},
		{"rewind conversation", rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Conversation}, nil},
		{"undo", rewind.Request{Kind: store.OpUndo}, rewound(store.Both)},
		{"redo", rewind.Request{Kind: store.OpRedo}, func(w *world) {
			rewound(store.Both)(w)
			w.do(rewind.Request{Kind: store.OpUndo})
		}},
		{"fork", rewind.Request{Kind: store.OpFork, Turn: 1}, nil},
		{"fork code", rewind.Request{Kind: store.OpFork, Turn: 1, Code: true, Force: true}, nil},
		{"switch", rewind.Request{Kind: store.OpSwitch}, func(w *world) {
			w.do(rewind.Request{Kind: store.OpFork, Turn: 1, Code: true, Force: true})
		}},
	}
	for _, sc := range scenarios {
		for _, how := range waysToFail() {
			halt := how.errs == nil
			t.Run(sc.name+" "+how.name, func(t *testing.T) {
				t.Parallel()
				step := 1
				if testing.Short() {
					step = 11
				}
				before, after := 0, 0
				template := faultWorld(t, sc.prepare)
				template.close()
				for n := 1; ; n += step {
					w := template.copy()
					r := sc.request
					r.Session = w.ids[0]
					was := w.shapeOf()
					f := &faults{n: n, halt: halt}
					if !halt {
						f.err = fmt.Errorf("fault %d: %w", n, how.errs[n%len(how.errs)])
					}
					s, root, engine := w.broken(f)
					stopped, err := attempt(func() error {
						p, err := engine.Plan(t.Context(), r)
						if err != nil {
							return err
						}
						_, err = engine.Apply(t.Context(), p)
						return err
					})
					f.n, f.dead = 0, false
					w.must(s.Close())
					w.must(root.Close())
					if _, err := w.engine.Recover(t.Context()); err != nil {
						t.Fatalf("n=%d: recover: %v", n, err)
					}
					again, err2 := w.engine.Recover(t.Context())
					if err2 != nil || len(again) > 0 {
						t.Fatalf("n=%d: recovery is not idempotent: %v, %v", n, again, err2)
					}
					is := w.shapeOf()
					switch d := cmp.Diff(was, is); {
					case d == "":
						before++
						if err == nil && sc.name != "rewind conversation" {
							t.Fatalf("n=%d: success was reported and nothing happened", n)
						}
					default:
						after++
						if want := w.wanted(sc.request, was); want != "" {
							t.Fatalf("n=%d stopped=%v (%v): neither before nor after: %s\n%s", n, stopped, err, want, d)
						}
					}
					for p := range is {
						if workspace.IsStaged(filepath.Base(p)) {
							t.Fatalf("n=%d: %q is left", n, p)
						}
					}
					w.verify(false)
					done := f.calls < n
					w.close()
					if done {
						break
					}
				}
				if after == 0 || before == 0 && sc.name != "rewind conversation" {
					t.Errorf("%d ended as before, %d as after", before, after)
				}
			})
		}
	}
}

// wayToFail says what becomes of a call: one of the errors in turn, or, without any, the end.
type wayToFail struct {
	name string
	errs []error
}

// waysToFail are a kill and the errors that a system may give: a broken disk, a full one, and a
// right that is missing, which some calls have another way for. The long form, with
// REASONIX_KILLS, gives each call each of them.
func waysToFail() []wayToFail {
	errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EACCES}
	ways := []wayToFail{{"stopped", nil}}
	if os.Getenv("REASONIX_KILLS") == "" {
		return append(ways, wayToFail{"failing", errs})
	}
	for _, err := range errs {
		ways = append(ways, wayToFail{"failing: " + err.Error(), []error{err}})
	}
	return ways
}

// faultWorld is a workspace with three turns, a hand edit, kinds that change and folders that go.
func faultWorld(t *testing.T, prepare func(*world)) *world {
	w := newWorld(t, 1)
	w.must(os.MkdirAll(filepath.Join(w.dir, "keep"), 0o755))
	w.put("keep/a", "644:a0")
	w.put("b", "755:b0")
	w.put("kind", "644:file")
	w.edits(0, "keep/a", "644:a1")
	w.edits(0, "keep/a", "644:a2", "b", "", "new/deep/c", "600:c", "kind", "->keep/a", "mode", "644:m")
	w.edits(0, "b", "644:b2", "new/d", "644:d", "mode", "755:m")
	w.put("b", "644:by hand")
	if prepare != nil {
		prepare(w)
	}
	return w
}

// wanted compares the world with what the request makes of it; "" when it is so.
func (w *world) wanted(r rewind.Request, was map[string]string) string {
	at1 := map[string]string{"keep/": "755", "keep/a": "644:a1", "b": "755:b0", "kind": "644:file"}
	at3 := map[string]string{
		"keep/": "755", "keep/a": "644:a2", "b": "644:by hand", "new/": "755", "new/deep/": "755", "new/deep/c": "600:c",
		"new/d": "644:d", "kind": "->keep/a", "mode": "755:m",
	}
	want := at1
	switch {
	case r.Kind == store.OpUndo, r.Kind == store.OpSwitch, r.Kind == store.OpFork && !r.Code, r.Kind == store.OpRewind && r.Scope == store.Conversation:
		want = at3
	}
	is := w.shapeOf()
	files := map[string]string{}
	for p, s := range is {
		if !strings.HasPrefix(p, "session ") {
			files[p] = s
		}
	}
	return cmp.Diff(want, files)
}

// TestRecoverLeavesWhatOthersChanged: a path in neither state is left and reported.
func TestRecoverLeavesWhatOthersChanged(t *testing.T) {
	w := faultWorld(t, nil)
	defer w.close()
	engine := rewind.New(w.capture, rewind.Options{Point: func(name string) {
		if name == "written" {
			panic(crash{})
		}
	}})
	stopped, _ := attempt(func() error {
		p, err := engine.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: store.Both, Force: true})
		w.must(err)
		_, err = engine.Apply(t.Context(), p)
		return err
	})
	if !stopped {
		t.Fatal("the move was not stopped")
	}
	w.has("keep/a", "644:a1")
	w.put("b", "644:meanwhile")
	got, err := w.engine.Recover(context.Background())
	w.must(err)
	if len(got) != 1 || len(got[0].Left) != 1 || got[0].Left[0] != "b" {
		t.Fatalf("recovered %+v", got)
	}
	w.has("b", "644:meanwhile")
	w.has("keep/a", "644:a2")
	w.has("new/deep/c", "600:c")
	w.verify(true)
}

// TestRecoveryWaitsForALiveOperation: what holds the lock is alive.
func TestRecoveryWaitsForALiveOperation(t *testing.T) {
	w := faultWorld(t, nil)
	defer w.close()
	inside, goOn := make(chan bool), make(chan bool)
	engine := rewind.New(w.capture, rewind.Options{Point: func(name string) {
		if name == "staged" {
			inside <- true
			<-goOn
		}
	}})
	done := make(chan error)
	go func() {
		p, err := engine.Plan(context.Background(), rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: store.Both, Force: true})
		if err == nil {
			_, err = engine.Apply(context.Background(), p)
		}
		done <- err
	}()
	<-inside
	got, err := w.engine.Recover(t.Context())
	if err != nil || len(got) > 0 {
		t.Errorf("a live operation was recovered: %v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	_, err = w.recorder.BeforeEdit(ctx, w.ids[0], agent.Edit{Paths: []string{"keep/a"}})
	if !errors.Is(err, capture.ErrLocked) {
		t.Errorf("a capture beside a live operation: %v", err)
	}
	goOn <- true
	w.must(<-done)
	w.has("keep/a", "644:a1")
	w.verify(true)
}
