package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

var errFault = errors.New("fault")

// faulty opens a bench's store and root anew; the n-th call on either fails.
func (b *bench) faulty(n int) (*agent.Recorder, func() bool, func()) {
	b.t.Helper()
	calls, armed := 0, false
	fault := func() error {
		if !armed {
			return nil
		}
		if calls++; calls == n {
			return errFault
		}
		return nil
	}
	root, err := workspace.Open(b.dir, workspace.Options{Fault: func(string, store.Path) error { return fault() }})
	b.must(err)
	s, err := store.Open(b.t.Context(), b.capture.Store.Path(), store.Options{Fault: func(string) error { return fault() }})
	b.must(err)
	armed = true
	return agent.NewRecorder(&capture.Capturer{Store: s, Root: root}), func() bool { return calls >= n }, func() {
		armed = false
		b.must(s.Close())
		b.must(root.Close())
	}
}

// TestFaultInCapture fails the n-th call in each kind of event, for n = 1, 2, 3 … until none is
// left: nil means recorded (I1), an error means that nothing of it is there, except where the
// commit itself was reported as failed. The same event again succeeds.
func TestFaultInCapture(t *testing.T) {
	msg := []json.RawMessage{json.RawMessage(`{"role":"user","content":"x"}`)}
	edit := agent.Edit{Call: "c", Tool: "edit", Paths: []string{"a", "new/b"}}
	events := map[string]struct {
		setup func(b *bench)
		event func(ctx context.Context, r *agent.Recorder, id store.SessionID) error
	}{
		"begin": {func(*bench) {}, func(ctx context.Context, r *agent.Recorder, id store.SessionID) error {
			_, err := r.BeginTurn(ctx, id, "key", "prompt", msg)
			return err
		}},
		"before": {func(b *bench) { b.begin() }, func(ctx context.Context, r *agent.Recorder, id store.SessionID) error {
			_, err := r.BeforeEdit(ctx, id, edit)
			return err
		}},
		"after": {func(b *bench) {
			b.begin()
			_, err := b.recorder.BeforeEdit(b.t.Context(), b.id, edit)
			b.must(err)
			b.write("a", "changed")
			b.write("new/b", "made")
		}, func(ctx context.Context, r *agent.Recorder, id store.SessionID) error {
			_, err := r.AfterEdit(ctx, id, edit)
			return err
		}},
		"end": {func(b *bench) {
			b.begin()
			_, err := b.recorder.BeforeEdit(b.t.Context(), b.id, edit)
			b.must(err)
			b.write("a", "changed")
		}, func(ctx context.Context, r *agent.Recorder, id store.SessionID) error {
			return r.EndTurn(ctx, id, store.TurnDone)
		}},
		"append": {func(*bench) {}, func(ctx context.Context, r *agent.Recorder, id store.SessionID) error {
			return r.Append(ctx, id, msg)
		}},
	}
	for name, ev := range events {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				b := newBench(t)
				b.write("a", "original")
				ev.setup(b)
				before, _ := b.rows()
				r, met, done := b.faulty(n)
				err := ev.event(t.Context(), r, b.id)
				reached := met()
				done()
				rows, gaps := b.rows()
				switch {
				case err != nil && !errors.Is(err, errFault):
					t.Fatalf("n=%d: %v", n, err)
				case err == nil && name == "before" && len(gaps) == 0 && len(rows) != 3:
					t.Fatalf("n=%d: success, and the rows are %v", n, rows)
				case err != nil && len(rows) != len(before) && name == "before":
					// Only a commit that was reported as failed may have taken effect, and then whole.
					if len(rows) != 3 {
						t.Fatalf("n=%d: an error, and half of it is there: %v", n, rows)
					}
				}
				if err := ev.event(t.Context(), b.recorder, b.id); err != nil {
					t.Fatalf("n=%d: again: %v", n, err)
				}
				if !reached {
					return
				}
			}
		})
	}
}

// TestDeadlineLeavesAGap: what cannot be read in time is known not to be known, and the state
// of a late after-event is taken when the turn closes.
func TestDeadlineLeavesAGap(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // less than what is kept for committing
	defer cancel()
	c, err := b.recorder.BeforeEdit(ctx, b.id, agent.Edit{Call: "1", Paths: []string{"a"}})
	b.must(err)
	if len(c.Gaps) != 1 || c.Gaps[0].Reason != store.GapDeadline {
		t.Errorf("gaps %v", c.Gaps)
	}
	b.write("a", "1")
	b.after("1")
	b.before("2", "b")
	b.write("b", "2")
	_, err = b.recorder.AfterEdit(ctx, b.id, agent.Edit{Call: "2"})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	b.end()
	b.want([]string{"0 turn tool agent a uncaptured→1", "0 turn tool agent b absent→2"}, []string{"0 capture_deadline a"})
}

// TestFullStore: a capture that finds no room fails before the tool writes, loses nothing, and
// works again when there is room.
func TestFullStore(t *testing.T) {
	b := newBench(t)
	b.write("small", "0")
	b.begin()
	b.before("1", "small")
	big := make([]byte, 600<<10)
	for i := range big {
		big[i] = byte(i * i >> 3)
	}
	for i := range 4 {
		b.must(os.WriteFile(filepath.Join(b.dir, fmt.Sprint("big", i)), append(text(500<<10), big...), 0o644))
	}
	s, err := store.Open(t.Context(), b.capture.Store.Path(), store.Options{MaxPages: 200})
	b.must(err)
	full := agent.NewRecorder(&capture.Capturer{Store: s, Root: b.capture.Root})
	e := agent.Edit{Call: "2", Paths: []string{"big0", "big1", "big2", "big3"}}
	if _, err := full.BeforeEdit(t.Context(), b.id, e); err == nil {
		t.Fatal("four files of 1 MB fit into 200 pages")
	}
	b.must(s.Close())
	b.want([]string{"0 turn tool agent small 0→0"}, nil)
	_, err = b.recorder.BeforeEdit(t.Context(), b.id, e)
	b.must(err)
	b.end()
}
