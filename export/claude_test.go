package export_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// talk writes a transcript as that program does.
type talk struct {
	w     *world
	dir   string // of the program's settings
	lines []string
	last  string
}

func newTalk(w *world) *talk { return &talk{w: w, dir: filepath.Join(w.T.TempDir(), "claude")} }

func (c *talk) path() string { return filepath.Join(c.dir, "projects", "-w-app", "s1.jsonl") }

// add is an entry below the last one.
func (c *talk) add(id, kind, content string) {
	c.lines = append(c.lines, fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":%q,"sessionId":"s1","type":%q,"message":{"role":%q,"content":%s},"uuid":%q,"timestamp":"2026-05-01T00:00:%02dZ"}`,
		parentOf(c.last), c.w.Dir, kind, kind, content, id, len(c.lines)%60))
	c.last = id
}

func parentOf(id string) string {
	if id == "" {
		return "null"
	}
	return fmt.Sprintf("%q", id)
}

func (c *talk) edit(id, tool, file, rest string) {
	c.add(id, "assistant", fmt.Sprintf(`[{"type":"tool_use","id":"t-%s","name":%q,"input":{"file_path":%q%s}}]`, id, tool, c.w.Abs(file), rest))
	c.add(id+"r", "user", fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t-%s","content":"ok"}]`, id))
}

// snap is a line of file history; names are backups, "" of a file that was not there.
func (c *talk) snap(prompt string, update bool, files map[string]string) {
	backups := map[string]any{}
	for name, backup := range files {
		b := map[string]any{"backupFileName": nil, "version": 1}
		if backup != "" {
			b["backupFileName"] = backup
		}
		backups[name] = b
	}
	b, err := json.Marshal(map[string]any{
		"type": "file-history-snapshot", "messageId": prompt, "isSnapshotUpdate": update,
		"snapshot": map[string]any{"messageId": prompt, "trackedFileBackups": backups},
	})
	c.w.Must(err)
	c.lines = append(c.lines, string(b))
}

func (c *talk) backup(name, content string) {
	worldtest.WriteAll(c.w.T, filepath.Join(c.dir, "file-history", "s1"), map[string][]byte{name: []byte(content)})
}

func (c *talk) read() []export.Imported {
	c.w.T.Helper()
	worldtest.WriteAll(c.w.T, filepath.Dir(c.path()), map[string][]byte{"s1.jsonl": []byte(strings.Join(c.lines, "\n") + "\n")})
	all, err := export.ImportClaude(c.w.T.Context(), c.w.Capture.Store, capture.Disk{Capture: c.w.Capture}, c.path(), export.ImportOptions{FromRoot: c.w.Capture.Root.Path()})
	c.w.Must(err)
	return all
}

// TestImportOfATranscript reads a conversation that was rewound once: the live line is the session, the
// one that was left is a fork, and files can be rewound as far as the file history knows them.
func TestImportOfATranscript(t *testing.T) {
	w := newWorld(t)
	c := newTalk(w)
	c.backup("aa@v1", "main one\n")
	c.backup("aa@v2", "main two\n")
	c.lines = append(c.lines, `{"type":"summary","summary":"x"}`, `not JSON`, `{"type":"system","uuid":"sys","parentUuid":null}`)
	c.last = "sys"
	c.snap("p0", false, nil)
	c.add("p0", "user", `"first"`)
	c.snap("p0", true, map[string]string{"main.go": "aa@v1", w.Abs("new.txt"): ""})
	c.edit("a0", "Edit", "main.go", "")
	c.edit("a1", "Write", "new.txt", `,"content":"new\n"`)
	c.snap("p1", false, map[string]string{"main.go": "aa@v2"})
	c.add("p1", "user", `[{"type":"text","text":"second, given up"}]`)
	c.add("a2", "assistant", `[{"type":"text","text":"no"}]`)
	c.last = "a1r"
	c.snap("p2", false, map[string]string{"main.go": "aa@v2"})
	c.add("p2", "user", `"second, better"`)
	c.lines = append(c.lines, `{"type":"file-history-delta","messageId":"p2","trackingPath":"late.txt","backup":{"backupFileName":null}}`)
	c.edit("a3", "Edit", "late.txt", "")
	// Two calls at once: the first result hangs beside the line.
	c.add("a4", "assistant", `[{"type":"tool_use","id":"t4","name":"Read","input":{}}]`)
	c.add("a5", "assistant", `[{"type":"tool_use","id":"t5","name":"Read","input":{}}]`)
	c.last = "a4"
	c.add("r4", "user", `[{"type":"tool_result","tool_use_id":"t4","content":"4"}]`)
	c.last = "a5"
	c.add("r5", "user", `[{"type":"tool_result","tool_use_id":"t5","content":"5"}]`)
	c.add("i", "user", `[{"type":"text","text":"[Request interrupted by user]"}]`)

	w.Put("main.go", "main two\n", 0o644)
	w.Put("new.txt", "new\n", 0o644)
	w.Put("late.txt", "nobody knows\n", 0o644)
	before := [2]map[string]worldtest.Entry{worldtest.Files(t, w.Dir)}
	all := c.read()
	if before[1] = worldtest.Files(t, w.Dir); !cmp.Equal(before[0], before[1]) {
		t.Errorf("files were touched")
	}
	if len(all) != 2 || all[0].Turns != 2 || all[1].Turns != 2 || all[0].Messages != 13 || all[1].Messages != 7 {
		t.Fatalf("imported %+v", all)
	}
	if got := all[0].Warnings; len(got) != 1 || got[0].Code != export.WarnCorrupt {
		t.Errorf("warnings %+v", got)
	}
	fork := all[1].Session
	if fork.Parent != all[0].Session.ID || fork.ForkTurn != 1 || fork.ForkMsg != 5 {
		t.Errorf("the fork: %+v", fork)
	}
	w.Must(w.Capture.Store.View(t.Context(), func(tx *store.Tx) error {
		for n, want := range []string{"first", "second, better"} {
			turn, err := tx.Turn(all[0].Session.Head, n)
			if err != nil || turn.Prompt != want || turn.MsgIndex != int64(5*n) {
				t.Errorf("turn %d: %+v, %v", n, turn, err)
			}
		}
		for m, err := range tx.Messages(all[0].Session.Head, 0, 1) {
			if err != nil || string(m.JSON) != `{"role":"user","content":"first"}` {
				t.Errorf("the first message: %s, %v", m.JSON, err)
			}
		}
		return nil
	}))
	w.ID = all[0].Session.ID
	p, err := w.Engine.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: w.ID, Turn: 1, Scope: store.Code})
	if err == nil || len(p.Result().Conflicts) != 1 || p.Result().Conflicts[0].Path != "late.txt" || p.Result().Conflicts[0].Reason != rewind.Unverified {
		t.Errorf("a file whose last state nobody knows: %v, %+v", err, p.Result())
	}
	w.Apply(rewind.Request{Kind: store.OpRewind, Turn: 0, Scope: store.Code})
	if diff := cmp.Diff(map[string]worldtest.Entry{"main.go": {Mode: 0o644, Content: "main one\n"}}, worldtest.Files(t, w.Dir)); diff != "" {
		t.Errorf("at turn 0: %s", diff)
	}
	w.Apply(rewind.Request{Kind: store.OpUndo})
	if diff := cmp.Diff(before[0], worldtest.Files(t, w.Dir)); diff != "" {
		t.Errorf("after the undo: %s", diff)
	}
	again := c.read()
	if len(again) != 2 || !again[0].Before || !again[1].Before || again[1].Session.ID != fork.ID {
		t.Errorf("imported again: %+v", again)
	}
}

// TestHostileTranscripts: names that lead out, in paths and backups, cost a warning each.
func TestHostileTranscripts(t *testing.T) {
	for name, x := range map[string]struct{ path, backup, code string }{
		"path up":       {"../x", "aa@v1", export.WarnOutside},
		"absolute path": {"/etc/passwd", "aa@v1", export.WarnOutside},
		"git":           {".git/config", "aa@v1", export.WarnPath},
		"backup up":     {"x", "../../projects/-w-app/s1.jsonl", export.WarnBlob},
		"backup absent": {"x", "bb@v9", export.WarnBlob},
		"backup a link": {"x", "ln@v1", export.WarnBlob},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Put("x", "mine", 0o644)
			c := newTalk(w)
			c.backup("aa@v1", "one")
			w.Must(os.Symlink("/etc/passwd", filepath.Join(c.dir, "file-history", "s1", "ln@v1")))
			c.add("p0", "user", `"first"`)
			c.snap("p0", true, map[string]string{x.path: x.backup})
			c.edit("a0", "Edit", "x", "")
			before := worldtest.Files(t, filepath.Dir(w.Dir))
			all := c.read()
			if got := all[0].Warnings; len(got) != 1 || got[0].Code != x.code || all[0].Turns != 1 {
				t.Errorf("%+v", all)
			}
			if diff := cmp.Diff(before, worldtest.Files(t, filepath.Dir(w.Dir))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzImportTranscript reads any bytes as a transcript of Claude Code.
func FuzzImportTranscript(f *testing.F) {
	f.Add([]byte(`{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"x"}}` + "\n" +
		`{"type":"assistant","uuid":"b","parentUuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","name":"Write","input":{"file_path":"good.txt","content":"x"}}]}}` + "\n" +
		`{"type":"file-history-snapshot","messageId":"a","snapshot":{"trackedFileBackups":{"good.txt":{"backupFileName":null},"../x":{}}}}` + "\n"))
	f.Add([]byte(`{"type":"user","uuid":"a","parentUuid":"a","message":{"content":[{"type":"tool_result"}]}}` + "\n[]\n"))
	f.Add([]byte(`{"type":"file-history-delta","messageId":"a","trackingPath":"/","backup":{"backupFileName":"x@v1"}}`))
	w := newWorld(f)
	w.Put("good.txt", "mine", 0o644)
	before := worldtest.Files(f, filepath.Dir(w.Dir))
	dir, n := f.TempDir(), 0
	f.Fuzz(func(t *testing.T, lines []byte) {
		n++
		path := filepath.Join(dir, fmt.Sprintf("t%d.jsonl", n))
		if err := os.WriteFile(path, lines, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := export.ImportClaude(t.Context(), w.Capture.Store, capture.Disk{Capture: w.Capture}, path, export.ImportOptions{FromRoot: w.Capture.Root.Path()})
		if diff := cmp.Diff(before, worldtest.Files(t, filepath.Dir(w.Dir))); diff != "" {
			t.Fatal(diff)
		}
		if err == nil && len(all) == 0 {
			t.Error("nothing was imported, and no error")
		}
	})
}
