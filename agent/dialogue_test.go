package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/agent"
	"reasonix/internal/llm/fakellm"
	"reasonix/rewind"
	"reasonix/store"
)

// dialogue is what the model does in each of twelve turns.
var dialogue = [][]fakellm.Reply{
	{calls(write("go.mod", "module demo\n"), write("main.go", "package main\n\nfunc main() {}\n")), said("set up")},
	{calls(call("read_file", map[string]string{"path": "main.go"}), call("list_dir", map[string]string{"path": "."}), call("glob", map[string]string{"pattern": "*.go"})), said("looked")},
	{calls(call("edit_file", map[string]string{"path": "main.go", "old_string": "func main() {}", "new_string": "func main() { println(1) }"})), said("edited")},
	{calls(shell("mkdir -p pkg/a && echo one > pkg/a/one.txt && chmod 600 go.mod")), said("ran")},
	{said("only talked")},
	{calls(write("pkg/a/two.txt", "zwei ü\n"), shell("mv pkg/a/one.txt pkg/uno.txt; rm main.go")), said("moved")},
	{calls(call("move_file", map[string]string{"from": "pkg/a/two.txt", "to": "two.txt"})), calls(shell("false")), said("failed and went on")},
	{calls(call("delete_file", map[string]string{"path": "pkg/uno.txt"})), said("deleted")},
	{calls(shell("for i in 1 2 3 4 5; do echo $i > n$i.txt; done; ln -s two.txt link")), said("made")},
	{calls(call("no_such_tool", nil), fakellm.Call{Name: "write_file", Arguments: json.RawMessage(`"{\"path\": \"x"`)}), said("erred")},
	{calls(call("multi_edit", map[string]any{"path": "two.txt", "edits": []map[string]string{
		{"old_string": "zwei", "new_string": "two"}, {"old_string": "ü", "new_string": "ue"},
	}})), said("twice")},
	{calls(shell("printf '\\000\\001' > bin; rm n1.txt; echo more >> two.txt"), write("main.go", "package main\n")), said("done")},
}

// moment is the world at the start of a turn.
type moment struct {
	files    map[string]string
	requests int // that were made so far
}

func (k *talk) files() map[string]string {
	k.T.Helper()
	all := map[string]string{}
	k.Must(filepath.WalkDir(k.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == k.Dir {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(k.Dir, name)
		switch {
		case d.IsDir():
			all[rel] = fi.Mode().String()
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			all[rel] = "-> " + target
			return err
		default:
			b, err := os.ReadFile(name)
			all[rel] = fi.Mode().String() + " " + string(b)
			return err
		}
		return nil
	}))
	return all
}

// TestDialogue plays twelve turns, rewinds to each of them, and goes on from there as it was: the
// files are those of then, the server takes the conversation, and each request is byte for byte
// the one of then, so that the server's cache still holds.
func TestDialogue(t *testing.T) {
	k := newTalk(t, agent.Options{})
	var moments []moment
	for i, replies := range dialogue {
		moments = append(moments, moment{k.files(), len(k.fake.Requests())})
		k.submit(fmt.Sprintf("turn %d", i), numbered(i, replies)...)
	}
	end := k.files()
	if len(end) < 8 {
		t.Fatalf("little happened: %v", end)
	}
	first := k.fake.Requests()
	for turn := len(dialogue) - 1; turn >= 0; turn-- {
		_, err := k.agent.Rewind(turn, agent.RewindBoth)
		k.Must(err)
		if got := k.files(); !maps.Equal(got, moments[turn].files) {
			t.Fatalf("turn %d: the files are\n%v, want\n%v", turn, got, moments[turn].files)
		}
		before := len(k.fake.Requests())
		for i := turn; i < len(dialogue); i++ {
			k.submit(fmt.Sprintf("turn %d", i), numbered(i, dialogue[i])...)
		}
		again := k.fake.Requests()[before:]
		then := first[moments[turn].requests:]
		if len(again) != len(then) {
			t.Fatalf("turn %d: %d requests, then %d", turn, len(again), len(then))
		}
		for i := range again {
			if !bytes.Equal(again[i].Body, then[i].Body) {
				t.Fatalf("turn %d, request %d differs:\n%s\n%s", turn, i, again[i].Body, then[i].Body)
			}
			if again[i].Hit != again[i].Total {
				t.Errorf("turn %d, request %d: %d of %d tokens from the cache", turn, i, again[i].Hit, again[i].Total)
			}
		}
		if got := k.files(); !maps.Equal(got, end) {
			t.Fatalf("turn %d: played again it ends otherwise", turn)
		}
	}
	k.answered()
	const at = 6
	before := len(k.fake.Requests())
	_, err := k.agent.Fork(at, agent.WithCode)
	k.Must(err)
	for i := at; i < len(dialogue); i++ {
		k.submit(fmt.Sprintf("turn %d", i), numbered(i, dialogue[i])...)
	}
	for i, again := range k.fake.Requests()[before:] {
		if !bytes.Equal(again.Body, first[moments[at].requests+i].Body) {
			t.Fatalf("in a fork, request %d differs", i)
		}
	}
	if got := k.files(); !maps.Equal(got, end) {
		t.Error("a fork ends otherwise")
	}
	k.answered()
}

// numbered gives the calls of a turn ids that are the same each time.
func numbered(turn int, replies []fakellm.Reply) []fakellm.Reply {
	all := make([]fakellm.Reply, len(replies))
	for i, r := range replies {
		all[i] = r
		all[i].ToolCalls = nil
		for j, c := range r.ToolCalls {
			c.ID = fmt.Sprintf("call_%d_%d_%d", turn, i, j)
			all[i].ToolCalls = append(all[i].ToolCalls, c)
		}
	}
	return all
}

// answered checks that each tool call of the conversation has one answer, right after it.
func (k *talk) answered() {
	k.T.Helper()
	open := map[string]bool{}
	k.Must(k.Capture.Store.View(k.T.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(k.agent.Session())
		if err != nil {
			return err
		}
		for m, err := range tx.Messages(s.Head, 0, -1) {
			if err != nil {
				return err
			}
			var w struct {
				Role      string `json:"role"`
				CallID    string `json:"tool_call_id"`
				ToolCalls []struct {
					ID string `json:"id"`
				} `json:"tool_calls"`
			}
			k.Must(json.Unmarshal(m.JSON, &w))
			if w.Role == "tool" {
				if !open[w.CallID] {
					k.T.Errorf("an answer to nothing: %s", m.JSON)
				}
				delete(open, w.CallID)
			} else if len(open) > 0 {
				k.T.Errorf("%v unanswered before %s", open, m.JSON)
			}
			for _, c := range w.ToolCalls {
				open[c.ID] = true
			}
		}
		return nil
	}))
	if len(open) > 0 {
		k.T.Errorf("%v unanswered at the end", open)
	}
}

// TestConversationRewindTells: after a rewind of the conversation alone, and after one of the code
// alone, the model is told which files are not as it knows them; else nothing is said.
func TestConversationRewindTells(t *testing.T) {
	k := newTalk(t, agent.Options{})
	k.submit("zero", calls(write("a", "1\n")), said("ok"))
	k.submit("one", calls(write("a", "2\n"), write("b", "1\n")), said("ok"))
	k.submit("two", said("ok"))
	noted := func() string {
		all := k.fake.Requests()
		for _, m := range all[len(all)-1].Messages {
			if bytes.Contains(m, []byte("[note] These files")) {
				return string(m)
			}
		}
		return ""
	}
	if n := noted(); n != "" {
		t.Errorf("told without a reason: %s", n)
	}
	plan, err := k.Engine.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: k.agent.Session(), Turn: 1, Scope: store.Code})
	k.Must(err)
	_, err = k.Engine.Apply(t.Context(), plan) // from outside
	k.Must(err)
	k.submit("three", said("ok"))
	for _, want := range []string{"modified a", "deleted b"} {
		if n := noted(); !strings.Contains(n, want) {
			t.Errorf("not told that it is %s: %s", want, n)
		}
	}
	_, err = k.agent.UndoRewind()
	k.Must(err)
	_, err = k.agent.Rewind(1, agent.RewindConversation)
	k.Must(err)
	k.submit("one again", said("ok"))
	for _, want := range []string{"modified a", "created b"} {
		if n := noted(); !strings.Contains(n, want) {
			t.Errorf("not told that it is %s: %s", want, n)
		}
	}
}
