package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/store"
)

// TestMemoryOfConversations looks at, moves and forks a conversation of 66 MiB in messages of 1 MiB.
// REASONIX_HUGE=1 makes it 1 GiB.
func TestMemoryOfConversations(t *testing.T) {
	t.Parallel()
	messages := 66
	if os.Getenv("REASONIX_HUGE") != "" {
		messages = 1024
	}
	h := newHooked(t)
	h.env = append(h.env, peakEnv+"="+filepath.Join(t.TempDir(), "status"))
	h.event("begin-turn", map[string]any{"prompt": "begin"}, `{"role":"user","content":"begin"}`)
	h.event("end-turn", nil)
	var current struct {
		Session store.SessionID `json:"session"`
	}
	if err := json.Unmarshal(h.run(nil, "log", "--json"), &current); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), strings.TrimSpace(string(h.run(nil, "store"))), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	noise, text := rand.NewChaCha8([32]byte{1}), make([]byte, 1<<19)
	for i := range messages {
		_, _ = noise.Read(text) // never fails
		ready, err := s.PrepareMessages(t.Context(), "", []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"role":"user","content":"%x"}`, text))})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *store.WriteTx) error {
			turn, err := tx.BeginTurn(current.Session, "", fmt.Sprint("say ", i))
			if err != nil {
				return err
			}
			if err := tx.AppendMessages(turn.Node, ready); err != nil {
				return err
			}
			return tx.EndTurn(current.Session, store.TurnDone)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"log"}, {"show", "latest"}, {"messages"}, {"rewind", "1"}, {"undo-rewind"}, {"fork", "latest"}, {"tree"}, {"stats"}, {"verify", "--deep"},
	} {
		if out := h.run(nil, args...); args[0] == "messages" && len(out) < messages<<20 {
			t.Errorf("%d bytes of messages", len(out))
		}
		h.below(largePeak, strings.Join(args, " "))
	}
}
