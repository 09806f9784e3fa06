package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"reasonix/store"
)

// talk appends a turn for each message of size bytes of noise, and returns how large the store is then.
func talk(t *testing.T, s *store.Store, id store.SessionID, rnd *rand.ChaCha8, messages, size int) int64 {
	t.Helper()
	noise := make([]byte, size/2)
	for done := 0; done < messages; {
		var ready []store.NewMessage
		for range min(100, messages-done) {
			_, _ = rnd.Read(noise) // never fails
			more, err := s.PrepareMessages(t.Context(), "", []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"role":"user","content":"%x"}`, noise))})
			if err != nil {
				t.Fatal(err)
			}
			ready = append(ready, more...)
		}
		update(t, s, func(tx *store.WriteTx) error {
			for i := range ready {
				turn, err := tx.BeginTurn(id, "", "go on")
				if err != nil {
					return err
				}
				if err := tx.AppendMessages(turn.Node, ready[i:i+1]); err != nil {
					return err
				}
				if err := tx.EndTurn(id, store.TurnDone); err != nil {
					return err
				}
			}
			return nil
		})
		done += len(ready)
	}
	return fileSize(t, s)
}

func fileSize(t *testing.T, s *store.Store) int64 {
	t.Helper()
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestCaseAGrowingConversationIsLinear: 2,000 turns, each of which adds a message; the second half
// takes no more than the first.
func TestCaseAGrowingConversationIsLinear(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	rnd := rand.NewChaCha8([32]byte{1})
	start := fileSize(t, s)
	half := talk(t, s, ses.ID, rnd, 1000, 1000)
	whole := talk(t, s, ses.ID, rnd, 1000, 1000)
	if first, second := half-start, whole-half; second > first*11/10 {
		t.Errorf("1,000 turns take %d bytes, and 1,000 more %d", first, second)
	}
}

// TestCaseForksRepeatNothing: 20 forks at the end of a conversation of 50 MB make the store less than a
// hundredth larger, and have all of its messages.
func TestCaseForksRepeatNothing(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	before := talk(t, s, ses.ID, rand.NewChaCha8([32]byte{1}), 1000, 50_000)
	if before < 20_000_000 {
		t.Fatalf("the conversation takes %d bytes only", before)
	}
	head := session(t, s, ses.ID)
	for i := range 20 {
		update(t, s, func(tx *store.WriteTx) error {
			_, err := tx.CreateSession(store.NewSession{Name: fmt.Sprint("fork ", i), Head: head.Head, Parent: ses.ID, ForkTurn: 999, ForkMsg: head.Messages})
			return err
		})
	}
	if after := fileSize(t, s); after-before > before/100 {
		t.Errorf("20 forks made %d bytes of %d", after, before)
	}
	view(t, s, func(tx *store.Tx) error {
		all, err := tx.Sessions()
		for _, one := range all {
			if one.Messages != head.Messages {
				t.Errorf("%s has %d messages, not %d", one.ID, one.Messages, head.Messages)
			}
		}
		if len(all) != 21 {
			t.Errorf("%d sessions", len(all))
		}
		return err
	})
}
