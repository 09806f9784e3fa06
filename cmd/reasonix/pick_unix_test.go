//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/llm/fakellm"
)

// turns has the agent do turns that each append a line to a file.
func (k *killed) turns(prompts ...string) {
	k.t.Helper()
	for i, p := range prompts {
		k.fake.Add(fakeCall("bash", map[string]string{"command": fmt.Sprintf("echo %d >> a", i)}), fakellm.Reply{Text: "ok"})
		k.do("run", p)
	}
}

func (k *killed) pick(columns, rows uint16, env ...string) *terminal {
	k.t.Helper()
	cmd := k.command("rewind", "--pick")
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), env...)
	s := newTerminal(k.t, cmd, columns, rows)
	s.see("Go back to before which turn?")
	return s
}

// TestPick: the newest turn and both are offered first, and two times Enter more do what the dry run said.
func TestPick(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	k.turns("first", "second\nline", "third")
	s := k.pick(80, 24)
	s.see(">    2  third\n", "     1  second\n", "     0  first\n", "just now, 1 file, +1 -0")
	s.press(keyEnter)
	s.see("Turn 2: third", "> Restore code and conversation")
	if strings.Contains(s.screen(), "Summarize") {
		t.Error("a summary is offered, and there is no agent")
	}
	s.press(keyEnter)
	s.see("would write 1 path", "dry run: nothing was changed")
	k.has("a", "0\n1\n2\n")
	s.press(keyEnter)
	s.ends(0)
	if !strings.Contains(s.screen(), "undo with: reasonix undo-rewind") {
		t.Errorf("what was done is not told:\n%s", s.screen())
	}
	k.has("a", "0\n1\n")

	// Code only, of another turn; Esc goes back a step, and out.
	s = k.pick(80, 24)
	s.press(keyDown, keyEnter)
	s.see("Turn 0: first")
	s.press(keyEsc)
	s.see("Go back to before which turn?", ">    0  first")
	s.press(keyEnter, keyDown, keyEnter)
	s.see("Restore code, turn 0", "would rewind code", "would delete 1 path")
	s.press(keyEnter)
	s.ends(0)
	k.has("a", "")
	if out := k.do("log"); !strings.Contains(out, "turn 1") {
		t.Errorf("the conversation went too:\n%s", out)
	}
	k.do("undo-rewind")

	s = k.pick(80, 24)
	s.press(keyEnter, "j", "j", "j", keyEnter)
	s.see("Fork, turn 1", "would fork")
	s.press(keyEnter)
	s.ends(0)
	if out := k.do("tree"); !strings.Contains(out, "forked at turn 1") {
		t.Errorf("there is no fork:\n%s", out)
	}
	k.do("switch", "-")

	for _, key := range []string{keyEsc, "q", keyCtrlC, keyCtrlD} {
		before := k.do("ops", "--json")
		s = k.pick(80, 24)
		s.press(key)
		s.ends(0)
		if after := k.do("ops", "--json"); after != before {
			t.Errorf("%q did something:\n%s", key, after)
		}
	}
}

// TestPickConflict: a hand edit is named, and left alone or overwritten as the person says.
func TestPickConflict(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	k.turns("first", "second")
	k.write("a", "by hand\n")
	s := k.pick(80, 24)
	s.press(keyEnter, keyEnter)
	s.see("conflict", "s leave conflicting files alone   f overwrite them")
	s.press(keyEnter) // is no answer
	s.press("s")
	s.see("Enter do it", "would leave as they are 1 path", "(5 messages)")
	k.has("a", "by hand\n")
	s.press(keyEsc)
	s.see("> Restore code and conversation\n  Restore code\n")
	s.press(keyEnter)
	s.see("f overwrite them")
	s.press("f")
	s.see("would write 1 path", "Enter do it")
	k.has("a", "by hand\n")
	s.press(keyEnter)
	s.ends(0)
	k.has("a", "0\n")
	k.do("undo-rewind")
	k.has("a", "by hand\n")
}

// TestPickHostile: small and monochrome terminals, and prompts that would command them.
func TestPickHostile(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	k.turns("\x1b]0;title\a\x1b[2J red \x1b[31m\n\u202egnp.exe", strings.Repeat("界", 200), "tail")
	s := k.pick(40, 10, "NO_COLOR=1")
	s.press("G")
	s.see(">    0  \uFFFD]0;title\uFFFD\uFFFD[2J red")
	s.press(keyUp)
	s.see(">    1  界界界")
	for i, l := range strings.Split(s.screen(), "\n") {
		if n := len([]rune(l)); n > 40 {
			t.Errorf("line %d has %d columns: %q", i, n, l)
		}
	}
	s.press(keyEnter)
	s.see("Turn 1: 界")
	s.press(keyEnter)
	s.see("would rewind code and")
	s.press("q")
	s.ends(0)
	raw := s.printed()
	for _, bad := range []string{"\x1b]0", "\x1b[2J", "\a", "\u202e", "\x1b[31m", "\x1b[1m", "\x1b[2m", "\x1b[0m"} {
		if strings.Contains(raw, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
}

// TestPickManyTurns goes through more turns than are read at once.
func TestPickManyTurns(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	for i := range pickedAtOnce + 20 {
		hook := k.command("hook", "--strict")
		hook.Stdin = strings.NewReader(fmt.Sprintf(`{"v":1,"event":"begin-turn","session":"s","prompt":"prompt %d"}`, i))
		if out, err := hook.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s := k.pick(80, 24)
	s.see(">   69  prompt 69")
	s.press("G", "G")
	s.see(">    0  prompt 0")
	s.press("g")
	s.see(">   69  prompt 69")
	for range 6 {
		s.press("\x1b[6~")
	}
	s.see(">    9  prompt 9")
	s.press("q")
	s.ends(0)
}
