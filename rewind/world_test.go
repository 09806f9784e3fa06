package rewind_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"reasonix/agent"
	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/rewind"
	"reasonix/store"
)

type jsonRaw = json.RawMessage

// fastDir is a folder in memory where the system has such a place: these tests sync thousands
// of times, and what they are about is the order of things and not the disk.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rewind-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// at opens the world anew under another clock.
func (w *world) at(now func() time.Time) {
	w.t.Helper()
	w.must(w.capture.Store.Close())
	s, err := store.Open(w.t.Context(), w.file, store.Options{Now: now})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: w.capture.Root}
	w.recorder, w.engine = agent.NewRecorder(w.capture), rewind.New(w.capture, rewind.Options{})
}

// copy is another world in the same state; the one that is copied must be closed.
func (w *world) copy() *world {
	w.t.Helper()
	c := *w
	c.dir, c.file = filepath.Join(fastDir(w.t), "w"), filepath.Join(fastDir(w.t), "store.db")
	w.must(os.CopyFS(c.dir, os.DirFS(w.dir)))
	err := filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error { // CopyFS keeps no modes
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.dir, name)
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(c.dir, rel), info.Mode().Perm())
	})
	w.must(err)
	b, err := os.ReadFile(w.file)
	w.must(err)
	w.must(os.WriteFile(c.file, b, 0o600))
	c.open()
	return &c
}

// damage flips a byte of a content in the store, behind its back.
func (w *world) damage(content string) {
	w.t.Helper()
	w.must(w.capture.Store.Close())
	plain, err := sqlx.Open("sqlite", "file:"+w.file)
	w.must(err)
	h := blob.Sum([]byte(content))
	_, err = plain.Exec(`UPDATE blob SET encoding = 0, data = ? WHERE hash = ?`, []byte("x"+content[1:]), h[:])
	w.must(err)
	w.must(plain.Close())
	s, err := store.Open(w.t.Context(), filepath.Clean(w.file), store.Options{Now: func() time.Time { w.clock = w.clock.Add(time.Minute); return w.clock }})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: w.capture.Root}
	w.recorder, w.engine = agent.NewRecorder(w.capture), rewind.New(w.capture, rewind.Options{})
}
