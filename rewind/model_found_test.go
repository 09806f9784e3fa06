package rewind_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/rewind"
	"reasonix/store"
)

// Runs that the model found, reduced by hand.

// TestFoundWayBackOverWhatWasInTheWay switches by force over files that nobody recorded. A
// switch has no undo: switching back is the way back, and brings them along.
func TestFoundWayBackOverWhatWasInTheWay(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	other := w.newSession()
	w.must(w.recorder.Append(t.Context(), w.ids[0], []jsonRaw{jsonRaw(`{"role":"user"}`)})) // is current
	w.edits(0, "d", "d755")
	w.do(rewind.Request{Kind: store.OpSwitch, Session: w.ids[other]})
	w.edits(other, "d", "->elsewhere")
	w.do(rewind.Request{Kind: store.OpSwitch, Session: w.ids[0]})
	w.must(os.MkdirAll(filepath.Join(w.dir, "d/mine"), 0o700))
	w.put("d/mine/notes", "600:precious")
	before := manifest(t, w.dir)
	w.do(rewind.Request{Kind: store.OpSwitch, Session: w.ids[other], Force: true})
	w.has("d", "->elsewhere")
	w.do(rewind.Request{Kind: store.OpSwitch, Session: w.ids[0]})
	if d := cmp.Diff(before, manifest(t, w.dir)); d != "" {
		t.Error(d)
	}
}

// TestFoundLookAtFoldersThatAreMade has a move make a folder again that the line knew and
// somebody removed: the history says so, as about any path that is looked at.
func TestFoundLookAtFoldersThatAreMade(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "d", "d755")
	w.edits(0, "d/f", "644:1")
	w.edits(0, "d/f", "")
	w.must(os.Remove(filepath.Join(w.dir, "d")))
	w.do(rewind.Request{Turn: 2, Scope: store.Code})
	w.has("d/f", "644:1")
	w.must(w.capture.Store.View(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(w.ids[0])
		w.must(err)
		rows, err := tx.History(s.Head, "d") // newest first
		w.must(err)
		for i := range len(rows) - 1 {
			if rows[i].Before != rows[i+1].After {
				t.Errorf("a row begins with %v where the one before ends with %v", rows[i].Before, rows[i+1].After)
			}
		}
		if len(rows) != 3 || rows[1].Origin != store.External {
			t.Errorf("rows of d: %+v", rows)
		}
		return nil
	}))
}
