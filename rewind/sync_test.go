package rewind_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// A power cut forgets what was not synced. What may be forgotten when is a matter of order, so
// the order of all calls is what this test is about:
//
//   - a content is synced before its file takes the place of another;
//   - names, modes and removals are synced before the transaction that calls them done;
//   - nothing visible happens before the intent is committed.

type event struct {
	op   string
	path store.Path
}

func (w *world) traced() (*rewind.Engine, func() []event) {
	var (
		mu    sync.Mutex
		trace []event
	)
	add := func(op string, p store.Path) error {
		mu.Lock()
		defer mu.Unlock()
		if p == "." {
			p = ""
		}
		trace = append(trace, event{op, p})
		return nil
	}
	root, err := workspace.Open(w.dir, workspace.Options{Protected: []string{filepath.Dir(w.file)}, Fault: add})
	w.must(err)
	s, err := store.Open(w.t.Context(), w.file, store.Options{Fault: func(point string) error { return add("db "+point, "") }})
	w.must(err)
	w.t.Cleanup(func() { w.must(s.Close()); w.must(root.Close()) })
	return rewind.New(&capture.Capturer{Store: s, Root: root}, rewind.Options{Point: func(name string) { _ = add("point "+name, "") }}),
		func() []event { mu.Lock(); defer mu.Unlock(); return trace }
}

func (w *world) checkOrder(trace []event) {
	w.t.Helper()
	var (
		contents = map[store.Path]string{} // written, and not synced
		names    = map[store.Path]string{} // folders with a change that is not synced
		intended = false
		visible  = 0
	)
	for i, e := range trace {
		switch e.op {
		case "point intended":
			intended = true
		case "create", "write":
			contents[e.path] = e.op
		case "sync":
			clear(contents)
			clear(names)
		case "fsync":
			delete(contents, e.path)
			delete(names, e.path)
		case "rename", "exchange", "mkdir", "rmdir", "chmod", "unlink", "symlink":
			if !intended {
				w.fail("call %d, %s of %q, comes before the intent", i, e.op, e.path)
			}
			if op, ok := contents[e.path]; ok && (e.op == "rename" || e.op == "exchange") {
				w.fail("call %d: %q takes its place after %s without a sync", i, e.path, op)
			}
			if e.op == "rename" || e.op == "exchange" || e.op == "mkdir" || e.op == "rmdir" {
				names[e.path.Parent()] = e.op
				visible++
			}
			if e.op == "rmdir" {
				delete(names, e.path) // what was in it went with it
			}
		case "db commit":
			if len(names) > 0 {
				w.fail("call %d: a transaction commits before names are synced: %v", i, names)
			}
		}
	}
	if visible == 0 {
		w.fail("nothing happened: %v", trace)
	}
}

// TestSyncOrder checks few files, which are synced one by one, and many, which are synced with
// their file system; forward, back, and in recovery.
func TestSyncOrder(t *testing.T) {
	for _, many := range []int{0, 60} {
		t.Run(fmt.Sprint(many, " more"), func(t *testing.T) {
			w := faultWorld(t, nil)
			defer w.close()
			if many > 0 {
				var pairs []string
				for i := range many {
					pairs = append(pairs, fmt.Sprintf("many/f%d", i), "644:"+strings.Repeat("x", i*100))
				}
				w.edits(0, pairs...)
			}
			for _, r := range []rewind.Request{
				{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: store.Code, Force: true},
				{Kind: store.OpUndo, Session: w.ids[0]},
				{Kind: store.OpRedo, Session: w.ids[0]},
				{Kind: store.OpUndo, Session: w.ids[0]},
				{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: store.Both, Force: true},
			} {
				engine, trace := w.traced()
				w.must(move(t.Context(), engine, r))
				w.checkOrder(trace())
			}
		})
	}
}
