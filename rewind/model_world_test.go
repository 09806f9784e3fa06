package rewind_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// world is a real workspace with a real store, beside the reference that predicts it.
type world struct {
	t        testing.TB
	rnd      *rand.Rand
	dir      string
	file     string
	clock    time.Time
	tick     time.Duration // by which each look at the clock moves it
	capture  *capture.Capturer
	recorder *agent.Recorder
	engine   *rewind.Engine
	ids      []store.SessionID
	value    int
	trace    []string
	model    *model // nil outside of the model test
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: fastDir(t), file: filepath.Join(fastDir(t), "store.db"),
		clock: time.Unix(1_800_000_000, 0), tick: time.Minute,
	}
	w.start()
	return w
}

func (w *world) start() {
	w.open()
	s, err := w.recorder.Session(w.t.Context(), "model", "s0")
	w.must(err)
	w.ids = []store.SessionID{s.ID}
}

func (w *world) open() {
	root, err := workspace.Open(w.dir, workspace.Options{Protected: []string{filepath.Dir(w.file)}})
	w.must(err)
	s, err := store.Open(w.t.Context(), w.file, store.Options{
		Create: &store.Workspace{Root: root.Path()},
		Now:    func() time.Time { w.clock = w.clock.Add(w.tick); return w.clock },
	})
	w.must(err)
	w.capture = &capture.Capturer{Store: s, Root: root}
	w.recorder = agent.NewRecorder(w.capture)
	w.engine = rewind.New(w.capture, rewind.Options{})
}

func (w *world) close() {
	w.must(w.capture.Store.Close())
	w.must(w.capture.Root.Close())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	text := fmt.Sprintf(format, args...)
	if w.model != nil {
		panic(failure(text)) // to be played again with fewer steps
	}
	w.t.Fatalf("%s\nafter:\n  %s", text, strings.Join(w.trace, "\n  "))
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// put writes a state, as folder has them, in the place of whatever is there.
func (w *world) put(p, state string) {
	w.t.Helper()
	name := filepath.Join(w.dir, p)
	w.must(os.RemoveAll(name))
	switch {
	case state == "":
	case isLink(state):
		w.must(os.Symlink(state[2:], name))
	case isDir(state):
		w.must(os.Mkdir(name, 0o700))
		w.chmod(p, state[1:])
	default:
		mode, content, _ := strings.Cut(state, ":")
		w.must(os.WriteFile(name, []byte(content), 0o600))
		w.chmod(p, mode)
	}
}

func (w *world) chmod(p, mode string) {
	perm, err := strconv.ParseUint(mode, 8, 9)
	w.must(err)
	w.must(os.Chmod(filepath.Join(w.dir, p), fs.FileMode(perm)))
}

// onDisk reads the workspace with plain system calls. infos has what tells whether a path was
// written (I5).
func (w *world) onDisk() (all folder, infos map[string]fs.FileInfo) {
	all, infos = folder{}, map[string]fs.FileInfo{}
	var read func(dir string)
	read = func(dir string) {
		entries, err := os.ReadDir(filepath.Join(w.dir, dir))
		w.must(err)
		for _, e := range entries {
			p := filepath.Join(dir, e.Name())
			info, err := e.Info()
			w.must(err)
			switch info.Mode().Type() {
			case fs.ModeDir:
				all[p] = fmt.Sprintf("d%o", info.Mode().Perm())
				read(p)
				continue
			case fs.ModeSymlink:
				target, err := os.Readlink(filepath.Join(w.dir, p))
				w.must(err)
				all[p] = "->" + target
			default:
				b, err := os.ReadFile(filepath.Join(w.dir, p))
				w.must(err)
				all[p] = fmt.Sprintf("%o:%s", info.Mode().Perm(), b)
			}
			infos[p] = info
		}
	}
	read("")
	return all, infos
}

func (w *world) message() (json.RawMessage, string) {
	w.value++
	m := fmt.Sprintf(`{"role":"user",  "content":"message %d"}`, w.value)
	return json.RawMessage(m), m
}

// messages reads the conversation of a session.
func (w *world) messages(s int) []string {
	var all []string
	w.must(w.capture.Store.View(w.t.Context(), func(tx *store.Tx) (err error) { all, err = w.read(tx, s); return err }))
	return all
}

func (w *world) read(tx *store.Tx, s int) ([]string, error) {
	var all []string
	ses, err := tx.Session(w.ids[s])
	if err != nil {
		return nil, err
	}
	for msg, err := range tx.Messages(ses.Head, 0, -1) {
		if err != nil {
			return nil, err
		}
		if msg.Index != int64(len(all)) {
			return nil, fmt.Errorf("message %d comes as number %d", msg.Index, len(all))
		}
		all = append(all, string(msg.JSON))
	}
	return all, nil
}

func (w *world) verify(deep bool) {
	w.t.Helper()
	problems, err := w.capture.Store.Verify(context.Background(), deep, nil)
	w.must(err)
	for _, p := range problems {
		w.fail("verify: %+v", p)
	}
}
