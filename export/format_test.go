package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"reasonix/agent"
	"reasonix/export"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// bytesOf is a reader of version 1: what it writes for a text of a kind.
func bytesOf(t *testing.T, f ckptFile) string {
	t.Helper()
	kind, text := 0, *f.Content
	if f.Encoding != nil {
		kind = *f.Encoding
	}
	var err error
	switch kind {
	case 0:
	case 2:
		text, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	case 4:
		text, err = simplifiedchinese.GB18030.NewEncoder().String(text)
	default:
		t.Fatalf("%s has kind %d", f.Path, kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A reader of version 1 restores every text, and the export names what it does not.
func TestVersion1RestoresTexts(t *testing.T) {
	w := newWorld(t)
	story(w)
	r, err := export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: filepath.Join(t.TempDir(), "out"), Format: export.V1})
	w.Must(err)
	if diff := cmp.Diff([]store.Path{"noise.bin"}, r.InexactPaths); diff != "" || r.Inexact != 1 {
		t.Errorf("%d inexact: %s", r.Inexact, diff)
	}
	if got := names(t, r.Dir); !cmp.Equal(got, []string{"turn-0.json", "turn-1.json", "turn-2.json", "turn-3.json"}) {
		t.Errorf("files %v", got)
	}
	var turns []ckptTurn
	for n := range 4 {
		b, err := os.ReadFile(filepath.Join(r.Dir, fmt.Sprintf("turn-%d.json", n)))
		w.Must(err)
		var fields map[string]json.RawMessage
		w.Must(json.Unmarshal(b, &fields))
		if len(fields) != 5 {
			t.Errorf("turn %d has other fields: %s", n, b)
		}
		var c ckptTurn
		w.Must(json.Unmarshal(b, &c))
		turns = append(turns, c)
	}
	for k := range turns {
		want := worldtest.Files(t, w.Dir)
		done := map[string]bool{}
		for _, c := range turns[k:] {
			for _, f := range c.Files {
				rel := strings.TrimPrefix(f.Path, w.Dir+"/")
				switch {
				case done[rel]:
				case f.Content == nil:
					delete(want, rel)
				default:
					want[rel] = worldtest.Entry{Content: bytesOf(t, f)}
				}
				done[rel] = true
			}
		}
		w.Apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: store.Code})
		if diff := cmp.Diff(texts(want), texts(worldtest.Files(t, w.Dir))); diff != "" {
			t.Errorf("turn %d: the rule of version 1 (-) and rewind (+): %s", k, diff)
		}
		w.Apply(rewind.Request{Kind: store.OpUndo})
	}
}

// texts are the contents that version 1 has.
func texts(all map[string]worldtest.Entry) map[string]string {
	out := map[string]string{}
	for name, e := range all {
		if name != "noise.bin" && e.Mode&fs.ModeSymlink == 0 {
			out[name] = e.Content
		}
	}
	return out
}

func TestWriteAllIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	story(w)
	first := w.ID
	other := w.fork(2)
	tip := w.fork(4)
	ids := []store.SessionID{first, other, tip}
	dir := filepath.Join(t.TempDir(), "out")
	all, err := export.WriteAll(t.Context(), w.Capture.Store, ids, export.Options{Dir: dir})
	w.Must(err)
	if len(all) != 3 || all[1].Session != other || all[1].Turns != 2 {
		t.Fatalf("results %+v", all)
	}
	for n, want := range []struct {
		parent string
		turn   int
		msg    any
	}{{"", 0, nil}, {string(first), 2, 4.0}, {string(first), -1, 4.0}} {
		b, err := os.ReadFile(all[n].Meta)
		w.Must(err)
		var m struct {
			Parent string `json:"parent_id"`
			Turn   int    `json:"fork_turn"`
			Msg    any    `json:"fork_message_index"`
		}
		w.Must(json.Unmarshal(b, &m))
		if m.Parent != want.parent || m.Turn != want.turn || m.Msg != want.msg {
			t.Errorf("session %d was forked at %+v, not %+v", n, m, want)
		}
	}
	alone := filepath.Join(t.TempDir(), "alone")
	w.export(alone)
	for _, name := range names(t, alone) {
		if diff := cmp.Diff(filesNamed(t, alone, name), filesNamed(t, dir, name)); diff != "" {
			t.Errorf("with others %s is another: %s", name, diff)
		}
	}
	before := worldtest.Files(t, dir)
	boom := errors.New("boom")
	for _, at := range []string{string(other) + ".jsonl", string(tip) + ".ckpt"} {
		_, err = export.WriteAll(t.Context(), w.Capture.Store, ids, export.Options{Dir: dir, Overwrite: true, Fault: func(op, name string) error {
			if op == "rename" && name == filepath.Join(dir, at) {
				return boom
			}
			return nil
		}})
		if !errors.Is(err, boom) {
			t.Fatalf("%s: %v", at, err)
		}
		if diff := cmp.Diff(before, worldtest.Files(t, dir)); diff != "" {
			t.Errorf("%s could not be renamed: %s", at, diff)
		}
	}
	_, err = export.WriteAll(t.Context(), w.Capture.Store, append(ids, "nobody"), export.Options{Dir: filepath.Join(t.TempDir(), "x")})
	if !errors.Is(err, store.ErrNoSession) {
		t.Errorf("a session that is not there: %v", err)
	}
}

func (w *world) fork(turn int) store.SessionID {
	w.T.Helper()
	r := w.Apply(rewind.Request{Kind: store.OpFork, Turn: turn})
	return r.Branch
}

// A command that has not ended may still write: the turns say so.
func TestRunningCommandsAreActiveWriters(t *testing.T) {
	w := newWorld(t)
	_, err := w.Recorder.BeginTurn(t.Context(), w.ID, "", "build", nil)
	w.Must(err)
	_, err = w.Recorder.BeforeExec(t.Context(), w.ID, agent.Exec{Call: "c1", Tool: "bash"})
	w.Must(err)
	r := w.export(filepath.Join(t.TempDir(), "out"))
	b, err := os.ReadFile(filepath.Join(r.Dir, "turn-0.json"))
	w.Must(err)
	if !strings.Contains(string(b), `"activeWriters":[{"id":"c1","turn":0,"startedAt":"20`) || !strings.Contains(string(b), `,"kind":"bash"}]`) {
		t.Errorf("turn 0: %s", b)
	}
	_, err = w.Recorder.AfterExec(t.Context(), w.ID, agent.Exec{Call: "c1", Tool: "bash"})
	w.Must(err)
	w.Must(w.Recorder.EndTurn(t.Context(), w.ID, store.TurnDone))
	r = w.export(filepath.Join(t.TempDir(), "after"))
	b, err = os.ReadFile(filepath.Join(r.Dir, "turn-0.json"))
	w.Must(err)
	if strings.Contains(string(b), "activeWriters") {
		t.Errorf("turn 0 when the command is over: %s", b)
	}
}

// Lines of that program go back byte for byte, whatever they hold.
func TestOriginalLinesAreKept(t *testing.T) {
	w := newWorld(t)
	lines := []string{
		`{"role":"system","content":"a \u003cb\u003e \u2028 é é"}`,
		`{"role":"user","content":"seen","raw_content":"typed","images":["data:image/png;base64,AA=="],"createdAt":1796080742361}`,
		`{"role":"assistant","reasoning_content":"hm","reasoning_signature":"s","tool_calls":[{"id":"c1","name":"edit","arguments":"{\"function\":1}","diff":"--- a","added":1}],"workDurationMs":1}`,
		`{"role":"tool","content":"ok","tool_call_id":"c1","name":"edit","unknown":{"deep":[1.50,1e3]},"local_only":true}`,
		`{"content":"other order","role":"assistant",  "createdAt":0}`,
		`{"role":"assistant","tool_calls":[{"id":"","name":"","arguments":"\"function\""}]}`,
	}
	var raw []json.RawMessage
	for _, l := range lines {
		raw = append(raw, json.RawMessage(l))
	}
	w.Must(w.Recorder.Append(t.Context(), w.ID, raw))
	r := w.export(filepath.Join(t.TempDir(), "out"))
	b, err := os.ReadFile(r.JSONL)
	w.Must(err)
	if diff := cmp.Diff(strings.Join(lines, "\n")+"\n", string(b)); diff != "" || r.Converted != 0 {
		t.Errorf("%d converted: %s", r.Converted, diff)
	}
}
