// Package worldtest gives tests a real workspace that an agent works in: files, a store, and what
// records and rewinds them. Tests of packages that show or write a history embed its World and
// add what is their own.
package worldtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// World is a workspace with a store and a session. Its methods end the test at an error. It is
// for one goroutine.
type World struct {
	T        testing.TB
	Dir      string // the workspace's canonical path
	Capture  *capture.Capturer
	Recorder *agent.Recorder
	Engine   *rewind.Engine
	ID       store.SessionID // the session that the methods act on

	mu    sync.Mutex // guards clock: what the world is made of may be used by many
	clock time.Time
}

// New makes a World in folders of the test. Two runs give the same history: sessions are abcd1234,
// abcd1235 and so on, and each look at the clock moves it by 1,003 ms, so that no two times are
// alike in their milliseconds. The store is verified and closed when the test ends.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{T: t, Dir: filepath.Join(t.TempDir(), "ws")}
	w.Must(os.Mkdir(w.Dir, 0o755))
	root, err := workspace.Open(w.Dir, workspace.Options{})
	w.Must(err)
	w.Dir = root.Path()
	w.clock = time.UnixMilli(1_800_000_000_123)
	number := 1233
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{
		Create: &store.Workspace{Root: root.Path()},
		Now:    func() time.Time { return w.later(1003 * time.Millisecond) },
		NewID:  func() store.SessionID { number++; return store.SessionID(fmt.Sprintf("abcd%d", number)) },
	})
	w.Must(err)
	w.Capture = &capture.Capturer{Store: s, Root: root}
	w.Recorder, w.Engine = agent.NewRecorder(w.Capture), rewind.New(w.Capture, rewind.Options{})
	ses, err := w.Recorder.Session(t.Context(), "test", "one")
	w.Must(err)
	w.ID = ses.ID
	t.Cleanup(func() {
		problems, err := s.Verify(context.Background(), true, nil) // the test's context is done by now
		if err != nil || len(problems) > 0 {
			t.Errorf("verify: %+v, %v", problems, err)
		}
		w.Must(s.Close())
		w.Must(root.Close())
	})
	return w
}

// Later moves the clock.
func (w *World) Later(d time.Duration) { w.later(d) }

func (w *World) later(d time.Duration) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
	return w.clock
}

// Must ends the test when err is not nil.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Abs is the absolute name of a path of the workspace.
func (w *World) Abs(name string) string { return filepath.Join(w.Dir, name) }

// Put writes a file, and the folders above it, behind the recorder's back.
func (w *World) Put(name, content string, mode fs.FileMode) {
	w.T.Helper()
	w.Must(os.MkdirAll(filepath.Dir(w.Abs(name)), 0o755))
	w.Must(os.WriteFile(w.Abs(name), []byte(content), mode))
	w.Must(os.Chmod(w.Abs(name), mode))
}

// Turn is a turn in which do happens.
func (w *World) Turn(prompt string, messages []json.RawMessage, do func()) {
	w.T.Helper()
	_, err := w.Recorder.BeginTurn(w.T.Context(), w.ID, "", prompt, messages)
	w.Must(err)
	do()
	w.Must(w.Recorder.EndTurn(w.T.Context(), w.ID, store.TurnDone))
}

// Edit is a tool call that announces names and then does what it does.
func (w *World) Edit(do func(), names ...string) {
	w.T.Helper()
	e := agent.Edit{Tool: "edit", Paths: names}
	_, err := w.Recorder.BeforeEdit(w.T.Context(), w.ID, e)
	w.Must(err)
	do()
	_, err = w.Recorder.AfterEdit(w.T.Context(), w.ID, e)
	w.Must(err)
}

// Write is a tool call that puts a file.
func (w *World) Write(name, content string, mode fs.FileMode) {
	w.T.Helper()
	w.Edit(func() { w.Put(name, content, mode) }, name)
}

// Remove is a tool call that removes a file.
func (w *World) Remove(name string) {
	w.T.Helper()
	w.Edit(func() { w.Must(os.Remove(w.Abs(name))) }, name)
}

// Apply plans r for the session and applies it, over all conflicts.
func (w *World) Apply(r rewind.Request) rewind.Result {
	w.T.Helper()
	r.Session, r.Force = w.ID, true
	p, err := w.Engine.Plan(w.T.Context(), r)
	w.Must(err)
	res, err := w.Engine.Apply(w.T.Context(), p)
	w.Must(err)
	return res
}
