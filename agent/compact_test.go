package agent_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"reasonix/agent"
	"reasonix/internal/llm/fakellm"
	"reasonix/store"
)

// sent is the newest request, as text.
func (k *talk) sent() string {
	all := k.fake.Requests()
	return string(bytes.Join(raws(all[len(all)-1]), []byte("\n")))
}

func raws(r fakellm.Request) (all [][]byte) {
	for _, m := range r.Messages {
		all = append(all, m)
	}
	return all
}

// TestCompact: later turns are sent the summary; undo, and a rewind to before, bring the messages
// back, and the history never lost them.
func TestCompact(t *testing.T) {
	k := newTalk(t, agent.Options{})
	k.submit("first words", calls(write("a", "1\n")), said("said first"))
	k.submit("second words", said("said second"))
	k.fake.Add(said("THE SUMMARY"))
	k.Must(k.agent.Compact(t.Context(), "the files"))
	if s := k.sent(); !strings.Contains(s, "the files") || !strings.Contains(s, "first words") {
		t.Errorf("asked for a summary of %s", s)
	}
	k.submit("third words", said("said third"))
	if s := k.sent(); !strings.Contains(s, "THE SUMMARY") || strings.Contains(s, "first words") || !strings.Contains(s, "You are reasonix") {
		t.Errorf("sent %s", s)
	}
	_, err := k.agent.Rewind(2, agent.RewindConversation)
	k.Must(err)
	_, err = k.agent.UndoRewind() // of the rewind
	k.Must(err)
	_, err = k.agent.Rewind(1, agent.RewindConversation)
	k.Must(err)
	k.submit("second again", said("ok"))
	if s := k.sent(); strings.Contains(s, "THE SUMMARY") || !strings.Contains(s, "first words") {
		t.Errorf("after a rewind to before: %s", s)
	}
	k.answered()
}

func TestCompactUndone(t *testing.T) {
	k := newTalk(t, agent.Options{})
	k.submit("first words", said("said first"))
	k.fake.Add(said("THE SUMMARY"))
	k.Must(k.agent.Compact(t.Context(), ""))
	res, err := k.agent.UndoRewind()
	if err != nil || res.Kind != store.OpUndo {
		t.Fatalf("%+v, %v", res, err)
	}
	k.submit("second", said("ok"))
	if s := k.sent(); strings.Contains(s, "THE SUMMARY") || !strings.Contains(s, "first words") {
		t.Errorf("sent %s", s)
	}
	k.fake.Add(fakellm.Reply{Text: " "})
	if err := k.agent.Compact(t.Context(), ""); err == nil {
		t.Error("an empty summary was taken")
	}
	k.fake.Add(fakellm.Reply{Error: &fakellm.Failure{Status: 402}})
	if err := k.agent.Compact(t.Context(), ""); err == nil {
		t.Error("no error")
	}
	k.submit("third", said("ok"))
	if s := k.sent(); !strings.Contains(s, "first words") {
		t.Errorf("after a compaction that failed: %s", s)
	}
}

// TestSummarize: from a turn on, and up to a turn.
func TestSummarize(t *testing.T) {
	for side, want := range map[agent.Side][2]string{
		agent.From: {"word0", "word1 word2"},
		agent.UpTo: {"word1 word2", "word0"},
	} {
		k := newTalk(t, agent.Options{})
		for _, w := range []string{"word0", "word1", "word2"} {
			k.submit(w, calls(shell("true")), said("ok"))
		}
		k.fake.Add(said("THE SUMMARY"))
		k.Must(k.agent.Summarize(t.Context(), 1, side))
		k.submit("last", said("ok"))
		s := k.sent()
		for _, w := range strings.Fields(want[0]) {
			if !strings.Contains(s, w) {
				t.Errorf("side %d: %s is gone: %s", side, w, s)
			}
		}
		for _, w := range strings.Fields(want[1]) {
			if strings.Contains(s, w) {
				t.Errorf("side %d: %s is still there: %s", side, w, s)
			}
		}
		k.answered()
		if err := k.agent.Summarize(t.Context(), 9, side); !errors.Is(err, store.ErrNoTurn) {
			t.Errorf("turn 9: %v", err)
		}
	}
}

// TestAutomaticCompaction happens near the limit, before the turn and within it, once, and when a
// server says that the conversation is too long.
func TestAutomaticCompaction(t *testing.T) {
	long := strings.Repeat("many words ", 2000)
	k := newTalk(t, agent.Options{Context: 5000})
	k.submit("first "+long, said("ok"))
	k.submit("second", said("A SUMMARY"), calls(write("a", "1\n")), said("ok"))
	if s := k.sent(); !strings.Contains(s, "A SUMMARY") || strings.Contains(s, "many words") || !strings.Contains(s, "second") {
		t.Errorf("sent %.300s", s)
	}
	k.answered()
	_, err := k.agent.Rewind(0, agent.RewindBoth)
	k.Must(err)
	k.has("a", "")

	k = newTalk(t, agent.Options{})
	k.submit("first words", said("ok"))
	tooLong := fakellm.Reply{Error: &fakellm.Failure{Status: 400, Message: "maximum context length is 5"}}
	k.submit("second", tooLong, said("A SUMMARY"), said("ok"))
	if s := k.sent(); !strings.Contains(s, "A SUMMARY") || strings.Contains(s, "first words") {
		t.Errorf("sent %.300s", s)
	}
}
