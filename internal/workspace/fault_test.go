package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// breaking is what happens at the n-th call.
type breaking int

const (
	failOnce breaking = iota // that call fails
	failOn                   // that call and all after it fail, as on a dead disk
	stop                     // the process ends there
)

type stopped struct{}

var errBroken = errors.New("input/output error")

// TestFaultAtEveryCall breaks the n-th call of Stage and Apply, for n = 1, 2, 3 … until none is
// left, and goes back by reversed steps, as recovery does (I8).
func TestFaultAtEveryCall(t *testing.T) {
	from := tree{
		"file": "644:old", "mode": "644:same", "gone": "600:gone", "link": "->old",
		"tofolder": "644:was a file", "closed/": "555", "closed/f": "444:old", "closed/gone": "444:g",
		"tofile/": "750", "tofile/a": "644:a", "tofile/b/": "700", "tofile/b/c": "->c",
		"empty/": "711", "full/": "755", "full/f": "644:f",
	}
	to := tree{
		"file": "755:new", "mode": "600:same", "new": "640:new", "link": "->new",
		"tofolder/": "755", "tofolder/in/": "700", "tofolder/in/f": "644:deep", "closed/": "500", "closed/f": "400:new",
		"tofile": "644:was a folder", "made/": "555", "made/f": "444:f",
	}
	for _, mode := range []breaking{failOnce, failOn, stop} {
		for _, noSwap := range []bool{false, true} {
			t.Run(fmt.Sprintf("mode %d noSwap %v", mode, noSwap), func(t *testing.T) {
				t.Parallel()
				w := newFastWorld(t, from)
				steps := w.stepsTo(to)
				n := 1
				for ; w.breakAt(n, mode, noSwap, steps); n++ {
					w.goBack(steps)
					w.same(from)
				}
				w.same(to)
				if n < 100 {
					t.Fatalf("only %d calls were made", n)
				}
			})
		}
	}
}

// breakAt applies steps and reports whether the n-th call was made, and broken.
func (w *world) breakAt(n int, mode breaking, noSwap bool, steps []workspace.Step) (broken bool) {
	w.t.Helper()
	calls, over := 0, false
	r := w.faulty(func(string, store.Path) error {
		calls++
		switch {
		case over || calls < n || mode == failOnce && calls > n:
			return nil
		case mode == stop:
			panic(stopped{})
		}
		return errBroken
	})
	defer r.Close()
	if noSwap {
		workspace.NoSwap(r)
	}
	defer func() {
		over = true
		if e := recover(); e != nil {
			if _, ok := e.(stopped); !ok {
				panic(e)
			}
			broken = true
		}
	}()
	err := w.apply(r, steps)
	if err != nil && !errors.Is(err, errBroken) {
		w.t.Fatalf("call %d: %v", n, err)
	}
	if err == nil && calls >= n && !over && mode != failOnce {
		w.t.Fatalf("call %d failed and was not told", n)
	}
	return err != nil
}

// goBack does what recovery does: sweep, read, reverse.
func (w *world) goBack(steps []workspace.Step) {
	w.t.Helper()
	ps := make([]store.Path, len(steps))
	for i, s := range steps {
		ps[i] = s.Path
	}
	w.must(w.root.Sweep(opID, ps))
	var back []workspace.Step
	for i, now := range w.read(ps) {
		s := steps[i]
		if now.State != s.From && now.State != s.To && !s.Intermediate(now.State) {
			w.t.Fatalf("%q is %v: neither %v nor %v nor in between", s.Path, now.State, s.From, s.To)
		}
		back = append(back, workspace.Step{Path: s.Path, From: now.State, To: s.From, Sig: now.Sig})
	}
	w.must(w.apply(w.root, back))
}

// TestFaultWhileGoingBack breaks the way back as well, and goes back again.
func TestFaultWhileGoingBack(t *testing.T) {
	t.Parallel()
	from := tree{"a": "644:old", "d/": "755", "d/f": "644:f", "x": "600:x", "gone": "644:g"}
	to := tree{"a": "644:new", "d": "644:file", "x/": "555", "x/y": "400:y"}
	w := newFastWorld(t, from)
	steps := w.stepsTo(to)
	for n := 1; w.breakAt(n, stop, false, steps); n += 5 {
		for m := 1; ; m++ {
			if !w.breakBack(m, steps) {
				break
			}
		}
		w.goBack(steps)
		w.same(from)
	}
}

// breakBack is goBack that ends at the n-th call.
func (w *world) breakBack(n int, steps []workspace.Step) (broken bool) {
	w.t.Helper()
	calls := 0
	r := w.faulty(func(string, store.Path) error {
		if calls++; calls == n {
			panic(stopped{})
		}
		return nil
	})
	healthy := w.root
	w.root = r
	defer func() {
		w.root = healthy
		if e := recover(); e != nil {
			if _, ok := e.(stopped); !ok {
				panic(e)
			}
			broken = true
		}
		r.Close()
	}()
	w.goBack(steps)
	return false
}

// TestFaultsAreTold: each failing call makes Stage or Apply fail, but for those that only
// look for something better to do.
func TestFaultsAreTold(t *testing.T) {
	for _, op := range []string{"lstat", "open", "create", "write", "chmod", "fsync", "rename", "exchange", "unlink", "rmdir", "mkdir", "symlink"} {
		if op == "exchange" && !workspace.CanSwap {
			continue
		}
		t.Run(op, func(t *testing.T) {
			from := tree{"f": "644:old", "l": "->old", "gone": "644:g", "d/": "755"}
			to := tree{"f": "600:new", "l": "->new", "e/": "700", "e/f": "644:f"}
			w := newFastWorld(t, from)
			steps := w.stepsTo(to)
			called := false
			r := w.faulty(func(o string, _ store.Path) error {
				if o != op {
					return nil
				}
				called = true
				return fs.ErrPermission
			})
			err := w.apply(r, steps)
			if !called || !errors.Is(err, fs.ErrPermission) {
				t.Fatalf("called %v, got %v", called, err)
			}
			w.goBack(steps)
			w.same(from)
		})
	}
}

// TestSyncOfManyIsTold: a failing sync of the whole file system is an error.
func TestSyncOfManyIsTold(t *testing.T) {
	from, to := tree{}, tree{}
	for i := range 20 {
		to[fmt.Sprintf("f%d", i)] = "644:x"
	}
	w := newFastWorld(t, from)
	steps := w.stepsTo(to)
	syncs := 0
	for n := 1; n <= 2; n++ {
		syncs = 0
		r := w.faulty(func(op string, _ store.Path) error {
			if op == "sync" || op == "fsync" {
				if syncs++; syncs == n {
					return errBroken
				}
			}
			return nil
		})
		if err := w.apply(r, steps); !errors.Is(err, errBroken) {
			t.Fatalf("sync %d: %v", n, err)
		}
		w.goBack(steps)
		w.same(from)
	}
}
