package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/export"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// story plays turns of every kind.
func story(w *world) {
	w.Put("main.go", "package main\n", 0o644)
	w.Put("run.sh", "#!/bin/sh\necho <one> & two\n", 0o755)
	w.Put("gbk.txt", "\xb5\xda\xd2\xbb\xd0\xd0\r\n", 0o644)
	w.Put("wide.txt", "\xff\xfeh\x00i\x00\n\x00", 0o644)
	w.Put("noise.bin", "\xff\x00\xfe\x80\x81\xff\n", 0o600)
	w.Put("empty", "", 0o644)
	w.Must(w.Recorder.Append(w.T.Context(), w.ID, []json.RawMessage{w.say("system", "be good")}))
	w.Turn("edit <all>", []json.RawMessage{w.say("user", "edit <all>")}, func() {
		for _, name := range []string{"main.go", "gbk.txt", "wide.txt", "noise.bin", "empty"} {
			w.Write(name, "changed "+name+"\n", 0o644)
		}
		w.Must(w.Recorder.Append(w.T.Context(), w.ID, []json.RawMessage{w.say("assistant", "done")}))
	})
	w.Turn("only talk", []json.RawMessage{w.say("user", "only talk")}, func() {})
	w.Turn("create and delete", nil, func() {
		w.Write("a/b/new.txt", "new\n", 0o644)
		w.Remove("empty")
		w.Edit(func() { w.Must(os.Chmod(w.Abs("run.sh"), 0o644)) }, "run.sh")
		w.Edit(func() { w.Must(os.Symlink("main.go", w.Abs("link"))) }, "link")
		w.Must(w.Recorder.AddGap(w.T.Context(), w.ID, store.Gap{Reason: store.GapShellNotScanned, Tool: "bash"}))
	})
	w.Turn("again", nil, func() {
		w.Write("main.go", "package main // again\n", 0o600)
		w.Remove("a/b/new.txt")
	})
}

func TestWriteHasTheFormOfTheFormat(t *testing.T) {
	w := newWorld(t)
	story(w)
	out := filepath.Join(t.TempDir(), "out")
	r := w.export(out)
	if r.Turns != 4 || r.JSONL != filepath.Join(out, "abcd1234.jsonl") || r.Dir != filepath.Join(out, "abcd1234.ckpt") {
		t.Errorf("result %+v", r)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(out, name))
		w.Must(err)
		return string(b)
	}
	want := `{"schemaVersion":2,"turn":1,"time":"` + readTurns(t, r.Dir)[1].Time + `","prompt":"only talk","msgIndex":3,"files":null,"coverage":"none"}`
	if diff := cmp.Diff(want, read("abcd1234.ckpt/turn-1.json")); diff != "" {
		t.Errorf("a turn of talk: %s", diff)
	}
	if got := read("abcd1234.ckpt/turn-0.json"); !strings.HasPrefix(got, `{"schemaVersion":2,"turn":0,"time":"20`) ||
		!strings.Contains(got, `"prompt":"edit \u003call\u003e","msgIndex":1,"files":[{"path":"`+w.Dir+`/main.go","content":"package main\n","encoding":0,"mode":420,"sha256":"`) ||
		!strings.HasSuffix(got, `"coverage":"complete","lastMutationSeq":5}`) {
		t.Errorf("turn 0: %s", got)
	}
	turns := readTurns(t, r.Dir)
	for i, kind := range []int{0, 4, 2, 4, 0} {
		if f := turns[0].Files[i]; *f.Encoding != kind || f.CaptureSource != "previewer" || !*f.AfterExisted || f.AfterMode != 0o644 {
			t.Errorf("%s: %+v", f.Path, f)
		}
	}
	if got := *turns[0].Files[1].Content; got != "第一行\r\n" {
		t.Errorf("GB18030 was decoded as %q", got)
	}
	if got := *turns[0].Files[2].Content; got != "hi\n" {
		t.Errorf("UTF-16 was decoded as %q", got)
	}
	var paths, gaps []string
	for _, f := range turns[2].Files {
		paths = append(paths, strings.TrimPrefix(f.Path, w.Dir+"/"))
	}
	for _, g := range turns[2].CoverageGaps {
		gaps = append(gaps, g.Reason+" "+strings.TrimPrefix(g.Path, w.Dir+"/"))
	}
	if diff := cmp.Diff([]string{"a/b/new.txt", "empty", "run.sh"}, paths); diff != "" {
		t.Errorf("paths of turn 2: %s", diff)
	}
	if diff := cmp.Diff([]string{"bash_side_effect ", "capture_failed a", "capture_failed a/b", "symlink link"}, gaps); diff != "" {
		t.Errorf("gaps of turn 2: %s", diff)
	}
	if c := turns[2].Coverage; c != "partial" {
		t.Errorf("coverage of turn 2: %s", c)
	}
	if got := read("abcd1234.jsonl"); got != `{"content":"be good","role":"system"}`+"\n"+
		`{"content":"edit \u003call\u003e","role":"user"}`+"\n"+`{"content":"done","role":"assistant"}`+"\n"+`{"content":"only talk","role":"user"}`+"\n" {
		t.Errorf("messages: %s", got)
	}
	if got := read("abcd1234.jsonl.meta"); !strings.HasPrefix(got, "{\n  \"id\": \"abcd1234\",\n  \"created_at\": \"20") || !strings.HasSuffix(got, "\n}\n") ||
		!strings.Contains(got, `  "turns": 4,`) || !strings.Contains(got, `"schema_version": 1`) {
		t.Errorf("meta: %s", got)
	}
}

// The format's rule gives for every turn what our own rewind gives.
func TestRestoringByTheFormatIsRewinding(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			w.wander(seed)
			out := w.export(filepath.Join(t.TempDir(), "out"))
			now := worldtest.Files(t, w.Dir)
			for k := range w.session().Turns {
				want := restore(t, out.Dir, w.Dir, now, k)
				w.Apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: store.Code})
				if diff := cmp.Diff(want, worldtest.Files(t, w.Dir)); diff != "" {
					t.Errorf("turn %d: the format's rule (-) and rewind (+): %s", k, diff)
				}
				w.Apply(rewind.Request{Kind: store.OpUndo})
			}
		})
	}
}

// wander plays random turns, hand edits and rewinds.
func (w *world) wander(seed uint64) {
	w.T.Helper()
	rnd := rand.New(rand.NewPCG(seed, 2))
	name := func() string { return fmt.Sprintf("f%d", rnd.IntN(6)) }
	for i := range 4 {
		w.Put(fmt.Sprintf("f%d", i), fmt.Sprintf("at first %d", i), 0o644)
	}
	for i := range 12 {
		w.Turn(fmt.Sprintf("turn %d", i), []json.RawMessage{w.say("user", fmt.Sprint("ask ", i))}, func() {
			for range rnd.IntN(4) {
				n := name()
				_, err := os.Stat(w.Abs(n))
				switch {
				case err == nil && rnd.IntN(4) == 0:
					w.Remove(n)
				case rnd.IntN(5) == 0: // a person's hand, seen when the path is next looked at
					w.Put(n, fmt.Sprintf("by hand %d", rnd.Int()), 0o600)
				default:
					w.Write(n, fmt.Sprintf("turn %d %d", i, rnd.Int()), []fs.FileMode{0o644, 0o755}[rnd.IntN(2)])
				}
			}
		})
		switch rnd.IntN(6) {
		case 0:
			w.Apply(rewind.Request{Kind: store.OpRewind, Turn: rnd.IntN(i + 1), Scope: store.Code})
		case 1:
			w.Apply(rewind.Request{Kind: store.OpRewind, Turn: rewind.Latest, Scope: store.Conversation})
			w.Turn("once more", nil, func() {})
		}
	}
	s := w.session()
	// Bring what nobody has looked at yet into the history, as any move does.
	w.Turn("last", nil, func() {})
	for k := range s.Turns {
		w.Apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: store.Code})
		w.Apply(rewind.Request{Kind: store.OpUndo})
	}
}

func TestWriteTwiceGivesTheSameBytes(t *testing.T) {
	w := newWorld(t)
	story(w)
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	w.export(a)
	w.export(b)
	if diff := cmp.Diff(worldtest.Files(t, a), worldtest.Files(t, b)); diff != "" {
		t.Error(diff)
	}
	for name, e := range worldtest.Files(t, a) {
		if e.Mode != 0o600 {
			t.Errorf("%s has mode %v", name, e.Mode)
		}
	}
	w.Must(filepath.WalkDir(a, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if info, _ := d.Info(); info.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
		}
		return err
	}))
	if got := names(t, a); len(got) != 3 {
		t.Errorf("besides what belongs there: %v", got)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteRefusesAPlaceThatHoldsSomething(t *testing.T) {
	w := newWorld(t)
	story(w)
	for _, c := range []struct {
		name    string
		holds   string
		options export.Options
		refused bool
	}{
		{"anything", "x", export.Options{}, true},
		{"anything, among others", "x", export.Options{Among: true}, false},
		{"its own name, among others", "abcd1234.jsonl", export.Options{Among: true}, true},
		{"its own name, overwriting", "abcd1234.jsonl", export.Options{Overwrite: true}, false},
		{"its own folder, overwriting", "abcd1234.ckpt/turn-99.json", export.Options{Overwrite: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			w.Must(os.MkdirAll(filepath.Dir(filepath.Join(dir, c.holds)), 0o755))
			w.Must(os.WriteFile(filepath.Join(dir, c.holds), []byte("before"), 0o644))
			before := worldtest.Files(t, dir)
			c.options.Dir = dir
			_, err := export.Write(t.Context(), w.Capture.Store, w.ID, c.options)
			if refused := errors.Is(err, export.ErrNotEmpty); refused != c.refused {
				t.Fatalf("error %v", err)
			}
			after := worldtest.Files(t, dir)
			if c.refused {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Error(diff)
				}
				return
			}
			if _, ok := after["abcd1234.ckpt/turn-99.json"]; ok {
				t.Error("what was replaced is still there")
			}
			fresh := filepath.Join(t.TempDir(), "fresh")
			w.export(fresh)
			delete(after, "x")
			if diff := cmp.Diff(worldtest.Files(t, fresh), after); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteForAnotherRoot(t *testing.T) {
	w := newWorld(t)
	story(w)
	r, err := export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: t.TempDir(), Root: "/elsewhere/project/"})
	w.Must(err)
	for _, c := range readTurns(t, r.Dir) {
		for _, f := range c.Files {
			if !strings.HasPrefix(f.Path, "/elsewhere/project/") {
				t.Errorf("path %s", f.Path)
			}
		}
	}
	_, err = export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: t.TempDir(), Root: "relative"})
	if !errors.Is(err, export.ErrInvalid) {
		t.Errorf("a relative root: %v", err)
	}
}

func TestWriteLeavesOutNamesThatJSONCannotCarry(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.Abs("n\xff"), nil, 0o644); err != nil {
		t.Skip("the file system takes no such name")
	}
	w.Turn("odd", nil, func() { w.Write("n\xff", "odd\n", 0o644) })
	r := w.export(filepath.Join(t.TempDir(), "out"))
	c := readTurns(t, r.Dir)[0]
	if len(c.Files) != 0 || len(c.CoverageGaps) != 1 || c.Coverage != "none" || r.LeftOut != 1 {
		t.Errorf("%+v, left out %d", c, r.LeftOut)
	}
}

// Any call that fails leaves the place as it was; any kill leaves nothing half under a final name.
func TestWriteFailsAndIsKilledAtEveryCall(t *testing.T) {
	w := newWorld(t)
	w.Put("a", "one", 0o644)
	w.Turn("edit", []json.RawMessage{w.say("user", "edit")}, func() { w.Write("a", "two", 0o644); w.Write("b", "new", 0o644) })
	w.Turn("more", nil, func() { w.Write("a", "three", 0o644) })
	whole := filepath.Join(t.TempDir(), "whole")
	w.export(whole)
	want := worldtest.Files(t, whole)
	boom := errors.New("boom")
	for _, kill := range []bool{false, true} {
		for n := 0; ; n++ {
			dir, calls := filepath.Join(t.TempDir(), "out"), 0
			fault := func(string, string) error {
				if calls++; calls != n+1 {
					return nil
				}
				if kill {
					panic(boom)
				}
				return boom
			}
			err := func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				_, err = export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: dir, Fault: fault})
				return err
			}()
			if err == nil {
				if n < 25 {
					t.Fatalf("only %d calls", n)
				}
				break
			}
			if !errors.Is(err, boom) {
				t.Fatal(err)
			}
			if !kill && len(names(t, dir)) > 0 {
				t.Errorf("call %d failed and left %v", n, names(t, dir))
			}
			if !kill {
				continue
			}
			for _, name := range names(t, dir) {
				if strings.HasPrefix(name, ".reasonix-export-") {
					continue
				}
				part, all := filesNamed(t, dir, name), filesNamed(t, whole, name)
				if diff := cmp.Diff(all, part); diff != "" {
					t.Errorf("killed at call %d, %s: %s", n, name, diff)
				}
			}
			r, err := export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: dir, Overwrite: true})
			w.Must(err)
			if got := filesNamed(t, dir, filepath.Base(r.Dir)); !cmp.Equal(got, filesNamed(t, whole, filepath.Base(r.Dir))) {
				t.Errorf("after a kill at call %d, written again: %s", n, cmp.Diff(want, got))
			}
		}
	}
}

func filesNamed(t *testing.T, dir, name string) map[string]worldtest.Entry {
	t.Helper()
	all := map[string]worldtest.Entry{}
	for n, e := range worldtest.Files(t, dir) {
		if n == name || strings.HasPrefix(n, name+"/") {
			all[n] = e
		}
	}
	return all
}

func TestMessagesOfOtherShapes(t *testing.T) {
	w := newWorld(t)
	for _, m := range []struct{ in, want string }{
		{"{\n  \"role\": \"user\",\r\n \"content\": \"a\\nb\"}", "{   \"role\": \"user\",   \"content\": \"a\\nb\"}"},
		{
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"edit","arguments":"{\"a\":1}"}}]}`,
			`{"role":"assistant","tool_calls":[{"id":"c1","name":"edit","arguments":"{\"a\":1}"}]}`,
		},
		{`{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`, `{"role":"user","content":"one\ntwo"}`},
		{
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"ok"}]}]}`,
			`{"role":"tool","content":"ok","tool_call_id":"c1"}`,
		},
		{`{"type":"weird"}`, `{"role":"user"}`},
		{`{"role":"tool","content":"x","tool_call_id":"c1","unknown":[1]}`, `{"role":"tool","content":"x","tool_call_id":"c1","unknown":[1]}`},
	} {
		w.Must(w.Recorder.Append(t.Context(), w.ID, []json.RawMessage{json.RawMessage(m.in)}))
		r := w.export(filepath.Join(t.TempDir(), "out"))
		b, err := os.ReadFile(r.JSONL)
		w.Must(err)
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if got := lines[len(lines)-1]; got != m.want {
			t.Errorf("%s\n gave %s\nwant %s", m.in, got, m.want)
		}
	}
}

func TestCompactedSessionIsWrittenInFull(t *testing.T) {
	w := newWorld(t)
	story(w)
	w.Must(w.Recorder.Compact(t.Context(), w.ID, 0, -1, []json.RawMessage{w.say("user", "in short")}))
	r := w.export(filepath.Join(t.TempDir(), "out"))
	b, err := os.ReadFile(r.JSONL)
	w.Must(err)
	if n := strings.Count(string(b), "\n"); n != 4 || strings.Contains(string(b), "in short") {
		t.Errorf("%d messages: %s", n, b)
	}
}

func TestHandEditsAloneAreLeftOut(t *testing.T) {
	w := newWorld(t)
	w.Put("mine", "one", 0o644)
	w.Turn("agent", nil, func() { w.Write("mine", "two", 0o644); w.Write("other", "x", 0o644) })
	w.Put("mine", "three, by hand", 0o644)
	w.Turn("looks", nil, func() {
		w.Must(func() error {
			_, err := w.Recorder.BeforeEdit(t.Context(), w.ID, agent.Edit{Tool: "edit", Paths: []string{"mine"}})
			return err
		}())
	})
	turns := readTurns(t, w.export(filepath.Join(t.TempDir(), "out")).Dir)
	if len(turns[1].Files) != 0 {
		t.Errorf("turn 1 names %+v", turns[1].Files)
	}
	w.Turn("edits it after all", nil, func() { w.Write("mine", "four", 0o644) })
	turns = readTurns(t, w.export(filepath.Join(t.TempDir(), "out2")).Dir)
	if len(turns[1].Files) != 1 || *turns[1].Files[0].Content != "two" || turns[1].Files[0].CaptureSource != "manual" {
		t.Errorf("turn 1 names %+v", turns[1].Files)
	}
}
