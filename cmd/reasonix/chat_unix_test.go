//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/llm/fakellm"
)

// chat is a conversation on a terminal, with the agent asking before it does anything.
func (k *killed) chat(columns, rows uint16, args ...string) *terminal {
	k.t.Helper()
	cmd := k.command(append([]string{"chat", "--approve", "ask"}, args...)...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	s := newTerminal(k.t, cmd, columns, rows)
	s.idle("Ctrl-D leaves.")
	return s
}

func (k *killed) write(name, content string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(content), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

func (k *killed) has(name, content string) {
	k.t.Helper()
	b, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil && content != "" || string(b) != content {
		k.t.Fatalf("%s is %q (%v), want %q", name, b, err, content)
	}
}

// TestChat talks, approves and refuses, picks an earlier turn with Esc Esc, gets the prompt back, sends
// it again, and takes that back.
func TestChat(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	k.write("main.go", "hi\n")
	edit := fakeCall("edit_file", map[string]string{"path": "main.go", "old_string": "hi", "new_string": "hello"})
	edit.Text = "I edit."
	k.fake.Add(edit, fakellm.Reply{Text: "Edited."})
	s := k.chat(80, 24)

	s.press("greet", keyEnter)
	s.see("hm", "I edit.", "-hi", "+hello", "edit_file? [y]es")
	k.has("main.go", "hi\n")
	s.press("y", keyEnter)
	s.idle("Edited.", "turn 0 done · 1 file", "tokens", "approve ask")
	k.has("main.go", "hello\n")
	if n := strings.Count(s.screen(), "+hello"); n != 1 {
		t.Errorf("the difference is shown %d times\n%s", n, s.screen())
	}

	// A refusal with its reason goes to the model; "always" asks no more.
	bash := fakeCall("bash", map[string]string{"command": "echo ran > out"})
	k.fake.Add(bash, fakellm.Reply{Text: "Then not."})
	s.press("run it", keyEnter)
	s.see("$ echo ran > out", "bash? [y]es")
	s.press("use make", keyEnter)
	s.idle("Then not.", "turn 1 done")
	k.has("out", "")
	if last := k.fake.Requests()[3]; !strings.Contains(string(last.Body), "use make") {
		t.Errorf("the model was not told why: %s", last.Body)
	}
	k.fake.Add(bash, bash, fakellm.Reply{Text: "Ran twice."})
	s.press("do run it", keyEnter)
	s.see("> do run it\nhm\n$ echo ran > out\nbash? [y]es")
	s.press("a", keyEnter)
	s.idle("Ran twice.", "turn 2 done")
	k.has("out", "ran\n")

	// Esc Esc: the newest turn and both are marked. Turn 0 then; the dry run changes nothing.
	s.press(keyEsc, keyEsc)
	s.see("Go back to before which turn?", ">    2  do run it", "     0  greet", "1 file, +1 -1")
	s.press(keyDown, keyDown)
	s.see(">    0  greet")
	s.press(keyEnter)
	s.see("Turn 0: greet", "> Restore code and conversation", "  Restore conversation", "  Fork", "  Summarize from here on")
	s.press(keyEnter)
	s.see("would rewind code and conversation", "main.go", "dry run: nothing was changed", "Enter do it")
	k.has("main.go", "hello\n")
	s.press(keyEnter)
	s.see("undo with: reasonix undo-rewind", "> greet")
	k.has("main.go", "hi\n")
	k.has("out", "")

	// The prompt is back in the line, and can be changed before it is sent.
	k.fake.Add(fakellm.Reply{Text: "Again."})
	s.press(" me", keyEnter)
	s.idle("Again.")
	if r := k.fake.Requests(); !strings.Contains(string(r[len(r)-1].Body), `"greet me"`) {
		t.Errorf("another prompt was sent: %s", r[len(r)-1].Body)
	}

	// Slash commands, completed. The history is one with the command line's.
	s.press("/und", keyTab)
	s.see("> /undo-rewind")
	s.press(keyCtrlU, "/rewind 0 both", keyEnter)
	s.see("> greet me")
	s.press(keyCtrlU, "/undo-rewind", keyEnter)
	s.idle("undid operation", "undo with: reasonix redo-rewind")
	s.press("/checkpoints", keyEnter)
	s.idle("turn 0", "greet me")
	s.press("/nonsense", keyEnter)
	s.idle("error: there is no /nonsense; /help lists the commands")
	s.press("/help", keyEnter)
	s.idle("/compact", "/summarize", "/switch")
	s.press("/summarize x", keyEnter)
	s.idle("error: /summarize takes a turn and a side")
	s.press("/rewind 99", keyEnter)
	s.idle("error: ", "99")

	s.press(keyCtrlD)
	s.ends(0)
	if out := k.do("log"); !strings.Contains(out, "greet me") {
		t.Errorf("the log knows another history:\n%s", out)
	}
	k.do("verify", "--deep")
}

// TestChatStops: Esc ends what the model says and a command; the turn is interrupted, and can be
// taken back and asked again.
func TestChatStops(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	k.fake.Add(fakellm.Reply{Reasoning: "a long thought", Text: "an answer that never ends", Stall: 4})
	s := k.chat(80, 24, "--approve", "full")
	s.press("go on for ever", keyEnter)
	s.see("a long")
	s.press("typed ahead", keyEnter, keyEsc)
	s.see("stopping…", "turn 0 interrupted", "> typed ahead")
	s.press(keyCtrlU)
	k.fake.Add(fakeCall("bash", map[string]string{"command": "echo half > a; echo ready; sleep 30"}))
	s.press("run", keyEnter)
	k.until("the command", func() bool { _, err := os.Stat(filepath.Join(k.dir, "a")); return err == nil })
	s.press(keyCtrlC)
	s.idle("turn 1 interrupted")
	k.fake.Add(fakellm.Reply{Text: "This time it worked."})
	s.press("/retry", keyEnter)
	s.idle("This time it worked.", "turn 1 done")
	k.has("a", "")
	s.press("/quit", keyEnter)
	s.ends(0)
}

// TestChatFails: an error of the model's server is told with what to do, and the chat goes on.
func TestChatFails(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	k.fake.Add(fakellm.Reply{Error: &fakellm.Failure{Status: 402, Message: "no \x1b[31mmoney"}})
	s := k.chat(80, 24)
	s.press("try", keyEnter)
	s.idle("error: ask the model: no", "(HTTP 402)", "no balance", "turn 0 failed")
	if strings.Contains(s.printed(), "\x1b[31mmoney") {
		t.Error("what a server says commands the terminal")
	}
	k.fake.Add(fakellm.Reply{Text: "Now it works."})
	s.press("/retry", keyEnter)
	s.idle("Now it works.", "turn 0 done")
	s.press(keyCtrlD)
	s.ends(0)
}

// TestChatPastes takes lines that are pasted, or end in a backslash, as one prompt, and gives it back whole.
func TestChatPastes(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	s := k.chat(80, 24)
	for i, keys := range []string{"one\\\rtwo\\\rthree\r", "\x1b[200~one\rtwo\rthree\x1b[201~\r"} {
		k.fake.Add(fakellm.Reply{Text: fmt.Sprintf("Read %d.", i)})
		s.press(keys)
		s.idle(fmt.Sprintf("Read %d.\nturn 0 done", i))
		if r := k.fake.Requests(); !strings.Contains(string(r[len(r)-1].Body), `"one\ntwo\nthree"`) {
			t.Fatalf("%d: another prompt was sent: %s", i, r[len(r)-1].Body)
		}
		s.press("/rewind 0", keyEnter)
		s.see(fmt.Sprintf("Read %d.", i), "> one two three")
		k.fake.Add(fakellm.Reply{Text: fmt.Sprintf("Reread %d.", i)})
		s.press(keyEnter)
		s.idle(fmt.Sprintf("Reread %d.\nturn 0 done", i))
		if r := k.fake.Requests(); !strings.Contains(string(r[len(r)-1].Body), `"one\ntwo\nthree"`) {
			t.Fatalf("%d: the prompt came back changed: %s", i, r[len(r)-1].Body)
		}
		s.press("/rewind 0 conversation", keyEnter)
		s.see("/rewind 0 conversation\n", "rewound conversation")
		s.press(keyCtrlU, "/tree", keyEnter)
		s.idle("  0 turns")
	}
}
