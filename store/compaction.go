package store

import (
	"fmt"
	"iter"
	"slices"
)

// Compaction stands for the messages [From, To) of the full line in the effective
// conversation: what a model is sent. The full line keeps them.
type Compaction struct {
	id       int64
	Node     NodeID
	From, To int64
}

// AddCompaction puts a compaction at the session's head, in an append node of its own, so that
// undoing it is a move of the head. A range that would cut an earlier one in two is refused.
func (w *WriteTx) AddCompaction(id SessionID, from, to int64, msgs []NewMessage) (Compaction, error) {
	s, err := w.Session(id)
	if err != nil {
		return Compaction{}, err
	}
	if from < 0 || to <= from || to > s.Messages {
		return Compaction{}, fmt.Errorf("compact messages %d to %d of %d: %w", from, to, s.Messages, ErrInvalid)
	}
	earlier, err := w.Compactions(s.Head)
	if err != nil {
		return Compaction{}, err
	}
	for _, c := range earlier {
		if overlap := from < c.To && c.From < to; overlap && (from > c.From || to < c.To) {
			return Compaction{}, fmt.Errorf("compact messages %d to %d: %d to %d are compacted already: %w", from, to, c.From, c.To, ErrInvalid)
		}
	}
	n, err := w.AddNode(s.Head, AppendNode)
	if err != nil {
		return Compaction{}, err
	}
	// The open turn goes on below the compaction.
	var open any
	if s.OpenTurn != 0 {
		open = n.ID
	}
	if _, err := w.exec(`UPDATE session SET head_id = ?, open_id = ? WHERE sid = ?`, n.ID, open, id); err != nil {
		return Compaction{}, err
	}
	row, err := w.insert(`INSERT INTO compaction (node_id, from_idx, to_idx, created_ms) VALUES (?, ?, ?, ?)`,
		n.ID, from, to, ms(n.Created))
	if err != nil {
		return Compaction{}, fmt.Errorf("compact: %w", err)
	}
	for i, m := range msgs {
		if err := w.putMessage(`INSERT INTO compaction_message (id, role, json, blob_id, sum) VALUES (?, ?, ?, ?, ?)`,
			row<<32|int64(i), m); err != nil {
			return Compaction{}, fmt.Errorf("compact: %w", err)
		}
	}
	return Compaction{id: row, Node: n.ID, From: from, To: to}, nil
}

// Compactions are those in effect on the line of head, by position; one that a later one
// covers is not.
func (t *Tx) Compactions(head NodeID) ([]Compaction, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	made, err := along(t, slices.All(line), scanCompaction, `
		SELECT c.id, c.node_id, c.from_idx, c.to_idx
		FROM compaction c
		CROSS JOIN node n ON n.id = c.node_id
		WHERE n.segment = ? AND n.depth BETWEEN ? AND ?
		ORDER BY c.id DESC`,
		func(s span) []any { return []any{s.segment, s.low, s.high} })
	if err != nil {
		return nil, err
	}
	var all []Compaction
	for _, c := range made { // newest first
		covered := slices.ContainsFunc(all, func(later Compaction) bool { return later.From <= c.From && c.To <= later.To })
		if !covered {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Compaction) int { return int(a.From - b.From) })
	return all, nil
}

func scanCompaction(row scanner) (c Compaction, err error) {
	err = row.Scan(&c.id, &c.Node, &c.From, &c.To)
	return c, err
}

// Effective yields the conversation that a model would be sent: the full line with each
// compaction in the place of what it stands for.
func (t *Tx) Effective(head NodeID) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		compacted, err := t.Compactions(head)
		if err != nil {
			yield(Message{}, err)
			return
		}
		next := int64(0)
		for _, c := range compacted {
			if !forward(t.Messages(head, next, c.From), yield) || !forward(t.compacted(c), yield) {
				return
			}
			next = c.To
		}
		forward(t.Messages(head, next, -1), yield)
	}
}

func forward(from iter.Seq2[Message, error], yield func(Message, error) bool) bool {
	for m, err := range from {
		if !yield(m, err) || err != nil {
			return false
		}
	}
	return true
}

func (t *Tx) compacted(c Compaction) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		rows, err := t.r.Query(`
			SELECT m.role, m.json, b.hash, coalesce(b.size, 0), m.sum
			FROM compaction_message m
			LEFT JOIN blob b ON b.id = m.blob_id
			WHERE m.id >= ? << 32 AND m.id < (? + 1) << 32
			ORDER BY m.id`, c.id, c.id)
		if err != nil {
			yield(Message{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			m := Message{Index: -1, Turn: -1}
			var (
				hash []byte
				size int64
				sum  int64
			)
			err := rows.Scan(&m.Role, &m.JSON, &hash, &size, &sum)
			if err == nil {
				m.JSON, err = t.messageBytes(m.JSON, hash, size, sum)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Message{}, err)
		}
	}
}
