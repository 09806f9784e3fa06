package export_test

import (
	"encoding/json"
	"testing"

	"reasonix/export"
	"reasonix/internal/worldtest"
	"reasonix/store"
)

// world is a workspace whose session is exported.
type world struct{ *worldtest.World }

func newWorld(t testing.TB) *world { return &world{worldtest.New(t)} }

func (w *world) say(role, text string) json.RawMessage {
	b, err := json.Marshal(map[string]string{"role": role, "content": text})
	w.Must(err)
	return b
}

func (w *world) session() (s store.Session) {
	w.T.Helper()
	w.Must(w.Capture.Store.View(w.T.Context(), func(tx *store.Tx) (err error) { s, err = tx.Session(w.ID); return err }))
	return s
}

func (w *world) export(dir string) export.Result {
	w.T.Helper()
	r, err := export.Write(w.T.Context(), w.Capture.Store, w.ID, export.Options{Dir: dir})
	w.Must(err)
	return r
}
