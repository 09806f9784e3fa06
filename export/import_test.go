package export_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// project is the workspace that the samples are about.
const project = "/home/user/project"

func samples(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "ckpt", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func importInto(w *worldtest.World, path string) export.Imported {
	w.T.Helper()
	r, err := export.Import(w.T.Context(), w.Capture.Store, capture.Disk{Capture: w.Capture}, path, export.ImportOptions{FromRoot: project})
	w.Must(err)
	return r
}

// wanted is a file as expected.json has it.
type wanted struct {
	SHA256 string `json:"sha256"`
	Mode   string `json:"mode"`
}

// TestImportOfEachVersion rewinds an import of each version of the form to each of its turns: every path
// that is recorded then or later is as it was.
func TestImportOfEachVersion(t *testing.T) {
	for _, version := range []string{"basic-v1", "basic-v2", "basic-v3"} {
		t.Run(version, func(t *testing.T) {
			w := worldtest.New(t)
			r := importInto(w, filepath.Join(samples(t, version), "session.ckpt"))
			if r.Turns != 5 || len(r.Warnings) > 0 || r.Files != 10 {
				t.Fatalf("%+v", r)
			}
			var expected struct {
				Turns []map[string]wanted `json:"turns"`
			}
			b, err := os.ReadFile(filepath.Join(samples(t, version), "expected.json"))
			w.Must(err)
			w.Must(json.Unmarshal(b, &expected))
			w.ID = r.Session.ID
			for k := range r.Turns {
				paths := recordedFrom(w, k)
				w.Apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: store.Code})
				for _, p := range paths {
					want, ok := expected.Turns[k][p]
					got, there := fileAt(t, w.Abs(p), version != "basic-v1")
					if version == "basic-v1" {
						want.Mode = "" // it keeps none
					}
					if ok != there || got != want {
						t.Errorf("turn %d: %s is %+v (%v), want %+v (%v)", k, p, got, there, want, ok)
					}
				}
				w.Apply(rewind.Request{Kind: store.OpUndo})
			}
		})
	}
}

// recordedFrom are the paths with a row in turn k or later.
func recordedFrom(w *worldtest.World, k int) (all []string) {
	w.Must(w.Capture.Store.View(w.T.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(w.ID)
		if err != nil {
			return err
		}
		rows, err := tx.ChangesBetween(s.Head, k, s.Turns-1)
		for _, r := range rows {
			if r.Source == store.SourceImport {
				all = append(all, string(r.Path))
			}
		}
		return err
	}))
	if len(all) == 0 {
		w.T.Fatalf("nothing is recorded from turn %d on", k)
	}
	return all
}

func fileAt(t testing.TB, name string, mode bool) (f wanted, ok bool) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		return f, false
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	f.SHA256 = hex.EncodeToString(sum[:])
	if mode {
		f.Mode = fmt.Sprintf("0o%o", info.Mode().Perm())
	}
	return f, true
}

// TestImportOfASession reads a whole session and its fork, in either order: the fork is linked, messages
// are the bytes of the files, each turn can be gone back to from the end.
func TestImportOfASession(t *testing.T) {
	const parent, child = "20261201-002214.780652265-mock", "20261201-002217.201075367-mock"
	for _, order := range [][]string{{parent, child}, {child, parent}} {
		w := worldtest.New(t)
		dir := samples(t, "session-v2")
		err := filepath.WalkDir(filepath.Join(dir, "project"), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(name)
			rel, _ := filepath.Rel(filepath.Join(dir, "project"), name)
			w.Put(rel, string(b), 0o644)
			return err
		})
		w.Must(err)
		end := worldtest.Files(t, w.Dir)
		got := map[string]export.Imported{}
		for _, id := range order {
			got[id] = importInto(w, filepath.Join(dir, "sessions", id+".jsonl"))
			if len(got[id].Warnings) > 0 {
				t.Errorf("%s: %+v", id, got[id].Warnings)
			}
			messagesAre(w, got[id].Session, filepath.Join(dir, "sessions", id))
		}
		w.Must(w.Capture.Store.View(t.Context(), func(tx *store.Tx) error {
			fork, err := tx.Session(got[child].Session.ID)
			if fork.Parent != got[parent].Session.ID || fork.ForkTurn != 2 || fork.Name != "other way" {
				t.Errorf("the fork: %+v", fork)
			}
			return err
		}))
		w.ID = got[parent].Session.ID
		for k := range got[parent].Turns {
			p, err := w.Engine.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: w.ID, Turn: k, Scope: store.Code})
			if err != nil {
				t.Fatalf("turn %d: %v: %+v", k, err, p.Result().Conflicts)
			}
			_, err = w.Engine.Apply(t.Context(), p)
			w.Must(err)
			w.Apply(rewind.Request{Kind: store.OpUndo})
		}
		if d := cmp.Diff(end, worldtest.Files(t, w.Dir)); d != "" {
			t.Errorf("after all undos (-want +got):\n%s", d)
		}
		again := importInto(w, filepath.Join(dir, "sessions", parent+".jsonl"))
		if !again.Before || again.Session.ID != got[parent].Session.ID {
			t.Errorf("imported again: %+v", again)
		}
	}
}

// messagesAre compares a conversation with the log of events of a session, of which the transcript is
// only a beginning, and with the transcript where there is none.
func messagesAre(w *worldtest.World, s store.Session, stem string) {
	w.T.Helper()
	var want, got []string
	b, err := os.ReadFile(stem + ".events.jsonl")
	if err != nil {
		b, err = os.ReadFile(stem + ".jsonl")
		w.Must(err)
		want = strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	for line := range strings.Lines(string(b)) {
		var e struct {
			Messages []json.RawMessage `json:"messages"`
		}
		w.Must(json.Unmarshal([]byte(line), &e))
		for _, m := range e.Messages {
			want = append(want, string(m))
		}
	}
	w.Must(w.Capture.Store.View(w.T.Context(), func(tx *store.Tx) error {
		for m, err := range tx.Messages(s.Head, 0, -1) {
			if err != nil {
				return err
			}
			got = append(got, string(m.JSON))
		}
		return nil
	}))
	if d := cmp.Diff(want, got); d != "" || len(got) < 5 {
		w.T.Errorf("messages of %s (-want +got):\n%s", stem, d)
	}
}
