package rewind_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// A folder that goes between two looks of a plan, as it does when another operation is at work,
// makes the plan out of date; it is no error of the system.
func TestFolderGoesWhilePlanning(t *testing.T) {
	w := worldtest.New(t)
	w.Turn("zero", nil, func() { w.Write("d/a", "a\n", 0o644) })
	gone := false
	root, err := workspace.Open(w.Dir, workspace.Options{Fault: func(op string, p store.Path) error {
		if op == "readdir" && p == "d" {
			gone = true
			return os.RemoveAll(filepath.Join(w.Dir, "d"))
		}
		return nil
	}})
	w.Must(err)
	defer root.Close()
	engine := rewind.New(&capture.Capturer{Store: w.Capture.Store, Root: root}, rewind.Options{})
	_, err = engine.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: w.ID, Turn: 0, Scope: store.Code})
	if !gone || !errors.Is(err, rewind.ErrStale) {
		t.Errorf("listed %v, error %v", gone, err)
	}
}
