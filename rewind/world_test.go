package rewind_test

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"reasonix/agent"
	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/rewind"
	"reasonix/store"
)

type jsonRaw = json.RawMessage

// at opens the world anew under another clock.
func (w *world) at(now func() time.Time) {
	w.t.Helper()
	w.must(w.capture.Store.Close())
	s, err := store.Open(w.t.Context(), w.file, store.Options{Now: now})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: w.capture.Root}
	w.recorder, w.engine = agent.NewRecorder(w.capture), rewind.New(w.capture, rewind.Options{})
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
