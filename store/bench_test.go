package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"reasonix/store"
)

// history makes a session of turns that touch files each, over a set of paths.
func history(b *testing.B, turns, files, paths int) (*store.Store, store.Session) {
	s := open(b)
	ses := begin(b, s)
	state := map[int]store.State{}
	next := 0
	for done := 0; done < turns; {
		update(b, s, func(tx *store.WriteTx) error {
			for range min(250, turns-done) {
				t, err := tx.BeginTurn(ses.ID, "", fmt.Sprintf("prompt %d", done))
				if err != nil {
					return err
				}
				for range files {
					p := next % paths
					next++
					before, ok := state[p]
					if !ok {
						before = store.AbsentState
					}
					after := store.State{Kind: store.Dir, Mode: uint32(next % 0o777)}
					state[p] = after
					err := tx.AppendChange(t.Node, store.Change{
						Path: store.Path(fmt.Sprintf("dir/file%04d.go", p)), Source: store.SourceTool, Origin: store.Agent, Before: before, After: after,
					})
					if err != nil {
						return err
					}
				}
				if err := tx.EndTurn(ses.ID, store.TurnDone); err != nil {
					return err
				}
				done++
			}
			return nil
		})
	}
	return s, session(b, s, ses.ID)
}

// BenchmarkTransition is the history's part of a plan over 5,000 turns of 3 files.
func BenchmarkTransition(b *testing.B) {
	for _, paths := range []int{240, 15000} {
		b.Run(fmt.Sprintf("paths=%d", paths), func(b *testing.B) {
			s, ses := history(b, 5000, 3, paths)
			b.ReportAllocs()
			for b.Loop() {
				view(b, s, func(tx *store.Tx) error {
					t, err := tx.Turn(ses.Head, 0)
					if err != nil {
						return err
					}
					moves, err := tx.Transition(ses.Head, t.Node.Parent)
					if len(moves) != paths {
						b.Fatal(len(moves))
					}
					return err
				})
			}
		})
	}
}

// BenchmarkList is the last 50 of 10,000 turns.
func BenchmarkList(b *testing.B) {
	s, ses := history(b, 10000, 1, 100)
	b.ReportAllocs()
	for b.Loop() {
		view(b, s, func(tx *store.Tx) error {
			turns, err := tx.Turns(ses.Head, -1, 50)
			if len(turns) != 50 {
				b.Fatal(len(turns))
			}
			return err
		})
	}
}

// BenchmarkAppendMessage appends one message of 1 KB, durably, to a growing conversation.
func BenchmarkAppendMessage(b *testing.B) {
	s := open(b)
	ses := begin(b, s)
	update(b, s, func(tx *store.WriteTx) error { _, err := tx.BeginTurn(ses.ID, "", ""); return err })
	msg, err := json.Marshal(map[string]string{"role": "user", "content": fmt.Sprintf("%01000d", 7)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		appendRaw(b, s, ses.ID, string(msg))
	}
}

// BenchmarkTail reads the last 100 of 100,000 messages.
func BenchmarkTail(b *testing.B) {
	s := open(b)
	ses := begin(b, s)
	var raw []string
	for i := range 1000 {
		raw = append(raw, fmt.Sprintf(`{"role":"user","content":"message %d"}`, i))
	}
	for range 100 {
		update(b, s, func(tx *store.WriteTx) error { _, err := tx.BeginTurn(ses.ID, "", ""); return err })
		appendRaw(b, s, ses.ID, raw...)
		update(b, s, func(tx *store.WriteTx) error { return tx.EndTurn(ses.ID, store.TurnDone) })
	}
	head := session(b, s, ses.ID).Head
	b.ReportAllocs()
	for b.Loop() {
		if got := conversation(b, s, head, 99_900, -1); len(got) != 100 {
			b.Fatal(len(got))
		}
	}
}
