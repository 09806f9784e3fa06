package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/view"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

type world struct {
	t        testing.TB
	dir      string
	capture  *capture.Capturer
	recorder *agent.Recorder
	engine   *rewind.Engine
	view     *view.Viewer
	id       store.SessionID
	starts   []map[string]entry // the folder at the start of each turn
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "ws")}
	w.must(os.Mkdir(w.dir, 0o755))
	root, err := workspace.Open(w.dir, workspace.Options{})
	w.must(err)
	w.dir = root.Path()
	clock, made := time.UnixMilli(1_800_000_000_000), 0
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{
		Create: &store.Workspace{Root: root.Path()},
		Now:    func() time.Time { clock = clock.Add(time.Second); return clock },
		NewID:  func() store.SessionID { made++; return store.SessionID(fmt.Sprintf("session%d", made)) },
	})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: root}
	w.recorder, w.engine, w.view = agent.NewRecorder(w.capture), rewind.New(w.capture, rewind.Options{}), view.New(w.capture)
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

func (w *world) put(name, content string, mode fs.FileMode) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.abs(name)), 0o755))
	w.must(os.WriteFile(w.abs(name), []byte(content), mode))
	w.must(os.Chmod(w.abs(name), mode))
}

func (w *world) turn(prompt string, do func()) {
	w.t.Helper()
	w.starts = append(w.starts, files(w.t, w.dir))
	_, err := w.recorder.BeginTurn(w.t.Context(), w.id, "", prompt, []json.RawMessage{json.RawMessage(`{"role":"user","content":"x"}`)})
	w.must(err)
	do()
	w.must(w.recorder.EndTurn(w.t.Context(), w.id, store.TurnDone))
}

func (w *world) edit(do func(), names ...string) {
	w.t.Helper()
	e := agent.Edit{Tool: "edit", Paths: names}
	_, err := w.recorder.BeforeEdit(w.t.Context(), w.id, e)
	w.must(err)
	do()
	_, err = w.recorder.AfterEdit(w.t.Context(), w.id, e)
	w.must(err)
}

func (w *world) write(name, content string, mode fs.FileMode) {
	w.t.Helper()
	w.edit(func() { w.put(name, content, mode) }, name)
}

func (w *world) apply(r rewind.Request) rewind.Result {
	w.t.Helper()
	r.Session, r.Force = w.id, true
	p, err := w.engine.Plan(w.t.Context(), r)
	w.must(err)
	res, err := w.engine.Apply(w.t.Context(), p)
	w.must(err)
	return res
}

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

// lay makes files in a new folder.
func lay(t testing.TB, all map[string]entry) string {
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
