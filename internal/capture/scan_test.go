package capture_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// TestPartsOfTheIndexBecomeOne: the parts of a first scan are made one, and so are those of later
// ones when they have piled up; nothing is read again for that.
func TestPartsOfTheIndexBecomeOne(t *testing.T) {
	dir := t.TempDir()
	for i := range 900 {
		name := filepath.Join(dir, fmt.Sprintf("a folder with a long name %d/f%d", i%9, i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{Create: &store.Workspace{Root: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := &capture.Capturer{Store: s, Root: root}
	scan := func() (found capture.Scanned, parts [][]byte) {
		t.Helper()
		found, err := c.Scan(t.Context(), "", false)
		if err != nil || !found.Complete || found.Files != 900 {
			t.Fatalf("%+v, %v", found, err)
		}
		err = s.View(t.Context(), func(tx *store.Tx) error {
			x, err := tx.ScanIndex()
			parts = x.Parts
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found, parts
	}
	_, parts := scan()
	if len(parts) != 1 || !workspace.IsWhole(parts[0]) {
		t.Fatalf("%d parts after the first scan", len(parts))
	}
	most := 0
	for round := range 40 {
		for i := range 30 {
			name := filepath.Join(dir, fmt.Sprintf("a folder with a long name %d/f%d", i%9, i))
			if err := os.WriteFile(name, []byte(fmt.Sprint("round ", round, i)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		found, parts := scan()
		if len(found.Changed) != 30 {
			t.Fatalf("round %d: %d changed", round, len(found.Changed))
		}
		most = max(most, len(parts))
	}
	if most < 3 || most > 30 {
		t.Errorf("up to %d parts in 40 rounds", most)
	}
}
