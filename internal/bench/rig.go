package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// rig is what a run measures with.
type rig struct {
	ctx    context.Context
	o      Options
	temp   string
	git    string // the program; "" where there is none
	made   int
	kept   map[string]any // what several lines use
	closed []func() error
}

// close closes what lines have opened.
func (r *rig) close() {
	for _, do := range r.closed {
		_ = do() // it is thrown away with its folder
	}
}

// folder makes a new folder.
func (r *rig) folder(name string) (string, error) {
	r.made++
	dir := filepath.Join(r.temp, fmt.Sprintf("%03d-%s", r.made, name))
	return dir, os.Mkdir(dir, 0o700)
}

// once makes something that several lines use.
func once[T any](r *rig, name string, make func() (T, error)) (T, error) {
	if v, ok := r.kept[name].(T); ok {
		return v, nil
	}
	v, err := make()
	if err == nil {
		r.kept[name] = v
	}
	return v, err
}

// world is a workspace with a store and a session.
type world struct {
	r        *rig
	dir      string
	file     string // the store
	store    *store.Store
	capture  *capture.Capturer
	recorder *agent.Recorder
	engine   *rewind.Engine
	id       store.SessionID
}

// world makes a store for the folder dir; "" makes that too.
func (r *rig) world(dir string) (*world, error) {
	var err error
	if dir == "" {
		if dir, err = r.folder("workspace"); err != nil {
			return nil, err
		}
	}
	at, err := r.folder("store")
	if err != nil {
		return nil, err
	}
	w := &world{r: r, dir: dir, file: filepath.Join(at, "store.db")}
	root, err := workspace.Open(dir, workspace.Options{Now: r.o.Now})
	if err != nil {
		return nil, err
	}
	id := root.Identity()
	w.store, err = store.Open(r.ctx, w.file, store.Options{
		Now: r.o.Now, Create: &store.Workspace{Root: root.Path(), Device: id.Device, Inode: id.Inode},
	})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	r.closed = append(r.closed, w.store.Close, root.Close)
	w.capture = &capture.Capturer{Store: w.store, Root: root}
	return w, w.open("one")
}

// open makes a session, with what records and moves it.
func (w *world) open(name string) error {
	w.recorder, w.engine = agent.NewRecorder(w.capture), rewind.New(w.capture, rewind.Options{})
	s, err := w.recorder.Session(w.r.ctx, "bench", name)
	w.id = s.ID
	return err
}

// begin begins a turn.
func (w *world) begin() error {
	_, err := w.recorder.BeginTurn(w.r.ctx, w.id, "", "change what has to be changed", nil)
	return err
}

func (w *world) end() error { return w.recorder.EndTurn(w.r.ctx, w.id, store.TurnDone) }

// edit announces paths, lets do change them and reports back.
func (w *world) edit(do func() error, paths ...string) error {
	e := agent.Edit{Call: "c", Tool: "edit", Paths: paths}
	if _, err := w.recorder.BeforeEdit(w.r.ctx, w.id, e); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	_, err := w.recorder.AfterEdit(w.r.ctx, w.id, e)
	return err
}

// move plans and applies.
func (w *world) move(q rewind.Request) (rewind.Result, error) {
	if q.Session == "" {
		q.Session = w.id
	}
	p, err := w.engine.Plan(w.r.ctx, q)
	if err != nil {
		return rewind.Result{}, err
	}
	return w.engine.Apply(w.r.ctx, p)
}

// there returns a move that goes to turn 0 and, the next time, back.
func (w *world) there(scope store.Scope) func() error {
	away := false
	return func() error {
		away = !away
		q := rewind.Request{Kind: store.OpUndo}
		if away {
			q = rewind.Request{Kind: store.OpRewind, Turn: 0, Scope: scope}
		}
		_, err := w.move(q)
		return err
	}
}

// put writes a file of a folder.
func put(dir, name, content string) error {
	full := filepath.Join(dir, filepath.FromSlash(name))
	err := os.WriteFile(full, []byte(content), 0o644)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(full), 0o755); err == nil {
			err = os.WriteFile(full, []byte(content), 0o644)
		}
	}
	return err
}

// fileName is the name of the i-th of many files, forty in a folder.
func fileName(i int) string { return fmt.Sprintf("d%02d/f%04d.go", i/40, i) }

func fileNames(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fileName(i))
	}
	return all
}

// random is the same in each run.
func random() *rand.Rand { return rand.New(rand.NewPCG(3, 5)) }

// code is a text of about size bytes that looks, and compresses, like source code.
func code(rnd *rand.Rand, size int) string {
	words := strings.Fields(`if err nil return func for range := = == != && ( ) { } . , string int byte error
		ctx path name value state node store turn head line read write open close first last index count`)
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(strings.Repeat("\t", rnd.IntN(4)))
		for range 3 + rnd.IntN(8) {
			if rnd.IntN(5) == 0 {
				fmt.Fprintf(&b, "v%d ", rnd.IntN(5000))
				continue
			}
			b.WriteString(words[rnd.IntN(len(words))] + " ")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// edited is a text with a small change: a line more, or one that is another.
func edited(rnd *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	i := rnd.IntN(len(lines))
	fresh := code(rnd, 1)
	if rnd.IntN(2) == 0 {
		fresh += lines[i]
	}
	lines[i] = fresh
	return strings.Join(lines, "")
}
