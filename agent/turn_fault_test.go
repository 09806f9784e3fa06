package agent_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/workspace"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// TestTurnFaults lets the n-th operation of the store fail in a turn that writes, runs a command
// and talks, for one n after the other until none is left to fail. However the turn ends, the
// conversation is consistent, nothing was done that was not recorded, and the next turn goes on.
func TestTurnFaults(t *testing.T) {
	const stride = 5 // coprime to what repeats, so that each kind of call is met
	met := 0
	for n := 1; ; n += stride {
		k, arm := newFaulty(t)
		k.submit("before", calls(write("a", "1\n"), shell("echo 1 > b")), said("ok"))
		start := k.files()
		k.fake.Add(calls(write("a", "2\n"), write("c", "2\n"), shell("echo 2 > b; rm -f a")), said("done"))
		failed := arm(n)
		_, err := k.agent.Submit(t.Context(), "it may fail")
		reached := failed()
		k.fake.Drop()
		if reached && err != nil {
			met++
		}
		k.Must(k.agent.Close())
		k.o.New = false
		k.open() // as after a restart
		k.answered()
		all, err := k.agent.Checkpoints()
		k.Must(err)
		if len(all) == 2 {
			if s := all[1].Status; s == "open" {
				t.Fatalf("operation %d: the turn is open", n)
			}
			_, err = k.agent.Rewind(1, agent.RewindBoth)
			k.Must(err)
		}
		if got := k.files(); !maps.Equal(got, start) {
			t.Fatalf("operation %d: after the rewind\n%v, want\n%v", n, got, start)
		}
		k.submit("after", calls(write("a", "3\n")), said("ok"))
		k.answered()
		k.Must(k.agent.Close())
		if !reached {
			break
		}
	}
	if met < 5 {
		t.Errorf("only %d faults made the turn fail", met)
	}
}

// newFaulty is a talk over a store of its own; arm has the n-th operation from now on fail, and
// gives a function that reports whether it came to that, and disarms.
func newFaulty(t *testing.T) (k *talk, arm func(n int) (failed func() bool)) {
	t.Helper()
	left := 0
	k = &talk{World: &worldtest.World{T: t, Dir: t.TempDir()}, fake: fakellm.New(fakellm.Options{})}
	t.Cleanup(k.fake.Close)
	root, err := workspace.Open(k.Dir, workspace.Options{})
	k.Must(err)
	k.Dir = root.Path()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{
		Create: &store.Workspace{Root: root.Path()},
		Fault: func(point string) error {
			if left--; left == 0 {
				return fmt.Errorf("%s: %w", point, errFault)
			}
			return nil
		},
	})
	k.Must(err)
	t.Cleanup(func() { k.Must(errors.Join(s.Close(), root.Close())) })
	k.Capture = &capture.Capturer{Store: s, Root: root}
	k.Engine = rewind.New(k.Capture, rewind.Options{})
	model, err := llm.New(llm.Options{HTTP: k.fake.Client(), Retries: -1})
	k.Must(err)
	k.o = agent.Options{
		Capture: k.Capture, Engine: k.Engine, Model: model, Policy: agent.Full,
		NewKey: func() string { k.keys++; return fmt.Sprintf("key%d", k.keys) },
	}
	k.open()
	return k, func(n int) func() bool {
		left = n
		return func() bool { was := left; left = 0; return was <= 0 }
	}
}
