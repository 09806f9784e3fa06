package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLookingForTheLastSeeks(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), Options{Create: &Workspace{Root: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(t.Context(), func(tx *Tx) error {
		for q, args := range map[string][]any{lastBlob: {"p"}, lastLarge: {"s", "user"}} {
			var steps []struct {
				ID, Parent, Notused int
				Detail              string
			}
			if err := tx.r.Select(&steps, "EXPLAIN QUERY PLAN "+q, args...); err != nil {
				return err
			}
			plan := fmt.Sprint(steps)
			for _, table := range []string{"c", "p", "b", "m", "n", "h", "s"} {
				if strings.Contains(plan, "SCAN "+table+"}") || strings.Contains(plan, "SCAN "+table+" ") {
					t.Errorf("rows are scanned for %s:\n%s", table, plan)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// largeMessages are some that an agent sends again and again with small differences.
func largeMessages() map[string]func(i int) json.RawMessage {
	picture := make([]byte, 300<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range picture {
		picture[i] = byte(r.Uint32())
	}
	var output bytes.Buffer
	for i := range 9000 {
		fmt.Fprintf(&output, "ok   package/%d\t0.%03ds  \u00e9 \\u00e9\n", r.IntN(1000), i%997)
	}
	long := make([]byte, 3<<20)
	for i := range long {
		long[i] = byte(r.Uint32())
	}
	marshal := func(role, text string) json.RawMessage {
		b, err := json.Marshal(map[string]any{"role": role, "content": text})
		if err != nil {
			panic(err)
		}
		return append(b[:len(b)-1], " , \"role\":\""+role+"\" }"...) // an order and spaces of its own
	}
	return map[string]func(int) json.RawMessage{
		"picture": func(i int) json.RawMessage {
			return marshal("user", fmt.Sprint(i, "data:image/png;base64,", base64.StdEncoding.EncodeToString(picture)))
		},
		"tool output": func(i int) json.RawMessage {
			return marshal("tool", strings.Replace(output.String(), "\t0.500s", fmt.Sprintf("\t7.%03ds", i), 1))
		},
		"long": func(i int) json.RawMessage {
			return marshal("assistant", fmt.Sprint(i, base64.StdEncoding.EncodeToString(long)))
		},
	}
}

// TestLargeMessagesThatRepeat: each costs its difference, and comes back to the byte.
func TestLargeMessagesThatRepeat(t *testing.T) {
	for name, message := range largeMessages() {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), Options{
				Create: &Workspace{Root: "/w"}, Now: func() time.Time { return time.UnixMilli(1) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var session Session
			err = s.Update(t.Context(), func(tx *WriteTx) error {
				session, err = tx.CreateSession(NewSession{})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			var sent []json.RawMessage
			stored := func() (n int64) {
				err := s.View(t.Context(), func(tx *Tx) error { return tx.r.Get(&n, `SELECT coalesce(sum(length(data)), 0) FROM blob`) })
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			send := func(all ...json.RawMessage) {
				ready, err := s.PrepareMessages(t.Context(), session.ID, all)
				if err != nil {
					t.Fatal(err)
				}
				err = s.Update(t.Context(), func(tx *WriteTx) error {
					n, err := tx.Writable(session.ID)
					if err != nil {
						return err
					}
					return tx.AppendMessages(n, ready)
				})
				if err != nil {
					t.Fatal(err)
				}
				sent = append(sent, all...)
			}
			send(message(1))
			first := stored()
			if whole := int64(len(message(1))); first > whole*78/100 {
				t.Errorf("%d bytes are stored of %d", first, whole)
			}
			send(message(1), message(2), message(3))
			for i := range 10 {
				send(message(10 + i))
			}
			if more := stored() - first; more > first/10 {
				t.Errorf("13 more of them take %d bytes, the first %d", more, first)
			}
			err = s.View(t.Context(), func(tx *Tx) error {
				session, err = tx.Session(session.ID)
				if err != nil {
					return err
				}
				for m, err := range tx.Messages(session.Head, 0, -1) {
					if err != nil {
						return err
					}
					if !bytes.Equal(m.JSON, sent[m.Index]) {
						t.Errorf("message %d is not what was sent", m.Index)
					}
					session.Messages--
				}
				return nil
			})
			if err != nil || session.Messages != 0 {
				t.Errorf("%d messages are left, %v", session.Messages, err)
			}
		})
	}
}
