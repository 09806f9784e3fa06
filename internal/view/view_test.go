package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/view"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

func lines(n int, with string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return strings.Replace(b.String(), "line 7\n", with, 1)
}

// story has every kind of change that text can say; with odd names where patch knows quotes.
func story(w *world) {
	w.Put("a.txt", lines(30, "line 7\n"), 0o644)
	w.Put("gone.txt", "going\n", 0o644)
	w.Put("old name.txt", "moved as it is\n", 0o644)
	w.Put("bare", "no newline", 0o644)
	w.turn("edits", func() {
		w.Write("a.txt", lines(30, "line seven\n"), 0o644)
		w.Remove("gone.txt")
		w.Write("dir/new file.txt", "new\n", 0o644)
	})
	w.turn("rename", func() {
		w.Edit(func() { w.Must(os.Rename(w.Abs("old name.txt"), w.Abs("renamed.txt"))) }, "old name.txt", "renamed.txt")
		w.Write("bare", "no newline, longer", 0o644)
	})
	w.turn("mode, link, empty", func() {
		w.Edit(func() { w.Must(os.Chmod(w.Abs("a.txt"), 0o755)) }, "a.txt")
		w.Edit(func() { w.Must(os.Symlink("a.txt", w.Abs("link"))) }, "link")
		w.Write("empty", "", 0o644)
		w.Write("quo\"te\\ä\t.txt", "odd\n", 0o600)
	})
	w.turn("back", func() {
		w.Write("a.txt", "all other\n", 0o644)
		w.Edit(func() { w.Must(os.Remove(w.Abs("link"))); w.Must(os.Symlink("bare", w.Abs("link"))) }, "link")
		w.Remove("empty")
		w.Write("bare", "with newline\n", 0o644)
	})
	w.turn("talk", func() {})
}

func (w *world) patch(a, b view.Side) string {
	w.T.Helper()
	pairs, err := w.view.Pairs(w.T.Context(), a, b, nil)
	w.Must(err)
	var text bytes.Buffer
	for _, p := range pairs {
		f, err := w.view.File(w.T.Context(), p)
		w.Must(err)
		w.Must(view.WritePatch(&text, f, view.Plain))
	}
	return text.String()
}

func (w *world) side(n int) view.Side { return view.Side{Session: w.ID, Turn: n} }

// Every difference, applied with patch to the files of one side, gives those of the other.
func TestPatchApplies(t *testing.T) {
	tool, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("there is no patch program here")
	}
	w := newWorld(t)
	story(w)
	for a := range w.starts {
		for b := range w.starts {
			text := w.patch(w.side(a), w.side(b))
			dir := lay(t, w.starts[a])
			if text == "" {
				continue
			}
			cmd := exec.Command(tool, "-p1", "--no-backup-if-mismatch")
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%d to %d: %v\n%s\n%s", a, b, err, out, text)
			}
			if diff := cmp.Diff(w.starts[b], worldtest.Files(t, dir)); diff != "" {
				t.Errorf("%d to %d: %s\n%s", a, b, diff, text)
			}
		}
	}
}

func TestPatchAgainstTheDisk(t *testing.T) {
	w := newWorld(t)
	story(w)
	w.Put("a.txt", "by hand\n", 0o644) // of which the history knows nothing yet
	w.Must(os.Remove(w.Abs("bare")))
	if text := w.patch(w.side(5), view.Side{Disk: true}); text != `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-all other
+by hand
diff --git a/bare b/bare
deleted file mode 100644
--- a/bare
+++ /dev/null
@@ -1 +0,0 @@
-with newline
` {
		t.Errorf("patch:\n%s", text)
	}
	pairs, err := w.view.Pairs(t.Context(), w.side(0), view.Side{Disk: true}, []store.Path{"dir", "gone.txt"})
	w.Must(err)
	if len(pairs) != 3 { // dir itself, the file in it, and gone.txt
		t.Errorf("pairs %+v", pairs)
	}
}

func TestPatchOfOtherKinds(t *testing.T) {
	w := newWorld(t)
	w.Put("bin", "a\x00b", 0o644)
	w.Put("turns", "text\n", 0o644)
	w.turn("kinds", func() {
		w.Write("bin", "a\x00c", 0o755)
		w.Edit(func() { w.Must(os.Remove(w.Abs("turns"))); w.Must(os.Symlink("bin", w.Abs("turns"))) }, "turns")
		w.Edit(func() { w.Must(os.Mkdir(w.Abs("folder"), 0o755)) }, "folder")
	})
	if got, want := w.patch(w.side(0), w.side(1)), `Binary files a/bin and b/bin differ
diff --git a/bin b/bin
old mode 100644
new mode 100755
Folder folder: created, mode 0755
diff --git a/turns b/turns
deleted file mode 100644
--- a/turns
+++ /dev/null
@@ -1 +0,0 @@
-text
diff --git a/turns b/turns
new file mode 120000
--- /dev/null
+++ b/turns
@@ -0,0 +1 @@
+bin
\ No newline at end of file
`; got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestCheckpoints(t *testing.T) {
	w := newWorld(t)
	story(w)
	w.Must(w.Recorder.AddGap(t.Context(), w.ID, store.Gap{Reason: store.GapShellNotScanned, Tool: "bash"}))
	all, err := w.view.Checkpoints(t.Context(), w.ID, view.Page{Before: -1, Count: true})
	w.Must(err)
	if len(all.Checkpoints) != 5 || all.More || all.Turns != 5 {
		t.Fatalf("%+v", all)
	}
	newest, edits, rename := all.Checkpoints[0], all.Checkpoints[4], all.Checkpoints[3]
	if newest.Turn != 4 || newest.CanCode || !newest.CanConversation || len(newest.Gaps) != 1 || len(newest.Files) != 0 {
		t.Errorf("newest %+v", newest)
	}
	b, err := json.Marshal(edits.Files)
	w.Must(err)
	if want := `[{"path":"a.txt","change":"modified","source":"tool","added":1,"removed":1},{"path":"dir/","change":"created","source":"tool"},` +
		`{"path":"dir/new file.txt","change":"created","source":"tool","added":1,"removed":0},{"path":"gone.txt","change":"deleted","source":"tool","added":0,"removed":1}]`; string(b) != want {
		t.Errorf("files %s\nwant %s", b, want)
	}
	if r := rename.Files[1]; r.Change != view.Renamed || r.From != "old name.txt" || r.Path != "renamed.txt" {
		t.Errorf("rename %+v", r)
	}
	page, err := w.view.Checkpoints(t.Context(), w.ID, view.Page{Before: 3, Limit: 2})
	w.Must(err)
	if len(page.Checkpoints) != 2 || page.Checkpoints[0].Turn != 2 || !page.More || page.Checkpoints[0].Files[0].Added != nil {
		t.Errorf("page %+v", page)
	}
}

func TestTurnTellsWhatOthersDid(t *testing.T) {
	w := newWorld(t)
	w.Put("a", "1\n", 0o644)
	w.turn("first", func() { w.Write("a", "2\n", 0o644) })
	w.Put("a", "by hand\n", 0o644)
	w.turn("second", func() { w.Write("a", "3\n", 0o644) })
	w.Apply(rewind.Request{Kind: store.OpRewind, Turn: 0, Scope: store.Code})
	one, err := w.view.Turn(t.Context(), w.ID, 1)
	w.Must(err)
	var others []string
	for _, o := range one.Others {
		others = append(others, o.Source+" "+o.Path+" "+o.Change.Change)
	}
	if diff := cmp.Diff([]string{"external a modified", "restore a modified"}, others); diff != "" {
		t.Error(diff)
	}
	if len(one.Files) != 1 || *one.Files[0].Added != 1 || *one.Files[0].Removed != 1 || one.EndedMS == nil {
		t.Errorf("%+v", one)
	}
}

func TestTipIsWhereTheLastTurnEnded(t *testing.T) {
	w := newWorld(t)
	story(w)
	end := worldtest.Files(t, w.Dir)
	w.Apply(rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Code})
	s, err := w.view.StateAt(t.Context(), w.side(5), "a.txt")
	w.Must(err)
	if s.Size != int64(len(end["a.txt"].Content)) {
		t.Errorf("a.txt at the tip: %v", s)
	}
	if text := w.patch(w.side(4), w.side(5)); text != "" {
		t.Errorf("the last turn changed nothing, the difference is\n%s", text)
	}
	if text := w.patch(w.side(1), view.Side{Disk: true}); text != "" {
		t.Errorf("the disk is at turn 1, the difference is\n%s", text)
	}
}

func TestStateAtAndHistory(t *testing.T) {
	w := newWorld(t)
	story(w)
	for n, start := range w.starts {
		for name, e := range start {
			s, err := w.view.StateAt(t.Context(), w.side(n), store.Path(name))
			w.Must(err)
			if s.Size != int64(len(e.Content)) {
				t.Errorf("%s at %d: %v", name, n, s)
			}
		}
	}
	if s, err := w.view.StateAt(t.Context(), w.side(0), "link"); err != nil || s.Kind != store.Absent {
		t.Errorf("link at 0: %v, %v", s, err)
	}
	if s, err := w.view.StateAt(t.Context(), w.side(0), "never"); err != nil || s.Known() {
		t.Errorf("never at 0: %v, %v", s, err)
	}
	h, err := w.view.History(t.Context(), w.ID, "a.txt")
	w.Must(err)
	var got []string
	for _, v := range h.Versions {
		got = append(got, fmt.Sprintf("%d %s %s", v.Turn, v.Source, v.Change))
	}
	if diff := cmp.Diff([]string{"3 tool modified", "2 tool mode", "0 tool modified"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTreeAndForks(t *testing.T) {
	w := newWorld(t)
	story(w)
	first := w.ID
	fork := w.Apply(rewind.Request{Kind: store.OpFork, Turn: 2, Name: "other"})
	w.ID = fork.Branch
	w.Apply(rewind.Request{Kind: store.OpFork, Turn: 0})
	tree, err := w.view.Tree(t.Context())
	w.Must(err)
	if len(tree) != 1 || tree[0].Session != first || tree[0].Forks[0].Name != "other" || *tree[0].Forks[0].ForkTurn != 2 ||
		!tree[0].Forks[0].Forks[0].IsCurrent {
		b, _ := json.Marshal(tree)
		t.Errorf("tree %s", b)
	}
	// What a fork shares with its parent is not different.
	pairs, err := w.view.Pairs(t.Context(), view.Side{Session: first, Turn: 2}, view.Side{Session: fork.Branch, Turn: 1}, nil)
	w.Must(err)
	if len(pairs) == 0 {
		t.Error("turn 1 changed something")
	}
}

func TestLargeAndManyLines(t *testing.T) {
	w := newWorld(t)
	big := strings.Repeat("0123456789\n", 1<<20)
	w.Put("big", big, 0o644)
	var a, b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&a, "%d\n", i)
		fmt.Fprintf(&b, "%d\n", i*7919%60_000)
	}
	w.Put("many", a.String(), 0o644)
	w.turn("big", func() { w.Write("big", big+"x\n", 0o644); w.Write("many", b.String(), 0o644) })
	text := w.patch(w.side(0), w.side(1))
	if !strings.HasPrefix(text, "Large files a/big and b/big differ\n") || !strings.Contains(text, "\n+++ b/many\n") {
		t.Errorf("patch begins %.80s", text)
	}
}

func TestNamesThatAreNotUTF8(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.Abs("n\xff"), nil, 0o644); err != nil {
		t.Skip("the file system takes no such name")
	}
	w.turn("odd", func() { w.Write("n\xff", "odd\n", 0o644) })
	page, err := w.view.Checkpoints(t.Context(), w.ID, view.Page{Before: -1})
	w.Must(err)
	if f := page.Checkpoints[0].Files[0]; f.Path != "n\uFFFD" || f.B64 != "bv8=" {
		t.Errorf("%+v", f)
	}
	if text := w.patch(w.side(0), w.side(1)); !strings.Contains(text, `+++ "b/n\377"`) {
		t.Errorf("patch:\n%s", text)
	}
}

func BenchmarkNewestPage(b *testing.B) {
	w := newWorld(b)
	for i := range 2000 {
		w.starts = nil
		w.turn("t", func() { w.Write(fmt.Sprintf("f%d", i%50), fmt.Sprint(i), 0o644) })
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.view.Checkpoints(b.Context(), w.ID, view.Page{Before: -1, Limit: 50}); err != nil {
			b.Fatal(err)
		}
	}
}
