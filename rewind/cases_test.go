package rewind_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/rewind"
	"reasonix/store"
)

// Faults that were reported of tools of this kind, each as a test. docs/testing.md lists them.

func (w *world) messagesOf(s int) int { return len(w.messages(s)) }

func (w *world) say(s int, text string) {
	w.t.Helper()
	w.must(w.recorder.Append(w.t.Context(), w.ids[s], []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text))}))
}

func (w *world) same(what string, want map[string]string) {
	w.t.Helper()
	if d := cmp.Diff(want, manifest(w.t, w.dir)); d != "" {
		w.fail("%s (-want +got):\n%s", what, d)
	}
}

func TestCaseTwoRootsUnderOneParent(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	other := filepath.Join(filepath.Dir(w.dir), "other-project")
	w.must(os.MkdirAll(other, 0o755))
	defer os.RemoveAll(other)
	file := filepath.Join(other, "theirs")
	w.must(os.WriteFile(file, []byte("theirs"), 0o644))
	w.edits(0, "a", "644:1")
	e := agent.Edit{Paths: []string{"../other-project/theirs", file, "a"}}
	c, err := w.recorder.BeforeEdit(t.Context(), w.ids[0], e)
	w.must(err)
	if len(c.Gaps) != 2 || c.Gaps[0].Reason != store.GapOutside || len(c.Paths) != 1 {
		t.Errorf("captured %v, gaps %v", c.Paths, c.Gaps)
	}
	w.must(os.WriteFile(file, []byte("changed"), 0o644))
	w.must(w.recorder.EndTurn(t.Context(), w.ids[0], store.TurnDone))
	w.do(rewind.Request{Turn: 0})
	if b, err := os.ReadFile(file); err != nil || string(b) != "changed" {
		t.Errorf("the other project's file is %q, %v", b, err)
	}
}

func TestCaseGitFoldersAreNeverTouched(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	for _, d := range []string{".git", "sub/.git", "deep/er/.git/objects"} {
		w.must(os.MkdirAll(filepath.Join(w.dir, d), 0o755))
		w.put(d+"/index", "644:staged "+d)
	}
	w.put("module.git", "644:a name that only looks like it")
	w.must(os.MkdirAll(filepath.Join(w.dir, "worktree"), 0o755))
	w.put("worktree/.git", "644:gitdir: elsewhere")
	git := func() map[string]string {
		found := map[string]string{}
		for p, s := range manifest(t, w.dir) {
			if strings.Contains("/"+p+"/", "/.git/") {
				found[p] = s
			}
		}
		return found
	}
	was := git()
	w.edits(0, "sub/a", "644:1", "module.git", "644:edited")
	ctx := t.Context()
	e := agent.Edit{Call: "all", Paths: []string{"sub", "deep", "worktree", ".git/index"}}
	_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "", nil)
	w.must(err)
	_, err = w.recorder.BeforeEdit(ctx, w.ids[0], e)
	w.must(err)
	w.put("sub/a", "644:2")
	w.put("deep/er/b", "644:new")
	_, err = w.recorder.AfterEdit(ctx, w.ids[0], e)
	w.must(err)
	w.must(w.recorder.EndTurn(ctx, w.ids[0], store.TurnDone))
	w.do(rewind.Request{Turn: 0})
	w.has("sub/a", "")
	w.has("deep/er/b", "")
	w.has("module.git", "644:a name that only looks like it")
	if d := cmp.Diff(was, git()); d != "" {
		t.Errorf(".git changed:\n%s", d)
	}
	w.do(rewind.Request{Kind: store.OpUndo})
	if d := cmp.Diff(was, git()); d != "" {
		t.Errorf(".git changed by undo:\n%s", d)
	}
}

func TestCaseAbsenceIsAState(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "f", "644:1")
	w.edits(0, "f", "")
	w.edits(0, "g", "644:g")
	w.do(rewind.Request{Turn: 2, Scope: store.Code})
	w.has("f", "")
	w.do(rewind.Request{Turn: 1, Scope: store.Code})
	w.has("f", "644:1")
	w.close()
	w.open()
	w.do(rewind.Request{Turn: 2, Scope: store.Code}) // a deletion is not forgotten by a reopening
	w.has("f", "")
}

func TestCaseEveryFileOfATurn(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	for i := range 25 {
		w.put(fmt.Sprintf("f%d", i), fmt.Sprintf("644:original %d", i))
	}
	was := manifest(t, w.dir)
	w.edits(0, "other", "644:x")
	var pairs []string
	for i := range 25 {
		pairs = append(pairs, fmt.Sprintf("f%d", i), fmt.Sprintf("755:first %d", i))
	}
	for i := 0; i < 25; i += 2 {
		pairs = append(pairs, fmt.Sprintf("f%d", i), fmt.Sprintf("644:second %d", i))
	}
	w.edits(0, pairs...)
	w.do(rewind.Request{Turn: 1})
	was["other"] = "644:x"
	w.same("25 files", was)
	w.do(rewind.Request{Turn: 0})
	delete(was, "other")
	w.same("the other one", was)
}

func TestCaseFirstEditInALaterTurn(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("late", "600:original")
	for i := range 3 {
		w.edits(0, "other", fmt.Sprintf("644:%d", i))
	}
	w.edits(0, "late", "644:edited")
	w.edits(0, "late", "644:again")
	w.do(rewind.Request{Turn: 3, Scope: store.Code})
	w.has("late", "600:original")
	w.do(rewind.Request{Turn: 1, Scope: store.Code})
	w.has("late", "600:original")
	w.has("other", "644:0")
}

func TestCaseFirstTurnOfANewFolder(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "pkg/new/file", "644:x")
	w.do(rewind.Request{Turn: 0})
	w.same("an empty folder again", map[string]string{})
}

func TestCaseACheckpointIsNotUsedUp(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:0")
	w.edits(0, "a", "644:1")
	for range 3 {
		w.do(rewind.Request{Turn: 0, Scope: store.Code})
		w.has("a", "644:0")
		w.edits(0, "a", "644:new")
	}
	w.do(rewind.Request{Turn: 0, Scope: store.Both})
	w.has("a", "644:0")
}

func TestCaseNothingComesBackByItself(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "old", "644:x")
	w.must(os.Rename(filepath.Join(w.dir, "old"), filepath.Join(w.dir, "new")))
	w.edits(0, "other", "644:y")
	w.say(0, "hello")
	w.close()
	w.open()
	w.has("old", "")
	w.has("new", "644:x")
}

func TestCaseAcrossAnIgnoreFile(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("build.log", "644:mine, never recorded")
	w.edits(0, ".gitignore", "644:*.log\n")
	w.edits(0, "a.log", "644:agent")
	after := manifest(t, w.dir)
	w.do(rewind.Request{Turn: 0})
	w.same("before the ignore file", map[string]string{"build.log": "644:mine, never recorded"})
	w.do(rewind.Request{Kind: store.OpUndo})
	w.same("undone", after)
}

func TestCaseBytesAreBytes(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	contents := []string{
		"mixed\r\nline\nends\rand none at the end", "", "\x00\x01\x02", "\xff\xfeh\x00i\x00", "h\x00i\x00\x00\xd8", // UTF-16 and a lone surrogate
		"\xef\xbb\xbfBOM", "\xb5\xda\xd2\xbb\xd0\xd0", "\x83e\x83X\x83g", "caf\xe9", "\xf0\x9f\x98\x80", strings.Repeat("\r", 5000),
	}
	names := []string{"\u00e9", "e\u0301", "\xe9", "a b", "-r", "new\nline", `back\slash`, `"quoted"`, " lead", "trail ", "z"}
	var edits []string
	for i, c := range contents {
		w.put(names[i], "644:"+c)
		edits = append(edits, names[i], "644:gone "+fmt.Sprint(i))
	}
	was := manifest(t, w.dir)
	w.edits(0, edits...)
	after := manifest(t, w.dir)
	w.do(rewind.Request{Turn: 0})
	w.same("rewound", was)
	w.do(rewind.Request{Kind: store.OpUndo})
	w.same("undone", after)
}

func TestCaseHardLinks(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:original")
	w.edits(0, "a", "644:agent")
	w.must(os.Link(filepath.Join(w.dir, "a"), filepath.Join(w.dir, "b")))
	w.do(rewind.Request{Turn: 0})
	w.has("a", "644:original")
	w.has("b", "644:agent")
}

func TestCaseEmptyFolders(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.must(os.Mkdir(filepath.Join(w.dir, "mine"), 0o750))
	w.must(os.Mkdir(filepath.Join(w.dir, "removed"), 0o711))
	w.must(os.Chmod(filepath.Join(w.dir, "removed"), 0o711))
	was := manifest(t, w.dir)
	e := agent.Edit{Call: "1", Paths: []string{"made/by/agent", "removed", "mine/x"}}
	_, err := w.recorder.BeforeEdit(t.Context(), w.ids[0], e)
	w.must(err)
	w.must(os.MkdirAll(filepath.Join(w.dir, "made/by/agent"), 0o755))
	w.must(os.Remove(filepath.Join(w.dir, "removed")))
	w.put("mine/x", "644:x")
	_, err = w.recorder.AfterEdit(t.Context(), w.ids[0], e)
	w.must(err)
	w.must(w.recorder.EndTurn(t.Context(), w.ids[0], store.TurnDone))
	w.do(rewind.Request{Turn: 0})
	w.same("folders", was)
}

func TestCaseAWriterRacesARewind(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:0")
	w.put("b", "644:0")
	w.edits(0, "a", "644:1", "b", "644:1")
	two := w.newSession()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 30 {
			e := agent.Edit{Call: fmt.Sprint(i), Paths: []string{"c"}}
			if _, err := w.recorder.BeforeEdit(t.Context(), w.ids[two], e); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(w.dir, "c"), []byte(fmt.Sprint(i)), 0o644); err != nil {
				t.Error(err)
			}
			if _, err := w.recorder.AfterEdit(t.Context(), w.ids[two], e); err != nil {
				t.Error(err)
			}
		}
	})
	for range 10 {
		r := rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 0, Scope: store.Both, Force: true}
		if err := move(t.Context(), w.engine, r); err != nil && !errors.Is(err, rewind.ErrStale) {
			t.Error(err)
		}
		if err := move(t.Context(), w.engine, rewind.Request{Kind: store.OpUndo, Session: w.ids[0], Force: true}); err != nil && !errors.Is(err, rewind.ErrStale) && !errors.Is(err, rewind.ErrNothingToUndo) {
			t.Error(err)
		}
	}
	wg.Wait()
	w.has("c", "644:29")
	w.must(w.capture.Store.View(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(w.ids[two])
		if err != nil {
			return err
		}
		row, err := tx.Newest(s.Head, "c")
		if err == nil && (row == nil || row.After.Size != 2) {
			t.Errorf("the writer's last state is not known: %+v", row)
		}
		return err
	}))
	w.verify(true)
}

func TestCaseBothAfterCompaction(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	for i := range 4 {
		_, err := w.recorder.BeginTurn(t.Context(), w.ids[0], "", fmt.Sprint(i), nil)
		w.must(err)
		w.say(0, fmt.Sprint("turn ", i))
		w.edit(0, "a", fmt.Sprintf("644:%d", i))
		w.must(w.recorder.EndTurn(t.Context(), w.ids[0], store.TurnDone))
		if i >= 1 {
			w.must(w.recorder.Compact(t.Context(), w.ids[0], 0, -1, []json.RawMessage{json.RawMessage(`{"role":"user","content":"summary"}`)}))
		}
	}
	// All turns stay listed and reachable, numbers and boundaries as they were.
	for k := 3; k >= 1; k-- {
		w.do(rewind.Request{Turn: k})
		w.has("a", fmt.Sprintf("644:%d", k-1))
		if n := w.messagesOf(0); n != k {
			t.Errorf("rewind %d leaves %d messages", k, n)
		}
	}
	w.do(rewind.Request{Kind: store.OpUndo})
	w.do(rewind.Request{Kind: store.OpUndo})
	w.do(rewind.Request{Kind: store.OpUndo})
	w.has("a", "644:3")
	if n := w.messagesOf(0); n != 4 {
		t.Errorf("undone: %d messages", n)
	}
	effective := func() (n int) {
		w.must(w.capture.Store.View(t.Context(), func(tx *store.Tx) error {
			s, err := tx.Session(w.ids[0])
			for _, merr := range tx.Effective(s.Head) {
				n++
				err = errors.Join(err, merr)
			}
			return err
		}))
		return n
	}
	if n := effective(); n != 1 {
		t.Errorf("a model would be sent %d messages", n)
	}
	w.do(rewind.Request{Kind: store.OpUndo}) // takes the last compaction back
	if n := effective(); n != 2 {
		t.Errorf("without the last compaction a model would be sent %d messages", n)
	}
}

// TestCaseTwoCompactions: turns keep their numbers and boundaries, and a rewind to before both
// brings every message back.
func TestCaseTwoCompactions(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	ctx := t.Context()
	for i := range 4 {
		w.edits(0, "a", fmt.Sprintf("644:%d", i))
		w.say(0, fmt.Sprint("message ", i))
		if i == 1 || i == 2 {
			w.must(w.recorder.Compact(ctx, w.ids[0], 0, -1, []jsonRaw{jsonRaw(fmt.Sprintf(`{"role":"system","content":"summary %d"}`, i))}))
		}
	}
	effective := func() (all []string) {
		w.must(w.capture.Store.View(ctx, func(tx *store.Tx) error {
			s, err := tx.Session(w.ids[0])
			if err != nil {
				return err
			}
			for m, err := range tx.Effective(s.Head) {
				if err != nil {
					return err
				}
				all = append(all, string(m.JSON))
			}
			return nil
		}))
		return all
	}
	if got := effective(); len(got) != 2 || !strings.Contains(got[0], "summary 2") || !strings.Contains(got[1], "message 3") {
		t.Errorf("after both: %q", got)
	}
	if n := w.messagesOf(0); n != 4 {
		t.Errorf("the full line has %d messages, 4 were said", n)
	}
	for turn, want := range map[int]string{3: "summary 2", 2: "summary 1", 1: "message 0"} {
		w.do(rewind.Request{Turn: turn})
		if got := effective(); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("rewound to %d: %q, want %s", turn, got, want)
		}
		w.same(fmt.Sprint("files at ", turn), map[string]string{"a": fmt.Sprintf("644:%d", turn-1)})
		w.do(rewind.Request{Kind: store.OpUndo})
		if got := effective(); len(got) != 2 {
			t.Errorf("undone: %q", got)
		}
	}
}

func TestCaseTheOldLineStaysReachable(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.say(0, "preamble")
	w.edits(0, "a", "644:1")
	w.say(0, "answer")
	w.do(rewind.Request{Turn: 0, Scope: store.Conversation})
	fork := w.do(rewind.Request{Kind: store.OpFork, Turn: 0}) // a session without turns: its tip
	w.ids = append(w.ids, fork.Branch)
	if n := w.messagesOf(1); n != 1 {
		t.Errorf("the fork has %d messages", n)
	}
	w.do(rewind.Request{Kind: store.OpUndo})
	if n := w.messagesOf(0); n != 2 {
		t.Errorf("undone: %d messages", n)
	}
	w.close()
	w.open()
	if n := w.messagesOf(0); n != 2 { // a pointer is durable at once
		t.Errorf("after a restart: %d messages", n)
	}
}

func TestCaseEveryListedCheckpointAfterARestart(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	var starts []map[string]string
	for i := range 5 {
		starts = append(starts, manifest(t, w.dir))
		w.edits(0, "a", fmt.Sprintf("644:%d", i), fmt.Sprintf("f%d", i), "644:x")
	}
	end := manifest(t, w.dir)
	for k, start := range starts {
		w.close()
		w.open()
		w.do(rewind.Request{Turn: k})
		w.same(fmt.Sprint("rewind ", k), start)
		w.close()
		w.open()
		w.do(rewind.Request{Kind: store.OpUndo})
		w.same("undo", end)
	}
}

func TestCaseTwoTerminalsInOneFolder(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:0")
	w.edits(0, "a", "644:1")
	// Another process records and rewinds in the same store while this one has it open.
	c := childProcess{Dir: w.dir, File: w.file, Job: "move", Request: rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Scope: store.Both}}
	w.must(c.command(t.Context()).Run())
	w.has("a", "644:0")
	w.do(rewind.Request{Kind: store.OpUndo})
	w.has("a", "644:1")
}

func TestCaseALockDiesWithItsHolder(t *testing.T) {
	template := faultWorld(t, nil)
	template.close()
	w := template.copy()
	defer w.close()
	c := childProcess{
		Dir: w.dir, File: w.file, Job: "move", Point: "staged",
		Request: rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: store.Both, Force: true},
	}
	if err := c.command(t.Context()).Run(); err == nil {
		t.Fatal("the child was not killed")
	}
	unlock, free, err := w.capture.TryExclusive()
	w.must(err)
	if !free {
		t.Fatal("the lock outlived its process")
	}
	unlock()
	_, err = w.recorder.BeforeEdit(t.Context(), w.ids[0], agent.Edit{Paths: []string{"keep/a"}})
	if errors.Is(err, capture.ErrLocked) {
		t.Fatal(err)
	}
	w.must(err)
}

func TestCaseUndoAfterNewTurns(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "a", "644:1")
	w.edits(0, "a", "644:2")
	w.do(rewind.Request{Turn: 1, Scope: store.Conversation})
	w.edits(0, "a", "644:3", "b", "644:new")
	w.do(rewind.Request{Kind: store.OpUndo})
	w.same("all as before the rewind", map[string]string{"a": "644:2"})
	w.do(rewind.Request{Kind: store.OpRedo})
	w.same("and back", map[string]string{"a": "644:3", "b": "644:new"})
}

func TestCaseForkAtTheTipWithCode(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.edits(0, "a", "644:1")
	w.do(rewind.Request{Turn: 0, Scope: store.Code})
	w.has("a", "")
	w.do(rewind.Request{Kind: store.OpFork, Turn: 1, Code: true})
	w.has("a", "644:1")
}

// TestCaseNothingChangedStoresNothing: tools and commands that change nothing leave no content and
// at most a row for each call.
func TestCaseNothingChangedStoresNothing(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.put("a", "644:as it was")
	stats := func() (s store.Stats) {
		w.must(w.capture.Store.View(t.Context(), func(tx *store.Tx) (err error) {
			s, err = tx.Stats(1)
			return err
		}))
		return s
	}
	call := func() {
		_, err := w.recorder.BeginTurn(t.Context(), w.ids[0], "", "look", nil)
		w.must(err)
		e, x := agent.Edit{Call: "e", Tool: "write", Paths: []string{"a"}}, agent.Exec{Call: "x", Tool: "bash"}
		for _, do := range []func() error{
			func() error { _, err := w.recorder.BeforeEdit(t.Context(), w.ids[0], e); return err },
			func() error { _, err := w.recorder.AfterEdit(t.Context(), w.ids[0], e); return err },
			func() error { _, err := w.recorder.BeforeExec(t.Context(), w.ids[0], x); return err },
			func() error { _, err := w.recorder.AfterExec(t.Context(), w.ids[0], x); return err },
		} {
			w.must(do())
		}
		w.must(w.recorder.EndTurn(t.Context(), w.ids[0], store.TurnDone))
	}
	call()
	before := stats()
	const turns = 40
	for range turns {
		call()
	}
	after := stats()
	if after.Contents != before.Contents || after.Stored != before.Stored || after.Changes > before.Changes+turns {
		t.Errorf("nothing changed, and stored are %d contents of %d bytes, then %d of %d; %d rows, then %d",
			before.Contents, before.Stored, after.Contents, after.Stored, before.Changes, after.Changes)
	}
}
