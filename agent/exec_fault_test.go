package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
)

// TestFaultInExec fails the n-th call of the scan before a command, or after it, for n = 1, 2, 3 …
// until none is left. The same event again succeeds, and then the command's changes are recorded
// as if nothing had failed: no part of the index got ahead of what is recorded.
func TestFaultInExec(t *testing.T) {
	want := []string{
		"0 turn shell agent a original→changed", "0 turn shell agent d absent→dir", "0 turn shell agent d/new absent→made",
		"0 turn shell agent gone lost→absent",
	}
	e := agent.Exec{Call: "c", Tool: "bash"}
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			b := newBench(t)
			b.write("a", "original")
			b.write("gone", "lost")
			b.begin()
			event := func(r *agent.Recorder, after bool) error {
				do := r.BeforeExec
				if after {
					do = r.AfterExec
				}
				_, err := do(t.Context(), b.id, e)
				return err
			}
			if after {
				b.must(event(b.recorder, false))
				b.command()
			}
			r, met, done := b.faulty(n)
			err := event(r, after)
			reached := met()
			done()
			if err != nil && !errors.Is(err, errFault) {
				t.Fatalf("n=%d after=%v: %v", n, after, err)
			}
			if err := event(b.recorder, after); err != nil {
				t.Fatalf("n=%d after=%v: again: %v", n, after, err)
			}
			if !after {
				b.command()
				b.must(event(b.recorder, true))
			}
			b.end()
			rows, gaps := b.rows()
			slices.Sort(rows)
			// A fault in reading a file or a folder is a gap for it, and what the event after it finds
			// there has no before-state.
			if len(gaps) == 0 {
				if d := cmp.Diff(want, rows); d != "" {
					t.Fatalf("n=%d after=%v: rows (-want +got):\n%s", n, after, d)
				}
			}
			if !reached {
				break
			}
		}
	}
}

// command changes, makes and removes.
func (b *bench) command() {
	b.t.Helper()
	b.write("a", "changed")
	b.write("d/new", "made")
	b.must(os.Remove(filepath.Join(b.dir, "gone")))
}
