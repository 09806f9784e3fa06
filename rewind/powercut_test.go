//go:build unix

package rewind_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/capture"
	"reasonix/internal/powercut"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// outage records, at every call of a move on files or on the store, what a power cut there may
// leave: the workspace with some of what was not synced lost, and the store as of its last
// commit, which SQLite syncs.
type outage struct {
	w       *world
	disk    *powercut.Disk
	losses  []powercut.Loss
	files   []*os.File // the store and its log: closing them would release SQLite's locks
	op      string     // the call that was announced last
	path    store.Path
	chmod   store.Path // what the last change of a mode is about
	subject map[store.Path]powercut.Open
	calls   int
	commits []stored
	found   map[string]bool
	remains []remains
}

// stored are the files of the store, by what their names end in.
type stored map[string][]byte

// remains is one outcome of a power cut.
type remains struct {
	what  string
	files powercut.Image
	store stored
}

func (o *outage) call(op string, p store.Path) error {
	o.w.t.Helper()
	o.happened()
	o.op, o.path = op, p
	o.calls++
	o.cut()
	return nil
}

// happened takes in what the last call did. It has returned by now.
func (o *outage) happened() {
	o.w.must(o.disk.Look())
	touched := o.disk.Touched()
	switch o.op {
	case "create", "write", "symlink":
		o.subject[o.path] = touched
	case "chmod":
		o.chmod = o.path
	case "open": // a mode is changed through a handle
		if touched != (powercut.Open{}) {
			o.subject[o.chmod] = touched
		}
	case "sync":
		o.disk.Sync()
	case "fsync":
		at := o.disk.Open(filepath.Join(o.w.dir, string(o.path)))
		if staged, ok := o.subject[o.path]; ok && !o.disk.IsFolder(at) {
			at = staged
		}
		if !o.disk.SyncFile(at) {
			o.w.fail("call %d syncs %q, which is not there", o.calls, o.path)
		}
	case "db committed":
		o.commit()
	}
}

func (o *outage) commit() {
	s := stored{}
	for _, f := range o.files {
		info, err := f.Stat()
		o.w.must(err)
		b := make([]byte, info.Size())
		_, err = f.ReadAt(b, 0)
		if !errors.Is(err, io.EOF) {
			o.w.must(err)
		}
		s[strings.TrimPrefix(f.Name(), o.w.file)] = b
	}
	o.commits = append(o.commits, s)
}

func (o *outage) cut() {
	for _, l := range o.losses {
		m := o.disk.After(l)
		key := fmt.Sprint(len(o.commits), m.Key())
		if o.found[key] {
			continue
		}
		o.found[key] = true
		what := fmt.Sprintf("before call %d (%s %q), lost: %s", o.calls, o.op, o.path, l.Name)
		o.remains = append(o.remains, remains{what, m, o.commits[len(o.commits)-1]})
	}
}

// outage makes a move and returns all that power cuts on its way may leave.
func (w *world) outage(seeds uint64, do func(*rewind.Engine) error) *outage {
	w.t.Helper()
	disk, err := powercut.Watch(w.dir)
	w.must(err)
	o := &outage{w: w, disk: disk, losses: powercut.Losses(seeds), subject: map[store.Path]powercut.Open{}, found: map[string]bool{}}
	armed := false
	call := func(op string, p store.Path) error {
		if !armed {
			return nil
		}
		return o.call(op, p)
	}
	root, err := workspace.Open(w.dir, workspace.Options{Protected: []string{filepath.Dir(w.file)}, Fault: call})
	w.must(err)
	s, err := store.Open(w.t.Context(), w.file, store.Options{Fault: func(point string) error { return call("db "+point, "") }})
	w.must(err)
	for _, name := range []string{w.file, w.file + "-wal"} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		w.must(err)
		defer f.Close()
		o.files = append(o.files, f)
	}
	o.commit()
	armed = true
	w.must(do(rewind.New(&capture.Capturer{Store: s, Root: root}, rewind.Options{})))
	w.must(o.call("the end", ""))
	armed = false
	w.must(s.Close())
	w.must(root.Close())
	return o
}

// found makes a world of what is left.
func (w *world) found(r remains) *world {
	w.t.Helper()
	c := *w
	dir := fastDir(w.t)
	c.dir, c.file = filepath.Join(dir, "w"), filepath.Join(dir, "s", "store.db")
	w.must(r.files.Write(c.dir))
	w.must(os.Mkdir(filepath.Dir(c.file), 0o700))
	for suffix, b := range r.store {
		w.must(os.WriteFile(c.file+suffix, b, 0o600))
	}
	c.open()
	return &c
}

// restored recovers what is left and says whether it is as before; else it is as after.
func (w *world) restored(r remains, was, becomes map[string]string) bool {
	w.t.Helper()
	c := w.found(r)
	defer os.RemoveAll(filepath.Dir(c.dir))
	defer c.close()
	if _, err := c.engine.Recover(c.t.Context()); err != nil {
		c.t.Fatalf("%s: recover: %v", r.what, err)
	}
	if again, err := c.engine.Recover(c.t.Context()); err != nil || len(again) > 0 {
		c.t.Fatalf("%s: recovery is not idempotent: %v, %v", r.what, again, err)
	}
	is := c.shapeOf() // with every file: what is staged and left would be a difference
	before, after := cmp.Diff(was, is), cmp.Diff(becomes, is)
	if before != "" && after != "" {
		c.t.Fatalf("%s: neither before nor after.\nbefore:\n%s\nafter:\n%s", r.what, before, after)
	}
	c.verify(true)
	return before == ""
}

// outageMoves are one of each kind that changes files or heads, with what has to come first.
func outageMoves() map[string][]rewind.Request {
	back := rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Both, Force: true}
	undo, redo := rewind.Request{Kind: store.OpUndo}, rewind.Request{Kind: store.OpRedo}
	fork := rewind.Request{Kind: store.OpFork, Turn: 1, Code: true, Force: true}
	return map[string][]rewind.Request{
		"rewind code":         {{Kind: store.OpRewind, Turn: 1, Scope: store.Code, Force: true}},
		"rewind conversation": {{Kind: store.OpRewind, Turn: 1, Scope: store.Conversation}},
		"rewind both":         {back},
		"undo":                {back, undo},
		"redo":                {back, undo, redo},
		"fork":                {{Kind: store.OpFork, Turn: 1}},
		"fork code":           {fork},
		"switch":              {fork, {Kind: store.OpSwitch}},
	}
}

// TestCrashPowerCut cuts the power at every call of a move of each kind, and forgets what was
// not synced in every way that powercut knows. After recovery the world is as before or as
// after (I8). Few files are synced one by one, many with their file system.
func TestCrashPowerCut(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 0
	}
	for name, requests := range outageMoves() {
		for _, many := range []int{0, 20} {
			if many > 0 && name != "rewind both" && name != "undo" {
				continue
			}
			t.Run(fmt.Sprint(name, " ", many, " more"), func(t *testing.T) {
				t.Parallel()
				w := outageWorld(t, many)
				for _, r := range requests[:len(requests)-1] {
					w.do(r)
				}
				last := requests[len(requests)-1]
				last.Session = w.ids[0]
				was := w.shapeOf()
				w.close()
				o := w.outage(seeds, func(e *rewind.Engine) error { return move(t.Context(), e, last) })
				w.open()
				defer w.close()
				becomes := w.shapeOf()
				before := 0
				for _, r := range o.remains {
					if w.restored(r, was, becomes) {
						before++
					}
				}
				t.Logf("%d calls, %d outcomes, %d of them as before", o.calls, len(o.remains), before)
				if before == 0 || before == len(o.remains) {
					t.Errorf("of %d outcomes %d are as before", len(o.remains), before)
				}
			})
		}
	}
}

// TestCrashPowerCutInRecovery cuts the power again while the first cut is recovered from.
func TestCrashPowerCutInRecovery(t *testing.T) {
	w := outageWorld(t, 0)
	was := w.shapeOf()
	w.close()
	r := rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: store.Both, Force: true}
	first := w.outage(1, func(e *rewind.Engine) error { return move(t.Context(), e, r) })
	every := 17
	if testing.Short() {
		every = 60
	}
	second := 0
	for i := 0; i < len(first.remains); i += every {
		c := w.found(first.remains[i])
		waiting, err := c.engine.Unfinished(t.Context())
		w.must(err)
		c.close()
		if len(waiting) == 0 {
			continue
		}
		o := c.outage(1, func(e *rewind.Engine) error { _, err := e.Recover(t.Context()); return err })
		for _, r := range o.remains {
			r.what = first.remains[i].what + "; then " + r.what
			c.restored(r, was, was)
			second++
		}
	}
	if second < 10 {
		t.Errorf("only %d second cuts", second)
	}
}

func outageWorld(t *testing.T, many int) *world {
	return faultWorld(t, func(w *world) {
		if many == 0 {
			return
		}
		pairs := []string{}
		for i := range many {
			pairs = append(pairs, fmt.Sprintf("many/f%d", i), "644:"+strings.Repeat("x", i*10))
		}
		w.edits(0, pairs...)
	})
}
