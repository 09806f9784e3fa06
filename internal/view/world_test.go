package view_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"reasonix/internal/view"
	"reasonix/internal/worldtest"
)

// world is a workspace that is looked at.
type world struct {
	*worldtest.World
	view   *view.Viewer
	starts []map[string]worldtest.Entry // the folder at the start of each turn
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := worldtest.New(t)
	return &world{World: w, view: view.New(w.Capture)}
}

func (w *world) turn(prompt string, do func()) {
	w.T.Helper()
	w.starts = append(w.starts, worldtest.Files(w.T, w.Dir))
	w.Turn(prompt, []json.RawMessage{json.RawMessage(`{"role":"user","content":"x"}`)}, do)
}

// lay makes files in a new folder.
func lay(t testing.TB, all map[string]worldtest.Entry) string {
	t.Helper()
	dir := t.TempDir()
	for name, e := range all {
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil && e.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(e.Content, name)
		} else if err == nil {
			err = os.WriteFile(name, []byte(e.Content), 0o600)
			if err == nil {
				err = os.Chmod(name, e.Mode)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
