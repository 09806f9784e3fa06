package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/store"
)

var errFault = errors.New("fault")

// TestFaultInCollection fails the n-th call of a collection, for n = 1, 2, 3 … until none is left to
// fail: the store is whole, and what comes next ends where a collection without a fault does.
func TestFaultInCollection(t *testing.T) {
	w := newWood(t, 7)
	for range 60 {
		w.grow()
	}
	k := store.Keep{Since: w.now.Add(-10 * 60e9), Turns: 3}
	wanted := w.wants(k)
	full := w.s
	dir := t.TempDir()
	end := func(n int) (left []string, failed bool) {
		calls, path := 0, filepath.Join(dir, fmt.Sprint(n))
		if err := full.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		faulty, err := store.Open(t.Context(), path, store.Options{Now: full.Now, Fault: func(string) error {
			if calls++; calls == n {
				return errFault
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		c := faulty.Collector(func(*store.Tx) (store.Keep, error) { return k, nil })
		for more := true; more && err == nil; {
			_, more, err = c.Step(t.Context())
		}
		if failed = err != nil; failed && !errors.Is(err, errFault) {
			t.Fatalf("call %d: %v", n, err)
		}
		if problems, verr := faulty.Verify(t.Context(), true, nil); verr != nil || len(problems) > 0 {
			t.Fatalf("after a fault at call %d: %+v, %v", n, problems, verr)
		}
		if err := faulty.Close(); err != nil {
			t.Fatal(err)
		}
		if w.s, err = store.Open(t.Context(), path, store.Options{Now: full.Now}); err != nil {
			t.Fatal(err)
		}
		defer w.s.Close()
		w.collect(k)
		for h, what := range wanted {
			if err := w.s.Blobs().Verify(t.Context(), h); err != nil {
				t.Fatalf("after a fault at call %d: %s: %v", n, what, err)
			}
		}
		for in, err := range w.s.Blobs().All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			state := " kept"
			if in.Expired {
				state = " expired"
			}
			left = append(left, in.Hash.String()+state)
		}
		return left, failed
	}
	t.Cleanup(func() { w.s = full })
	whole, _ := end(0)
	for n := 1; ; n++ {
		left, failed := end(n)
		if d := cmp.Diff(whole, left); d != "" {
			t.Fatalf("after a fault at call %d (-want +got):\n%s", n, d)
		}
		if !failed {
			if n < 5 {
				t.Errorf("only %d calls can fail", n-1)
			}
			return
		}
	}
}
