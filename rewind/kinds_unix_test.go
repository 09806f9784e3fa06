//go:build unix

package rewind_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reasonix/agent"
	"reasonix/internal/asuser"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// toolCall is one tool call that announces paths and then does something.
func (w *world) toolCall(do func(), paths ...string) agent.Captured {
	w.t.Helper()
	w.value++
	e := agent.Edit{Call: string(rune('a' + w.value)), Tool: "call", Paths: paths}
	c, err := w.recorder.BeforeEdit(w.t.Context(), w.ids[0], e)
	w.must(err)
	do()
	_, err = w.recorder.AfterEdit(w.t.Context(), w.ids[0], e)
	w.must(err)
	return c
}

func (w *world) finishTurn() {
	w.t.Helper()
	w.must(w.recorder.EndTurn(w.t.Context(), w.ids[0], store.TurnDone))
}

func (w *world) setMode(p string, mode os.FileMode) {
	w.t.Helper()
	w.must(os.Chmod(filepath.Join(w.dir, p), mode))
}

// TestReadOnlyFolderIsRefused: what the system would refuse in the middle is refused before the
// first write, with the folder's name, and works once it may be written.
func TestReadOnlyFolderIsRefused(t *testing.T) {
	if asuser.Ran(t) {
		return
	}
	for _, state := range []string{"644:new", ""} { // a file to be replaced, one to be made
		w := newWorld(t, 1)
		w.must(os.MkdirAll(filepath.Join(w.dir, "closed"), 0o755))
		w.put("closed/f", "644:old")
		w.put("a", "644:old")
		w.edits(0, "a", "644:new", "closed/f", state)
		w.setMode("closed", 0o555)
		was := manifest(t, w.dir)
		_, err := w.engine.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Scope: store.Both})
		if !errors.Is(err, rewind.ErrReadOnly) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a plan in a closed folder: %v", err)
		}
		w.same("refused", was)
		w.setMode("closed", 0o755)
		w.do(rewind.Request{Scope: store.Both})
		w.has("a", "644:old")
		w.has("closed/f", "644:old")
		w.close()
	}
}

// TestModesThatKeepTheOwnerOut: a file that may be read and not written is replaced as any other;
// one that may not be read is a gap, and is left alone in both directions (I6).
func TestModesThatKeepTheOwnerOut(t *testing.T) {
	if asuser.Ran(t) {
		return
	}
	w := newWorld(t, 1)
	defer w.close()
	w.put("readonly", "444:old")
	w.put("secret", "000:old")
	w.put("closes", "644:old")
	c := w.toolCall(func() {
		w.put("readonly", "444:new")
		w.setMode("secret", 0o644)
		w.put("secret", "644:new")
		w.put("closes", "000:new")
	}, "readonly", "secret", "closes")
	w.finishTurn()
	if len(c.Gaps) != 1 || c.Gaps[0].Path != "secret" || c.Gaps[0].Reason != store.GapUnreadable {
		t.Errorf("gaps %+v", c.Gaps)
	}
	r := rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Scope: store.Code, Force: true}
	p, err := w.engine.Plan(t.Context(), r)
	if !errors.Is(err, rewind.ErrConflict) || len(p.Result().Conflicts) != 1 || p.Result().Conflicts[0].Path != "closes" {
		t.Fatalf("%v: a file that cannot be read is replaced: %+v", err, p)
	}
	r.Force, r.Skip = false, true
	res := w.do(r)
	if len(res.NotCovered) != 1 || res.NotCovered[0].Path != "secret" || res.NotCovered[0].Reason != string(store.GapUnreadable) {
		t.Errorf("not covered: %+v", res.NotCovered)
	}
	w.has("readonly", "444:old")
	w.has("secret", "644:new")
	if info, err := os.Stat(filepath.Join(w.dir, "closes")); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("closes: %v, %v", info, err)
	}
	w.do(rewind.Request{Kind: store.OpUndo})
	w.has("readonly", "444:new")
}

// TestSpecialFilesAreGaps: a pipe, a socket and a device have no content to record. What a tool put
// in place of one is not taken away again.
func TestSpecialFilesAreGaps(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	pipe := filepath.Join(w.dir, "pipe")
	w.must(unix.Mkfifo(pipe, 0o644))
	c := w.toolCall(func() { w.must(os.Remove(pipe)); w.put("pipe", "644:a file now") }, "pipe")
	w.finishTurn()
	if len(c.Gaps) != 1 || c.Gaps[0].Reason != store.GapSpecial {
		t.Errorf("gaps %+v", c.Gaps)
	}
	if res := w.do(rewind.Request{Scope: store.Both, Force: true}); len(res.NotCovered) != 1 {
		t.Errorf("not covered: %+v", res.NotCovered)
	}
	w.has("pipe", "644:a file now")

	dev, err := workspace.Open("/dev", workspace.Options{})
	w.must(err)
	defer dev.Close()
	got, err := dev.Read(t.Context(), "null", nil)
	w.must(err)
	if got.State != store.UncapturedState || got.Reason != store.GapSpecial || got.Detail != "device" {
		t.Errorf("a device is %+v", got)
	}
}

// TestSetuidIsNeverSet: the bit is not recorded, so a file that had it comes back without.
func TestSetuidIsNeverSet(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("tool", "755:old")
	w.setMode("tool", 0o755|os.ModeSetuid|os.ModeSetgid)
	w.toolCall(func() { w.put("tool", "755:new") }, "tool")
	w.finishTurn()
	w.do(rewind.Request{Scope: store.Both})
	info, err := os.Stat(filepath.Join(w.dir, "tool"))
	w.must(err)
	if info.Mode() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
	w.has("tool", "755:old")
}

// TestSparseFile: holes are bytes like others; they come back as the zeros that they read as.
func TestSparseFile(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	name := filepath.Join(w.dir, "sparse")
	f, err := os.Create(name)
	w.must(err)
	_, err = f.WriteAt([]byte("end"), 5<<20)
	w.must(err)
	w.must(f.Close())
	w.setMode("sparse", 0o644)
	was := manifest(t, w.dir)
	w.toolCall(func() { w.must(os.Truncate(name, 3)) }, "sparse")
	w.finishTurn()
	w.do(rewind.Request{Scope: store.Both})
	if manifest(t, w.dir)["sparse"] != was["sparse"] {
		t.Error("the file with holes is another one")
	}
}

// TestNamesThatDifferInCase: where the file system tells them apart, a rename that changes only
// case is one file that goes and one that comes.
func TestNamesThatDifferInCase(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("readme", "644:text")
	if _, err := os.Lstat(filepath.Join(w.dir, "README")); err == nil {
		w.toolCall(func() { w.put("readme", "644:changed") }, "README") // one file under either name
		w.finishTurn()
		w.do(rewind.Request{Scope: store.Both})
		w.has("readme", "644:text")
		return
	}
	was := manifest(t, w.dir)
	rename := func(from, to string) func() {
		return func() { w.must(os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to))) }
	}
	w.toolCall(rename("readme", "README"), "readme", "README")
	w.finishTurn()
	middle := manifest(t, w.dir)
	w.toolCall(rename("README", "Readme"), "README", "Readme")
	w.finishTurn()
	is := manifest(t, w.dir)
	w.do(rewind.Request{Turn: 1, Scope: store.Both})
	w.same("one step back", middle)
	w.do(rewind.Request{Turn: 0, Scope: store.Both})
	w.same("two steps back", was)
	w.do(rewind.Request{Kind: store.OpUndo})
	w.do(rewind.Request{Kind: store.OpUndo})
	w.same("undone", is)
}
