package store_test

import (
	"fmt"
	"testing"
	"time"

	"reasonix/store"
)

// TestCollectionBesideARecorderOfItsProcess records, between two steps of a collection, a content
// that the collection was about to drop, through the same connection.
func TestCollectionBesideARecorderOfItsProcess(t *testing.T) {
	const paths = 1500 // of which one step drops a part
	w := newWood(t, 1)
	update(t, w.s, w.begin)
	text := func(turn, path int) string { return fmt.Sprintf("turn %d path %d", turn, path) }
	play := func(turn int, rows func(tx *store.WriteTx, n store.Node) error) {
		w.now = w.now.Add(time.Hour)
		update(t, w.s, func(tx *store.WriteTx) error {
			began, err := tx.BeginTurn(w.ids[0], "", "p")
			if err != nil {
				return err
			}
			if err := rows(tx, began.Node); err != nil {
				return err
			}
			return tx.EndTurn(w.ids[0], store.TurnDone)
		})
	}
	for turn := range 3 {
		play(turn, func(tx *store.WriteTx, n store.Node) error {
			for p := range paths {
				c := store.Change{
					Path: store.Path(fmt.Sprintf("p%d", p)), Source: store.SourceTool, Origin: store.Agent,
					Before: w.bind(tx, text(turn, p)), After: w.bind(tx, text(turn+1, p)),
				}
				if err := tx.AppendChange(n, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	k := store.Keep{Since: w.now}
	c := w.s.Collector(func(*store.Tx) (store.Keep, error) { return k, nil })
	again, n := store.State{}, 0
	for more := true; more; n++ {
		done, left, err := c.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if done.Contents > 0 && again == (store.State{}) {
			play(3, func(tx *store.WriteTx, n store.Node) error {
				again = w.bind(tx, text(0, paths-1))
				return tx.AppendChange(n, store.Change{
					Path: "copy", Source: store.SourceTool, Origin: store.Agent, Before: store.AbsentState, After: again,
				})
			})
		}
		more = left
	}
	if n < 4 || again == (store.State{}) {
		t.Fatalf("only %d steps", n)
	}
	if err := w.s.Blobs().Verify(t.Context(), again.Blob); err != nil {
		t.Errorf("what was recorded meanwhile: %v", err)
	}
}
