package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// TestFaultKindsBeforeAnEdit gives the n-th call of the announcement of an edit each error that a
// system has for a broken disk, a full one and a missing right, for n = 1, 2, 3 … until none is
// left. When it returns nil, every path has a row with what was there, or a gap (I1).
func TestFaultKindsBeforeAnEdit(t *testing.T) {
	edit := agent.Edit{Call: "c", Tool: "edit", Paths: []string{"a", "d/b", "new/c"}}
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, syscall.EACCES} {
		t.Run(fault.Error(), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				b := newBench(t)
				b.write("a", "original")
				b.write("d/b", "deep")
				b.begin()
				calls := 0
				call := func() error {
					if calls++; calls == n {
						return fault
					}
					return nil
				}
				root, err := workspace.Open(b.dir, workspace.Options{Fault: func(string, store.Path) error { return call() }})
				b.must(err)
				s, err := store.Open(t.Context(), b.capture.Store.Path(), store.Options{Fault: func(string) error { return call() }})
				b.must(err)
				calls = 0
				_, err = agent.NewRecorder(&capture.Capturer{Store: s, Root: root}).BeforeEdit(t.Context(), b.id, edit)
				reached := calls >= n
				b.must(s.Close())
				b.must(root.Close())
				rows, gaps := b.rows()
				if err != nil && !errors.Is(err, fault) {
					t.Fatalf("n=%d: %v", n, err)
				}
				if err == nil {
					has := func(p, state string) bool {
						return strings.Contains(fmt.Sprint(rows), fmt.Sprintf(" %s %s→%s", p, state, state)) || strings.Contains(fmt.Sprint(gaps), " "+p)
					}
					if !has("a", "original") || !has("d/b", "deep") || !has("new/c", "absent") {
						t.Fatalf("n=%d: success, rows %v, gaps %v", n, rows, gaps)
					}
				}
				_, err = b.recorder.BeforeEdit(t.Context(), b.id, edit)
				b.must(err)
				b.end()
				if !reached {
					if len(gaps) > 0 {
						t.Fatalf("without a fault there are gaps: %v", gaps)
					}
					break
				}
			}
		})
	}
}

// TestFaultFullStoreAtEveryPage gives the store no page more than it has, then one more, and so on
// until an announced edit finds room: before that it fails, and nothing of it is there.
func TestFaultFullStoreAtEveryPage(t *testing.T) {
	b := newBench(t)
	big := make([]byte, 60<<10)
	for i := range big {
		big[i] = byte(i * i >> 5)
	}
	b.write("a", string(big))
	b.begin()
	b.before("warm", "small")
	rows, _ := b.rows()
	e := agent.Edit{Call: "big", Tool: "edit", Paths: []string{"a", "new/b"}}
	for pages, refused := int64(1), 0; ; pages++ {
		s, err := store.Open(t.Context(), b.capture.Store.Path(), store.Options{MaxPages: pages})
		b.must(err)
		_, err = agent.NewRecorder(&capture.Capturer{Store: s, Root: b.capture.Root}).BeforeEdit(t.Context(), b.id, e)
		b.must(s.Close())
		now, _ := b.rows()
		if err == nil {
			if len(now) != len(rows)+3 || refused == 0 {
				t.Errorf("after %d refusals: %d rows, and before %d", refused, len(now), len(rows))
			}
			break
		}
		if refused++; len(now) != len(rows) {
			t.Fatalf("%d pages: %v, and half of it is there", pages, err)
		}
	}
	b.end()
}
