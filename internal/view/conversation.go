package view

import (
	"iter"

	"reasonix/store"
)

// Conversation is a session's messages before a turn; all of them when turn is -1 or the number
// after the last one. With effective they are what a model would be sent, compactions in place.
// The messages are read from tx as they are asked for.
func Conversation(tx *store.Tx, s store.Session, turn int, effective bool) (iter.Seq2[store.Message, error], error) {
	head, end := s.Head, int64(-1)
	if turn >= 0 && turn < s.Turns {
		t, err := tx.Turn(s.Head, turn)
		if err != nil {
			return nil, err
		}
		// The node above the turn ends exactly where the turn begins.
		head, end = t.Node.Parent, t.MsgIndex
	}
	if !effective {
		return tx.Messages(s.Head, 0, end), nil
	}
	if head == 0 {
		return func(func(store.Message, error) bool) {}, nil
	}
	return tx.Effective(head), nil
}
