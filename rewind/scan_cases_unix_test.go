//go:build unix

package rewind_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/internal/asuser"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// Faults that were reported of tools which look at whole trees, each as a test.

// TestCaseRulesOfThenAndNow: a rewind across a change of the ignore rules deletes nothing that
// only the newer rules protected, and takes nothing for created that the older ones hid.
func TestCaseRulesOfThenAndNow(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{".gitignore": "hidden/\n", "hidden/x": "old\n", "main": "0\n", "data/y": "0\n"})
	w.turnOf(0, func() { w.sh(0, `echo 1 > main`) })
	before := manifest(t, w.dir)
	w.turnOf(0, func() {
		// hidden/ comes into view, data/ goes out of it.
		w.sh(0, `echo data/ > .gitignore; echo 2 > main; echo made > data/z; echo made > hidden/z; echo changed > hidden/x`)
	})
	w.do(rewind.Request{Turn: 1})
	got := manifest(t, w.dir)
	for p, content := range map[string]string{
		".gitignore": before[".gitignore"], "main": before["main"], "data/y": before["data/y"],
		"data/z": "644:made\n", "hidden/x": "644:changed\n", "hidden/z": "644:made\n",
	} {
		if got[p] != content {
			t.Errorf("%s is %q, want %q", p, got[p], content)
		}
	}
	w.do(rewind.Request{Kind: store.OpUndo})
}

// TestCaseAnIncompleteScanIsNoBaseline: what a scan did not reach before a command is not taken
// for created by it.
func TestCaseAnIncompleteScanIsNoBaseline(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	for i := range 300 {
		w.tree(map[string]string{fmt.Sprintf("d%03d/f", i): fmt.Sprint(i)})
	}
	before := manifest(t, w.dir)
	ctx := t.Context()
	_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "p", nil)
	w.must(err)
	w.capture.Scanning.Deadline = 1 // what is kept back for committing alone is left
	e := agent.Exec{Call: "1", Tool: "bash"}
	found, err := w.recorder.BeforeExec(ctx, w.ids[0], e)
	w.must(err)
	if len(found.Gaps) == 0 || found.Gaps[len(found.Gaps)-1].Reason != store.GapScanIncomplete {
		t.Fatalf("gaps %+v", found.Gaps)
	}
	w.raw(`touch d000/new`)
	w.capture.Scanning.Deadline = 0
	_, err = w.recorder.AfterExec(ctx, w.ids[0], e)
	w.must(err)
	w.must(w.recorder.EndTurn(ctx, w.ids[0], store.TurnDone))
	w.do(rewind.Request{Turn: 0})
	got := manifest(t, w.dir)
	delete(got, "d000/new")
	if d := cmp.Diff(before, got); d != "" {
		t.Errorf("a rewind touched what the scan had not seen (-before +now):\n%s", d)
	}
}

// TestCaseADeadlineAfterACommand: what the scan after a command did not reach is still the
// command's when the next scan finds it.
func TestCaseADeadlineAfterACommand(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"a": "0\n", "d/b": "0\n"})
	before := manifest(t, w.dir)
	ctx := t.Context()
	_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "p", nil)
	w.must(err)
	e := agent.Exec{Call: "1", Tool: "bash"}
	_, err = w.recorder.BeforeExec(ctx, w.ids[0], e)
	w.must(err)
	w.raw(`echo 1 > a; echo 1 > d/b; echo new > d/c`)
	w.capture.Scanning.Deadline = 1
	_, err = w.recorder.AfterExec(ctx, w.ids[0], e)
	w.must(err)
	w.capture.Scanning.Deadline = 0
	w.must(w.capture.Store.View(ctx, func(tx *store.Tx) error {
		calls, err := tx.Calls(w.ids[0])
		if err == nil && (len(calls) != 1 || !calls[0].Ended) {
			t.Errorf("calls %+v", calls)
		}
		return err
	}))
	_, err = w.recorder.BeforeExec(ctx, w.ids[0], agent.Exec{Call: "2"})
	w.must(err)
	_, err = w.recorder.AfterExec(ctx, w.ids[0], agent.Exec{Call: "2"})
	w.must(err)
	w.must(w.recorder.EndTurn(ctx, w.ids[0], store.TurnDone))
	w.do(rewind.Request{Turn: 0})
	w.same("rewound", before)
}

// TestCaseAnUnfinishedCommandIsNotBusy: a command that has ended does not keep a rewind waiting,
// whether or not a scan has looked at what it did.
func TestCaseAnUnfinishedCommandIsNotBusy(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"a": "0\n"})
	ctx := t.Context()
	_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "p", nil)
	w.must(err)
	e := agent.Exec{Call: "1", Tool: "bash"}
	_, err = w.recorder.BeforeExec(ctx, w.ids[0], e)
	w.must(err)
	w.raw(`echo 1 > a`)
	w.capture.Scanning.Deadline = 1
	_, err = w.recorder.AfterExec(ctx, w.ids[0], e)
	w.must(err)
	w.capture.Scanning.Deadline = 0
	w.clock = w.clock.Add(time.Hour)
	var res rewind.Result
	for range 2 { // closing the turn makes the first plan stale
		var p *rewind.Plan
		p, _, err = w.plan(rewind.Request{Turn: 0})
		w.must(err)
		if res, err = w.engine.Apply(ctx, p); err == nil {
			break
		}
	}
	w.must(err)
	if len(res.Written) != 1 {
		t.Errorf("written %v", res.Written)
	}
	w.same("rewound", map[string]string{"a": "644:0\n"})
}

// TestCaseAMalformedIgnoreFile: rules that cannot be used are a gap, and do not mean that
// nothing is ignored.
func TestCaseAMalformedIgnoreFile(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{".gitignore/": "", "a": "0\n", "secret.env": "0\n"})
	var found agent.Captured
	w.turnOf(0, func() { found, _ = w.sh(0, `echo 1 > a; echo 1 > secret.env; echo new > b`) })
	reasons := map[string]bool{}
	for _, g := range found.Gaps {
		reasons[g.Reason] = true
	}
	if !reasons[store.GapIgnoreRules] {
		t.Errorf("gaps %+v", found.Gaps)
	}
	after := manifest(t, w.dir)
	w.do(rewind.Request{Turn: 0})
	w.same("nothing is captured below a rule file that cannot be used", after)
}

// TestCaseNestedRepositories: three repositories in the workspace, a submodule's file and a
// linked worktree; not a byte of any .git changes, and their other files are covered.
func TestCaseNestedRepositories(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{
		".git/index": "top\n", "one/.git/HEAD": "1\n", "one/f": "0\n", "one/in/two/.git/objects/x": "2\n", "one/in/two/f": "0\n",
		"sub/.git": "gitdir: ../.git/modules/sub\n", "sub/f": "0\n", "tree/.git": "gitdir: /elsewhere\n", "tree/f": "0\n",
	})
	git := []string{".git", "one/.git", "one/in/two/.git", "sub/.git", "tree/.git"}
	before := manifest(t, w.dir)
	w.turnOf(0, func() {
		w.sh(0, `for d in one one/in/two sub tree; do echo 1 > $d/f; done
			echo staged > .git/index; echo staged > one/.git/HEAD; echo moved > sub/.git; rm -r one/in/two/.git/objects`)
	})
	after := manifest(t, w.dir)
	w.do(rewind.Request{Turn: 0})
	got := manifest(t, w.dir)
	if d := cmp.Diff(without(before, git...), without(got, git...)); d != "" {
		t.Errorf("files (-before +now):\n%s", d)
	}
	for p, content := range after {
		if hasAny(p, git) && got[p] != content {
			t.Errorf("%s is %q, was %q", p, got[p], content)
		}
	}
}

// TestCaseOneUnreadableFolder is a gap, and the rest is covered.
func TestCaseOneUnreadableFolder(t *testing.T) {
	if asuser.Ran(t) {
		return
	}
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"closed/f": "0\n", "open/f": "0\n", "private": "0\n"})
	w.must(os.Chmod(filepath.Join(w.dir, "closed"), 0))
	w.must(os.Chmod(filepath.Join(w.dir, "private"), 0))
	defer os.Chmod(filepath.Join(w.dir, "closed"), 0o755)
	var found agent.Captured
	w.turnOf(0, func() { found, _ = w.sh(0, `echo 1 > open/f`) })
	var gaps []string
	for _, g := range found.Gaps {
		gaps = append(gaps, g.Reason+" "+string(g.Path))
	}
	if d := cmp.Diff([]string{"unreadable closed", "unreadable private"}, gaps); d != "" {
		t.Errorf("gaps (-want +got):\n%s", d)
	}
	w.do(rewind.Request{Turn: 0})
	if b, err := os.ReadFile(filepath.Join(w.dir, "open/f")); err != nil || string(b) != "0\n" {
		t.Errorf("open/f is %q, %v", b, err)
	}
}

// TestCaseALargeFileThatDoesNotChange costs one copy at most, and each later scan one lstat.
func TestCaseALargeFileThatDoesNotChange(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	big := make([]byte, 24<<20)
	for i := range big {
		big[i] = byte(i*i>>7 ^ i>>13)
	}
	w.must(os.WriteFile(filepath.Join(w.dir, "big"), big, 0o644))
	w.must(os.Chtimes(filepath.Join(w.dir, "big"), time.Time{}, time.Now().Add(-time.Hour)))
	w.tree(map[string]string{"small": "0\n"})
	w.turnOf(0, func() { w.sh(0, `echo 0 >> small`) })
	size := func() int64 {
		fi, err := os.Stat(w.file)
		w.must(err)
		return fi.Size()
	}
	w.close()
	first := size()
	time.Sleep(20 * time.Millisecond) // the file's ctime is not racy any more
	w.open()
	w.turnOf(0, func() { w.sh(0, `true`) })
	for range 20 {
		w.turnOf(0, func() { w.sh(0, `echo 1 >> small`) })
	}
	found, err := w.capture.Scan(t.Context(), "", false)
	w.must(err)
	if found.Bytes > 1000 {
		t.Errorf("a scan read %d bytes", found.Bytes)
	}
	w.close()
	if grown := size() - first; grown > 1<<20 {
		t.Errorf("20 checkpoints made the store grow by %d bytes", grown)
	}
	w.open()
}

// TestCaseTooManyFiles: a scan that can't come to its end is told, and ends.
func TestCaseTooManyFiles(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	for i := range 200 {
		w.tree(map[string]string{fmt.Sprintf("d%d/f%d", i%10, i): "0\n"})
	}
	w.capture.Scanning = capture.Scanning{MaxFiles: 50}
	var found agent.Captured
	w.turnOf(0, func() { found, _ = w.sh(0, `for f in d*/f*; do echo 1 > $f; done`) })
	if len(found.Gaps) == 0 || found.Gaps[0].Reason != store.GapTooManyFiles {
		t.Errorf("gaps %+v", found.Gaps)
	}
	res := w.do(rewind.Request{Turn: 0})
	if len(res.Written) != 50 {
		t.Errorf("%d files came back, 50 were covered", len(res.Written))
	}
	// A context that ends at once ends the scan.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.capture.Scan(ctx, "", false); err == nil {
		t.Error("a scan went on without its context")
	}
}

// TestCaseTheSameSizeWithinTheGrain: an edit right after the scan that changes neither size nor
// the second of the time is seen.
func TestCaseTheSameSizeWithinTheGrain(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	for i := range 30 {
		w.tree(map[string]string{"f": fmt.Sprintf("%03d\n", i)})
		w.turnOf(0, func() { w.sh(0, fmt.Sprintf("printf '%03d\\n' > f", i+500)) })
		w.do(rewind.Request{Turn: i})
		w.same(fmt.Sprint("round ", i), map[string]string{"f": fmt.Sprintf("644:%03d\n", i)})
		w.do(rewind.Request{Kind: store.OpUndo})
	}
}

// TestCaseTheStoreInTheWorkspace is never captured by a scan, wherever it lies.
func TestCaseTheStoreInTheWorkspace(t *testing.T) {
	dir := fastDir(t)
	file := filepath.Join(dir, "sub", "store.db")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := workspace.Open(dir, workspace.Options{Protected: []string{filepath.Dir(file)}})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s, err := store.Open(t.Context(), file, store.Options{Create: &store.Workspace{Root: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found, err := (&capture.Capturer{Store: s, Root: root}).Scan(t.Context(), "", false)
	if err != nil || found.Files != 1 || len(found.Gaps) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestCaseALargeFileThatAToolEdits: the limits are those of scans. A file over them that a tool
// announced is covered, and scans do not forget what is known of it.
func TestCaseALargeFileThatAToolEdits(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.capture.Scanning = capture.Scanning{MaxFile: 10}
	w.tree(map[string]string{"big": "a hundred bytes, or more than ten at least\n", "small": "0\n"})
	before := manifest(t, w.dir)
	w.turnOf(0, func() {
		w.sh(0, `echo 1 > small`)
		w.edit(0, "big", "644:edited, and still over the limit of scans\n")
		w.sh(0, `echo 2 > small`)
	})
	w.turnOf(0, func() { w.sh(0, `echo 3 > small`) })
	after := manifest(t, w.dir)
	if res := w.look(rewind.Request{Turn: 0}); len(res.Conflicts) != 0 || len(res.NotCovered) != 0 {
		t.Errorf("conflicts %+v, not covered %+v", res.Conflicts, res.NotCovered)
	}
	w.do(rewind.Request{Turn: 0})
	w.same("rewound", before)
	w.do(rewind.Request{Kind: store.OpUndo})
	w.same("undone", after)
	// A person's edit of it is seen as any other.
	w.tree(map[string]string{"big": "by hand, and over the limit of scans as well\n"})
	w.turnOf(0, func() { w.sh(0, `echo 4 > small`) })
	if res := w.look(rewind.Request{Turn: 0}); len(res.Conflicts) != 1 || res.Conflicts[0].Path != "big" {
		t.Errorf("conflicts %+v", res.Conflicts)
	}
}
