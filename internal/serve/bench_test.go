package serve

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"reasonix/internal/worldtest"
	"reasonix/store"
)

// manyTurns plays n turns that change three of 300 paths each.
func manyTurns(b *testing.B, w *worldtest.World, n int) {
	b.Helper()
	state, next := map[store.Path]store.State{}, 0
	for done := 0; done < n; {
		w.Must(w.Capture.Store.Update(b.Context(), func(tx *store.WriteTx) error {
			for range min(250, n-done) {
				t, err := tx.BeginTurn(w.ID, "", fmt.Sprintf("please do number %d of the things that I want", done))
				if err != nil {
					return err
				}
				for range 3 {
					next++
					p := store.Path(fmt.Sprintf("dir/file%04d.go", next%300))
					before, ok := state[p]
					if !ok {
						before = store.AbsentState
					}
					state[p] = store.State{Kind: store.Dir, Mode: uint32(next % 0o777)}
					c := store.Change{Path: p, Source: store.SourceTool, Origin: store.Agent, Before: before, After: state[p]}
					if err := tx.AppendChange(t.Node, c); err != nil {
						return err
					}
				}
				if err := tx.EndTurn(w.ID, store.TurnDone); err != nil {
					return err
				}
				done++
			}
			return nil
		}))
	}
}

// BenchmarkCheckpoints answers one page of 10,000 turns: the newest, one in the middle, and what a
// person who scrolls gets; and searches for a text that is rare, common, or nowhere.
func BenchmarkCheckpoints(b *testing.B) {
	w := worldtest.New(b)
	manyTurns(b, w, 10_000)
	s := New(Options{Capture: w.Capture, Engine: w.Engine})
	for _, c := range []struct{ name, path string }{
		{"newest200", "/checkpoints"},
		{"newest50", "/checkpoints?limit=50"},
		{"middle200", "/checkpoints?before=5000"},
		{"oldest200", "/checkpoints?before=200"},
		{"common", "/checkpoints?q=number&limit=50"},
		{"rare", "/checkpoints?q=number+7777&limit=50"},
		{"nowhere", "/checkpoints?q=nowhere"},
		{"one", "/checkpoints/5000"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rec := httptest.NewRecorder()
				s.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost"+c.path, nil))
				if rec.Code != 200 {
					b.Fatal(rec.Code, rec.Body)
				}
			}
		})
	}
}
