package rewind_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// rig is a workspace with a store for benchmarks.
type rig struct {
	b        *testing.B
	dir      string
	capture  *capture.Capturer
	recorder *agent.Recorder
	engine   *rewind.Engine
	id       store.SessionID
}

func newRig(b *testing.B) *rig {
	b.Helper()
	r := &rig{b: b, dir: b.TempDir()}
	root, err := workspace.Open(r.dir, workspace.Options{})
	r.must(err)
	s, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), store.Options{Create: &store.Workspace{Root: root.Path()}})
	r.must(err)
	r.capture = &capture.Capturer{Store: s, Root: root}
	r.recorder, r.engine = agent.NewRecorder(r.capture), rewind.New(r.capture, rewind.Options{})
	ses, err := r.recorder.Session(b.Context(), "bench", "one")
	r.must(err)
	r.id = ses.ID
	b.Cleanup(func() { r.must(s.Close()); r.must(root.Close()) })
	return r
}

func (r *rig) must(err error) {
	r.b.Helper()
	if err != nil {
		r.b.Fatal(err)
	}
}

func (r *rig) write(i, generation int) {
	name := filepath.Join(r.dir, fmt.Sprintf("d%02d/f%04d", i%40, i))
	r.must(os.MkdirAll(filepath.Dir(name), 0o755))
	r.must(os.WriteFile(name, []byte(strings.Repeat(fmt.Sprintf("line %d of file %d\n", generation, i), 500)), 0o644))
}

func (r *rig) paths(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("d%02d/f%04d", i%40, i))
	}
	return all
}

func (r *rig) do(q rewind.Request) {
	r.b.Helper()
	q.Session = r.id
	p, err := r.engine.Plan(context.Background(), q)
	r.must(err)
	_, err = r.engine.Apply(context.Background(), p)
	r.must(err)
}

// BenchmarkRestore1000 rewinds and undoes a turn that changed 1,000 files of 10 KB: durable, and
// undoable, since what is replaced is in the store first.
func BenchmarkRestore1000(b *testing.B) {
	r := newRig(b)
	for i := range 1000 {
		r.write(i, 0)
	}
	_, err := r.recorder.BeginTurn(b.Context(), r.id, "", "", nil)
	r.must(err)
	e := agent.Edit{Call: "c", Paths: r.paths(1000)}
	_, err = r.recorder.BeforeEdit(b.Context(), r.id, e)
	r.must(err)
	for i := range 1000 {
		r.write(i, 1)
	}
	_, err = r.recorder.AfterEdit(b.Context(), r.id, e)
	r.must(err)
	r.must(r.recorder.EndTurn(b.Context(), r.id, store.TurnDone))
	b.ReportAllocs()
	back := true
	for b.Loop() {
		if back {
			r.do(rewind.Request{Kind: store.OpRewind, Turn: 0, Scope: store.Both})
		} else {
			r.do(rewind.Request{Kind: store.OpUndo})
		}
		back = !back
	}
}

// BenchmarkPlan is a whole plan over 5,000 turns of 3 files, which are read from disk.
func BenchmarkPlan(b *testing.B) {
	r := newRig(b)
	const files = 240
	for i := range files {
		r.write(i, 0)
	}
	first, err := r.capture.Read(b.Context(), paths(r.paths(files)))
	r.must(err)
	next := 0
	for done := 0; done < 5000; {
		r.must(r.capture.Store.Update(b.Context(), func(tx *store.WriteTx) error {
			for range 250 {
				t, err := tx.BeginTurn(r.id, "", "")
				if err != nil {
					return err
				}
				for range 3 {
					one := first[next%files]
					next++
					if err := capture.Bind(tx, one); err != nil {
						return err
					}
					c := store.Change{Path: one.Path, Source: store.SourceTool, Origin: store.Agent, Before: one.State, After: one.State}
					if next/files%2 == 0 {
						c.Before.Mode = 0o600
					} else {
						c.After.Mode = 0o600
					}
					if err := tx.AppendChange(t.Node, c); err != nil {
						return err
					}
				}
				if err := tx.EndTurn(r.id, store.TurnDone); err != nil {
					return err
				}
				done++
			}
			return nil
		}))
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.engine.Plan(context.Background(), rewind.Request{Kind: store.OpRewind, Session: r.id, Turn: 0, Scope: store.Both, Force: true})
		r.must(err)
	}
}

func paths(names []string) []store.Path {
	var all []store.Path
	for _, n := range names {
		all = append(all, store.Path(n))
	}
	return all
}

// conversation makes a rig with one turn for every 100 of n messages.
func conversation(b *testing.B, n int) *rig {
	r := newRig(b)
	for range n / 100 {
		var msgs []json.RawMessage
		for i := range 100 {
			msgs = append(msgs, json.RawMessage(fmt.Sprintf(`{"role":"user","content":"message %d"}`, i)))
		}
		_, err := r.recorder.BeginTurn(b.Context(), r.id, "", "", msgs)
		r.must(err)
	}
	r.must(r.recorder.EndTurn(b.Context(), r.id, store.TurnDone))
	return r
}

// BenchmarkMoveHead rewinds a conversation and undoes it.
func BenchmarkMoveHead(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			r := conversation(b, n)
			b.ReportAllocs()
			back := true
			for b.Loop() {
				if back {
					r.do(rewind.Request{Kind: store.OpRewind, Turn: 3, Scope: store.Conversation})
				} else {
					r.do(rewind.Request{Kind: store.OpUndo})
				}
				back = !back
			}
		})
	}
}

// BenchmarkFork forks a conversation in its middle; the bytes that a fork adds are reported.
func BenchmarkFork(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			r := conversation(b, n)
			b.ReportAllocs()
			for b.Loop() {
				r.do(rewind.Request{Kind: store.OpFork, Turn: n / 200})
			}
		})
	}
}
