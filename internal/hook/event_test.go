package hook

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/store"
)

func TestGeneric(t *testing.T) {
	got, err := Generic([]byte("\xef\xbb\xbf" + `{"v":1,"event":"before-edit","source":"a","session":"s","cwd":"/w","roots":["/w"],
		"turn_key":"k","call":"c","agent":"sub","tool":"edit","paths":["x",{"b64":"/w=="}],"new":[1],
		"pre":{"x":{"b64":""},"y":{"absent":true}},"prompt":"p","messages":[ {"a" : 1} ],"status":"aborted"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{
		Kind: BeforeEdit, Source: "a", Session: "s", Cwd: "/w", Roots: []string{"/w"}, TurnKey: "k", Call: "c", Tool: "edit",
		Paths: []string{"x", "\xff"}, Given: map[string][]byte{"x": {}, "y": nil}, Prompt: "p",
		Messages: []json.RawMessage{[]byte(`{"a" : 1}`)}, To: -1, Status: store.TurnInterrupted,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	// A content that is there but empty is not an absent one.
	if got.Given["x"] == nil || got.Given["y"] != nil {
		t.Fatalf("given: %#v", got.Given)
	}

	got, err = Generic([]byte(`{"event":"compact","session":"s","from_idx":2,"to_idx":5}`))
	if err != nil || got.From != 2 || got.To != 5 || got.Status != store.TurnDone {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = Generic([]byte(`{"event":"compact","session":"s","from_idx":null,"prompt":null,"paths":null}`))
	if err != nil || got.From != 0 || got.To != -1 {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestMalformedEvents(t *testing.T) {
	for _, raw := range []string{
		``, `null`, `[]`, `"x"`, `{`, `{} {}`, `{"event":"message"}`, `{"session":"s"}`,
		`{"event":"nonsense","session":"s"}`, `{"event":7,"session":"s"}`, `{"event":"message","session":7}`,
		`{"v":2,"event":"message","session":"s"}`, `{"v":"1","event":"message","session":"s"}`,
		`{"event":"message","session":"s","cwd":"rel"}`, `{"event":"message","session":"s","roots":["rel"]}`,
		`{"event":"message","session":"s","messages":{}}`,
		`{"event":"before-edit","session":"s"}`, `{"event":"before-edit","session":"s","paths":"x"}`,
		`{"event":"before-edit","session":"s","paths":[7]}`, `{"event":"before-edit","session":"s","paths":[{"b64":"?"}]}`,
		`{"event":"before-edit","session":"s","paths":[{}]}`, `{"event":"before-edit","session":"s","paths":["\ud800"]}`,
		`{"event":"before-edit","session":"s","paths":["x"],"pre":{"x":{}}}`,
		`{"event":"before-edit","session":"s","paths":["x"],"pre":{"x":{"b64":"","absent":true}}}`,
		`{"event":"before-tool","session":"s"}`, `{"event":"end-turn","session":"s","status":"happy"}`,
		`{"event":"message","session":"` + strings.Repeat("s", 2000) + `"}`,
	} {
		if e, err := Generic([]byte(raw)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", raw, e, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("the error repeats the event: %v", err)
		}
	}
}

// Names are bytes: nothing may turn them into other names.
func TestNames(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`:                     "a",
		`"\u00e9\n\t\"\\\/"`:      "é\n\t\"\\/",
		`"e\u0301"`:               "e\u0301",
		`"\ud83d\ude00"`:          "😀",
		"\"\xff\xfe\"":            "\xff\xfe",
		`"\udcff\udc80"`:          "\xff\x80",
		`"x\udcffy"`:              "x\xffy",
		`{"b64":"YQBi","x":null}`: "a\x00b",
		`null`:                    "",
	} {
		var n name
		if err := json.Unmarshal([]byte(raw), &n); err != nil || string(n) != want {
			t.Errorf("%s: %q, %v; want %q", raw, n, err, want)
		}
	}
}

func TestTools(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		use         toolUse
		paths       []string
	}{
		{"Write", `{"file_path":"/w/a","content":"x"}`, editTool, []string{"/w/a"}},
		{"write_file", `{"path":"a"}`, editTool, []string{"a"}},
		{"edit_file", `{"path":"a","edits":[]}`, editTool, []string{"a"}},
		{"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x"}]}`, editTool, []string{"a"}},
		{"multi_edit", `{"paths":["b","a","b"]}`, editTool, []string{"a", "b"}},
		{"editFiles", `{"files":[{"path":"a"},"b"]}`, editTool, []string{"a", "b"}},
		{"move_file", `{"source":"a","destination":"b"}`, editTool, []string{"a", "b"}},
		{"delete_file", `{"path":{"b64":"/w=="}}`, editTool, []string{"\xff"}},
		{"mcp__fs__write_file", `{"path":"a"}`, editTool, []string{"a"}},
		{"functions.write", `{"path":"a"}`, editTool, []string{"a"}},
		{"NotebookEdit", `{"notebook_path":"n"}`, editTool, []string{"n"}},
		{"apply_patch", `{"command":["apply_patch","*** Begin Patch\n*** Update File: a b\r\n*** Move to: c\n@@\n*** Delete File: d\n*** Add File: e\n+x"]}`, editTool, []string{"a b", "c", "d", "e"}},
		{"apply_patch", `"*** Add File: e\n"`, editTool, []string{"e"}},
		{"write", `{"content":"x"}`, editTool, nil},
		{"write", `[]`, editTool, nil},
		{"write", ``, editTool, nil},
		{"Bash", `{"command":"ls"}`, execTool, nil},
		{"run_shell_command", `{}`, execTool, nil},
		{"read_file", `{"path":"a"}`, otherTool, nil},
		{"", `{}`, otherTool, nil},
	} {
		does, paths := use(c.tool, json.RawMessage(c.input))
		if does != c.use {
			t.Errorf("%s: %d, want %d", c.tool, does, c.use)
		}
		if diff := cmp.Diff(c.paths, paths); diff != "" {
			t.Errorf("%s %s: %s", c.tool, c.input, diff)
		}
	}
}

func FuzzGeneric(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"event":"begin-turn","session":"s","cwd":"/w","prompt":"p","messages":[{"role":"user"}]}`,
		`{"event":"before-edit","session":"s","paths":["a",{"b64":"/w=="},"\udcff"],"pre":{"a":{"absent":true}}}`,
		`{"event":"before-tool","session":"s","tool":"apply_patch","input":{"input":"*** Add File: x\n"}}`,
		`{"event":"compact","session":"s","from_idx":0,"to_idx":-1}`,
		`{"event":"end-turn","session":"s","status":"error"}`,
		"{\"event\":\"after-edit\",\"session\":\"s\",\"paths\":[\"\xff\\u0000\\ud83d\\ude00\"]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Generic(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v is not ErrMalformed", err)
			}
			return
		}
		if err := e.check(); err != nil {
			t.Fatalf("accepted %+v: %v", e, err)
		}
		for _, m := range e.Messages {
			if !json.Valid(m) {
				t.Fatalf("message %q is not JSON", m)
			}
		}
		if does, paths := use(e.Tool, e.Input); does != editTool && len(paths) > 0 {
			t.Fatalf("%s edits nothing and names %q", e.Tool, paths)
		}
	})
}
