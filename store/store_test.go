package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/store"
)

func open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{
		Create: &store.Workspace{Root: "/w", Device: 1 << 63, Inode: 7},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		problems, err := s.Verify(context.Background(), true, nil)
		if err != nil || len(problems) > 0 {
			t.Errorf("verify: %+v, %v", problems, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func update(t testing.TB, s *store.Store, fn func(*store.WriteTx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, s *store.Store) store.Session {
	t.Helper()
	var ses store.Session
	update(t, s, func(tx *store.WriteTx) (err error) {
		ses, err = tx.CreateSession(store.NewSession{Source: "test", SourceID: "one"})
		if err != nil {
			return err
		}
		return tx.SetCurrent(ses.ID)
	})
	return ses
}

func appendRaw(t testing.TB, s *store.Store, id store.SessionID, raw ...string) {
	t.Helper()
	var msgs []json.RawMessage
	for _, r := range raw {
		msgs = append(msgs, json.RawMessage(r))
	}
	ready, err := s.PrepareMessages(t.Context(), "", msgs)
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx *store.WriteTx) error {
		n, err := tx.Writable(id)
		if err != nil {
			return err
		}
		return tx.AppendMessages(n, ready)
	})
}

func conversation(t testing.TB, s *store.Store, head store.NodeID, lo, hi int64) []string {
	t.Helper()
	var all []string
	view(t, s, func(tx *store.Tx) error {
		for m, err := range tx.Messages(head, lo, hi) {
			if err != nil {
				return err
			}
			all = append(all, string(m.JSON))
		}
		return nil
	})
	return all
}

func session(t testing.TB, s *store.Store, id store.SessionID) store.Session {
	t.Helper()
	var ses store.Session
	view(t, s, func(tx *store.Tx) (err error) { ses, err = tx.Session(id); return err })
	return ses
}

func TestMessagesAreKeptByteForByte(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	want := []string{
		`{"role":"system","content":"a"}`,
		"{ \"role\" :\t\"user\", \"content\": \"\\u00e9 é 😀 \xff\" }",
		`{"content":1e400,"role":7,"role":"last wins"}`,
		`{"role":"tool","content":"` + strings.Repeat("large ", 50_000) + `"}`,
		`{}`,
	}
	appendRaw(t, s, ses.ID, want[0])
	update(t, s, func(tx *store.WriteTx) error { _, err := tx.BeginTurn(ses.ID, "", "p"); return err })
	appendRaw(t, s, ses.ID, want[1:4]...)
	update(t, s, func(tx *store.WriteTx) error { return tx.EndTurn(ses.ID, store.TurnDone) })
	appendRaw(t, s, ses.ID, want[4])
	head := session(t, s, ses.ID).Head
	if d := cmp.Diff(want, conversation(t, s, head, 0, -1)); d != "" {
		t.Error(d)
	}
	for lo := range want {
		for hi := lo; hi <= len(want); hi++ {
			if got := conversation(t, s, head, int64(lo), int64(hi)); !slices.Equal(got, want[lo:hi]) {
				t.Errorf("messages %d to %d: %.80q", lo, hi, got)
			}
		}
	}
	view(t, s, func(tx *store.Tx) error {
		turn, err := tx.Turn(head, 0)
		if turn.MsgIndex != 1 || turn.Messages != 3 {
			t.Errorf("turn 0 begins at message %d and has %d", turn.MsgIndex, turn.Messages)
		}
		return err
	})
}

func TestMessagesMustBeObjects(t *testing.T) {
	s := open(t)
	for _, bad := range []string{``, `null`, `[]`, `"text"`, `{"role":`, `{} {}`, `{"a":}`} {
		if _, err := s.PrepareMessages(t.Context(), "", []json.RawMessage{json.RawMessage(bad)}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestForksOfForksShareTheirMessages is I10 and case 59: nothing is copied, all is found.
func TestForksOfForksShareTheirMessages(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	id := ses.ID
	var want []string
	for depth := range 30 {
		for turn := range 3 {
			update(t, s, func(tx *store.WriteTx) error { _, err := tx.BeginTurn(id, "", fmt.Sprint(depth, turn)); return err })
			m := fmt.Sprintf(`{"role":"user","content":"%d/%d"}`, depth, turn)
			appendRaw(t, s, id, m)
			want = append(want, m)
			update(t, s, func(tx *store.WriteTx) error { return tx.EndTurn(id, store.TurnDone) })
		}
		parent := session(t, s, id)
		at := parent.Turns - 1
		update(t, s, func(tx *store.WriteTx) error {
			turn, err := tx.Turn(parent.Head, at)
			if err != nil {
				return err
			}
			f, err := tx.CreateSession(store.NewSession{Head: turn.Node.Parent, Parent: id, ForkTurn: at, ForkMsg: turn.MsgIndex})
			id = f.ID
			return err
		})
		want = want[:len(want)-1]
	}
	fork := session(t, s, id)
	if d := cmp.Diff(want, conversation(t, s, fork.Head, 0, -1)); d != "" {
		t.Error(d)
	}
	view(t, s, func(tx *store.Tx) error {
		turns, err := tx.Turns(fork.Head, -1, 0)
		if err != nil || len(turns) != len(want) {
			t.Fatalf("%d turns, want %d: %v", len(turns), len(want), err)
		}
		for i, turn := range turns {
			if turn.Number() != len(want)-1-i || turn.MsgIndex != int64(turn.Number()) {
				t.Errorf("turn %d of the list is %d at message %d", i, turn.Number(), turn.MsgIndex)
			}
		}
		_, err = tx.Turn(fork.Head, len(want))
		if !errors.Is(err, store.ErrNoTurn) {
			t.Errorf("turn beyond the last: %v", err)
		}
		return nil
	})
}

// TestCompactionsHideNothing is cases 55 to 58: the full line and its numbers never change.
func TestCompactionsHideNothing(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprintf(`{"role":"user","content":"%d"}`, i))
	}
	appendRaw(t, s, ses.ID, want...)
	compact := func(from, to int64, text string) error {
		ready, err := s.PrepareMessages(t.Context(), "", []json.RawMessage{json.RawMessage(text)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Update(t.Context(), func(tx *store.WriteTx) error {
			_, err := tx.AddCompaction(ses.ID, from, to, ready)
			return err
		})
	}
	for _, step := range []struct {
		from, to int64
		want     []string
	}{
		{1, 3, []string{want[0], `{"c":1}`, want[3], want[4], want[5]}},
		{4, 5, []string{want[0], `{"c":1}`, want[3], `{"c":4}`, want[5]}},
		{0, 4, []string{`{"c":0}`, `{"c":4}`, want[5]}},
		{0, 6, []string{`{"c":0}`}},
	} {
		if err := compact(step.from, step.to, fmt.Sprintf(`{"c":%d}`, step.from)); err != nil {
			t.Fatal(err)
		}
		var got []string
		head := session(t, s, ses.ID).Head
		view(t, s, func(tx *store.Tx) error {
			for m, err := range tx.Effective(head) {
				if err != nil {
					return err
				}
				got = append(got, string(m.JSON))
			}
			return nil
		})
		if d := cmp.Diff(step.want, got); d != "" {
			t.Errorf("after %d to %d:\n%s", step.from, step.to, d)
		}
		if got := conversation(t, s, head, 0, -1); !slices.Equal(got, want) {
			t.Errorf("the full line changed: %q", got)
		}
	}
	for _, bad := range [][2]int64{{-1, 2}, {2, 2}, {3, 1}, {0, 7}, {2, 4}} {
		if err := compact(bad[0], bad[1], `{}`); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("compact %v: %v", bad, err)
		}
	}
}

func TestFindSession(t *testing.T) {
	s := open(t)
	var ids []store.SessionID
	update(t, s, func(tx *store.WriteTx) error {
		for i, name := range []string{"alpha", "beta", "beta"} {
			ses, err := tx.CreateSession(store.NewSession{Name: name, Source: "a", SourceID: fmt.Sprintf("foreign-%d", i)})
			if err != nil {
				return err
			}
			ids = append(ids, ses.ID)
		}
		return tx.SetCurrent(ids[2])
	})
	view(t, s, func(tx *store.Tx) error {
		for ref, want := range map[string]store.SessionID{
			"": ids[2], "current": ids[2], string(ids[0]): ids[0], "alpha": ids[0], "foreign-1": ids[1], string(ids[1][:7]): ids[1],
		} {
			if got, err := tx.FindSession(ref); err != nil || got.ID != want {
				t.Errorf("%q: %v, %v; want %v", ref, got.ID, err, want)
			}
		}
		if _, err := tx.FindSession("beta"); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("two names: %v", err)
		}
		if _, err := tx.FindSession("nothing"); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("unknown: %v", err)
		}
		if _, err := tx.FindSession("%"); !errors.Is(err, store.ErrNoSession) {
			t.Errorf("pattern: %v", err)
		}
		return nil
	})
}

func TestSealedNodesTakeNothing(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	row := store.Change{Path: "a", Source: store.SourceTool, Origin: store.Agent, Before: store.AbsentState, After: store.State{Kind: store.Dir, Mode: 0o755}}
	var node store.Node
	update(t, s, func(tx *store.WriteTx) error {
		turn, err := tx.BeginTurn(ses.ID, "", "")
		if err != nil {
			return err
		}
		node = turn.Node
		if err := tx.AppendChange(node, row); err != nil {
			return err
		}
		return tx.EndTurn(ses.ID, store.TurnDone)
	})
	err := s.Update(t.Context(), func(tx *store.WriteTx) error { return tx.SetAfter(node, "a", store.AbsentState) })
	if !errors.Is(err, store.ErrSealed) {
		t.Errorf("set after of a sealed node: %v", err)
	}
	update(t, s, func(tx *store.WriteTx) error {
		n, err := tx.Writable(ses.ID)
		if n.ID == node.ID || n.Kind != store.AppendNode {
			t.Errorf("a sealed turn's node is writable: %+v", n)
		}
		return err
	})
}

func TestBadStatesAreRefused(t *testing.T) {
	s := open(t)
	ses := begin(t, s)
	good := store.State{Kind: store.Dir, Mode: 0o755}
	for _, bad := range []store.State{
		{},
		{Kind: 9},
		{Kind: store.File, Mode: 0o644},
		{Kind: store.Dir, Mode: 0o4755},
		{Kind: store.Absent, Blob: [32]byte{1}},
		{Kind: store.Dir, Size: -1},
		{Kind: store.File, Mode: 0o644, Blob: [32]byte{1}},
	} {
		err := s.Update(t.Context(), func(tx *store.WriteTx) error {
			turn, err := tx.Writable(ses.ID)
			if err != nil {
				return err
			}
			return tx.AppendChange(turn, store.Change{Path: "a", Source: store.SourceTool, Origin: store.Agent, Before: good, After: bad})
		})
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// TestADamagedMessageIsToldAndNamed flips a byte of a message behind the store's back.
func TestADamagedMessageIsToldAndNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store.db")
	s, err := store.Open(t.Context(), file, store.Options{Create: &store.Workspace{Root: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	ses := begin(t, s)
	appendRaw(t, s, ses.ID, `{"role":"user","content":"one"}`, `{"role":"user","content":"two"}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(`"content":"two"`), []byte(`"content":"twO"`), 1)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(t.Context(), file, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var read int
	view(t, s, func(tx *store.Tx) error {
		for _, err := range tx.Messages(ses.Head, 0, -1) {
			if err != nil && !errors.Is(err, store.ErrDamaged) || err == nil && read > 0 {
				t.Errorf("message %d: %v", read, err)
			}
			read++
		}
		return nil
	})
	problems, err := s.Verify(t.Context(), true, nil)
	if err != nil || len(problems) != 1 || problems[0].Code != store.ProblemMessage {
		t.Errorf("verify: %+v, %v", problems, err)
	}
}
