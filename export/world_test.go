package export_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// world is a workspace that an agent works in.
type world struct {
	t        testing.TB
	dir      string
	capture  *capture.Capturer
	recorder *agent.Recorder
	engine   *rewind.Engine
	id       store.SessionID
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "ws")}
	w.must(os.Mkdir(w.dir, 0o755))
	root, err := workspace.Open(w.dir, workspace.Options{})
	w.must(err)
	w.dir = root.Path()
	clock := time.UnixMilli(1_800_000_000_123)
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{
		Create: &store.Workspace{Root: root.Path()},
		Now:    func() time.Time { clock = clock.Add(1003 * time.Millisecond); return clock },
		NewID:  func() store.SessionID { return "abcd1234" },
	})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: root}
	w.recorder, w.engine = agent.NewRecorder(w.capture), rewind.New(w.capture, rewind.Options{})
	ses, err := w.recorder.Session(t.Context(), "test", "one")
	w.must(err)
	w.id = ses.ID
	t.Cleanup(func() {
		problems, err := s.Verify(context.Background(), true, nil)
		if err != nil || len(problems) > 0 {
			t.Errorf("verify: %+v, %v", problems, err)
		}
		w.must(s.Close())
		w.must(root.Close())
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) abs(name string) string { return filepath.Join(w.dir, name) }

// put writes a file behind the recorder's back.
func (w *world) put(name, content string, mode fs.FileMode) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.abs(name)), 0o755))
	w.must(os.WriteFile(w.abs(name), []byte(content), mode))
	w.must(os.Chmod(w.abs(name), mode))
}

func (w *world) turn(prompt string, messages []json.RawMessage, do func()) {
	w.t.Helper()
	_, err := w.recorder.BeginTurn(w.t.Context(), w.id, "", prompt, messages)
	w.must(err)
	do()
	w.must(w.recorder.EndTurn(w.t.Context(), w.id, store.TurnDone))
}

// edit is a tool call that announces name and then does it.
func (w *world) edit(name string, do func()) {
	w.t.Helper()
	e := agent.Edit{Tool: "edit", Paths: []string{name}}
	_, err := w.recorder.BeforeEdit(w.t.Context(), w.id, e)
	w.must(err)
	do()
	_, err = w.recorder.AfterEdit(w.t.Context(), w.id, e)
	w.must(err)
}

func (w *world) write(name, content string, mode fs.FileMode) {
	w.t.Helper()
	w.edit(name, func() { w.put(name, content, mode) })
}

func (w *world) remove(name string) {
	w.t.Helper()
	w.edit(name, func() { w.must(os.Remove(w.abs(name))) })
}

func (w *world) say(role, text string) json.RawMessage {
	b, err := json.Marshal(map[string]string{"role": role, "content": text})
	w.must(err)
	return b
}

func (w *world) apply(r rewind.Request) {
	w.t.Helper()
	r.Session, r.Force = w.id, true
	p, err := w.engine.Plan(w.t.Context(), r)
	w.must(err)
	_, err = w.engine.Apply(w.t.Context(), p)
	w.must(err)
}

func (w *world) export(dir string) export.Result {
	w.t.Helper()
	r, err := export.Write(w.t.Context(), w.capture.Store, w.id, export.Options{Dir: dir})
	w.must(err)
	return r
}

// entry is a file as the system shows it.
type entry struct {
	Mode    fs.FileMode
	Content string
}

// files reads what lies in dir, folders left out.
func files(t testing.TB, dir string) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{Mode: info.Mode()}
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			e.Content = string(b)
		} else if e.Content, err = os.Readlink(name); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		all[rel] = e
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
