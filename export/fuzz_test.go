package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/worldtest"
	"reasonix/store"
)

// FuzzImportTurn reads any bytes as a turn's file of each kind, with any bytes as its raw content.
func FuzzImportTurn(f *testing.F) {
	f.Add([]byte(turnFile(0, "["+good+"]")), []byte("hello"))
	f.Add([]byte(turnFile(0, `[{"path":"a","content":null,"sha256":"`+helloSum+`","blobRef":"`+helloSum+`"}]`)), []byte("hello"))
	f.Add([]byte(`{"schemaVersion":3,"turn":0,"time":"2026-01-01T00:00:00Z","files":[{"path":"/x/../y","content":null,"sha256":"`+helloSum+`"}]}`), []byte("hello"))
	f.Add([]byte("\xff\xfe{\x00}\x00"), []byte{})
	f.Add([]byte(`{"turn":0,"msgIndex":-5,"coverageGaps":[{"reason":"symlink","path":"p"}],"files":[{"path":"a","content":"\ud800","encoding":8}]}`), []byte{0})
	l := newLab(f)
	f.Fuzz(func(t *testing.T, turn, raw []byte) {
		l.read(t, map[string][]byte{
			"s.ckpt/turn-0.json": turn, "s.ckpt/turns/0/meta.json": turn, "s.ckpt/expired/turn-1.json": turn,
			"s.ckpt/turns/0/files/0000.before": raw, "s.ckpt/blobs/2c/f2/" + helloSum: raw,
		})
	})
}

// FuzzImportConversation reads any bytes as a transcript, a log of events and a meta file.
func FuzzImportConversation(f *testing.F) {
	f.Add([]byte("{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"assistant\"}\n"), []byte{}, []byte(`{"id":"s","parent_id":"p","fork_turn":-1}`))
	f.Add([]byte{}, []byte(`{"schema_version":1,"type":"replace","messages":[{"role":"user","content":[{"type":"text"}]}]}`+"\n"+
		`{"schema_version":1,"type":"append","message_index":1,"messages":[{"role":"tool"}]}`+"\n{"), []byte(`{"parent_id":"s"}`))
	f.Add([]byte("[]\n1\nnull\n\r\n{}"), []byte(`{"schema_version":2}`), []byte("{"))
	l := newLab(f)
	f.Fuzz(func(t *testing.T, lines, events, meta []byte) {
		l.read(t, map[string][]byte{"s.jsonl": lines, "s.events.jsonl": events, "s.jsonl.meta": meta})
	})
}

// lab imports many files into one workspace.
type lab struct {
	w      *world
	before map[string]worldtest.Entry
	dir    string
	n      int
}

func newLab(f *testing.F) *lab {
	w := newWorld(f)
	w.Put("good.txt", "mine", 0o644)
	return &lab{w: w, before: worldtest.Files(f, filepath.Dir(w.Dir)), dir: f.TempDir()}
}

// read imports files, and checks what must hold of whatever was made of them.
func (l *lab) read(t *testing.T, files map[string][]byte) {
	l.n++
	dir := filepath.Join(l.dir, fmt.Sprint(l.n))
	worldtest.WriteAll(t, dir, files)
	defer os.RemoveAll(dir)
	from := filepath.Join(dir, fmt.Sprintf("s%d", l.n)) // an id that was not imported yet
	for _, ending := range []string{".jsonl", ".events.jsonl", ".jsonl.meta", ".ckpt"} {
		if err := os.Rename(filepath.Join(dir, "s"+ending), from+ending); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	path := from + ".ckpt"
	if _, ok := files["s.jsonl"]; ok {
		path = from + ".jsonl"
	}
	s := l.w.Capture.Store
	r, err := export.Import(t.Context(), s, capture.Disk{Capture: l.w.Capture}, path, export.ImportOptions{FromRoot: l.w.Capture.Root.Path()})
	if diff := cmp.Diff(l.before, worldtest.Files(t, filepath.Dir(l.w.Dir))); diff != "" {
		t.Fatalf("files were touched: %s", diff)
	}
	if err != nil {
		return // a clear refusal
	}
	err = s.View(t.Context(), func(tx *store.Tx) error {
		got, err := tx.Session(r.Session.ID)
		if err != nil || got.Turns != r.Turns || got.Messages != r.Messages {
			t.Errorf("%+v, %v, imported as %+v", got, err, r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(t.Context(), s, r.Session.ID, export.Options{Dir: filepath.Join(dir, "out")}); err != nil {
		t.Errorf("what was imported cannot be exported: %v", err)
	}
}
