package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sort"

	"reasonix/blob"
)

// inlineMessage is the size above which a message lies in a blob, in bytes.
const inlineMessage = 64 << 10

// maxMessage bounds one message, in bytes: what a row and a reader's memory can hold.
const maxMessage = 256 << 20

// NewMessage is a message that was checked and is ready to be committed.
type NewMessage struct {
	Role    string
	JSON    []byte
	content *blob.Prepared
}

// PrepareMessages checks messages from outside, each a JSON object, and compresses large
// ones, before any transaction; the last ones of the session, which need not exist, are likely to be
// like them. The bytes are kept exactly.
func (s *Store) PrepareMessages(ctx context.Context, id SessionID, raw []json.RawMessage) ([]NewMessage, error) {
	ready := make([]NewMessage, 0, len(raw))
	last := map[string]blob.Hash{} // by role
	for i, r := range raw {
		b := bytes.TrimSpace(r)
		if len(b) == 0 || b[0] != '{' || !json.Valid(b) {
			return nil, fmt.Errorf("message %d is not a JSON object: %w", i, ErrInvalid)
		}
		if len(b) > maxMessage {
			return nil, fmt.Errorf("message %d has %d bytes, more than %d: %w", i, len(b), maxMessage, ErrInvalid)
		}
		var head struct {
			Role json.RawMessage `json:"role"`
		}
		if err := json.Unmarshal(b, &head); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, ErrInvalid)
		}
		m := NewMessage{JSON: b}
		if json.Unmarshal(head.Role, &m.Role) != nil {
			m.Role = "" // a role that is no string is none
		}
		if len(b) > inlineMessage {
			var err error
			if m.content, err = s.prepareLarge(ctx, id, m, last); err != nil {
				return nil, fmt.Errorf("keep message %d: %w", i, err)
			}
		}
		ready = append(ready, m)
	}
	return ready, nil
}

// prepareLarge compresses a large message against the last one of its role: the same picture, or what
// the same tool said before.
func (s *Store) prepareLarge(ctx context.Context, id SessionID, m NewMessage, last map[string]blob.Hash) (*blob.Prepared, error) {
	was, ok := last[m.Role]
	if !ok {
		err := s.View(ctx, func(tx *Tx) (err error) { was, err = tx.lastLarge(id, m.Role); return err })
		if err != nil {
			return nil, err
		}
	}
	p, err := s.blobs.PrepareAgainst(ctx, bytes.NewReader(m.JSON), was)
	if err == nil && p.Size() <= blob.MaxUnbound {
		last[m.Role] = p.Hash()
	}
	return p, err
}

// AppendMessages adds messages at the end of a writable node.
func (w *WriteTx) AppendMessages(n Node, msgs []NewMessage) error {
	if len(msgs) == 0 {
		return nil
	}
	var count int64
	if err := w.r.Get(&count, `SELECT msg_count FROM node WHERE id = ?`, n.ID); err != nil {
		return err
	}
	for i, m := range msgs {
		if err := w.putMessage(`INSERT INTO message (id, role, json, blob_id, sum) VALUES (?, ?, ?, ?, ?)`,
			int64(n.ID)<<32|(count+int64(i)), m); err != nil {
			return fmt.Errorf("append message: %w", err)
		}
	}
	_, err := w.exec(`UPDATE node SET msg_count = ? WHERE id = ?`, count+int64(len(msgs)), n.ID)
	return err
}

func (w *WriteTx) putMessage(insert string, id int64, m NewMessage) error {
	var text, content any
	if m.content == nil {
		text = string(m.JSON)
	} else {
		b, err := w.s.blobs.Bind(w.w, m.content)
		if err != nil {
			return err
		}
		content = int64(b)
	}
	_, err := w.exec(insert, id, m.Role, text, content, sumOf(m.JSON))
	return err
}

// Messages yields the messages of the line of head from index lo up to, not including, hi;
// hi below 0 means all. Messages are read as they are asked for; the caller must not use the
// transaction for something else between two of them when it needs flat memory.
func (t *Tx) Messages(head NodeID, lo, hi int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		h, err := t.Node(head)
		if err != nil {
			yield(Message{}, err)
			return
		}
		if hi < 0 || hi > h.Messages() {
			hi = h.Messages()
		}
		if lo < 0 {
			lo = 0
		}
		line, err := t.spans(head, false)
		if err != nil {
			yield(Message{}, err)
			return
		}
		for i, s := range slices.Backward(line) {
			switch {
			case s.messages >= hi:
				return
			case i > 0 && line[i-1].messages <= lo: // it ends before: the next one begins there
			case !t.messagesIn(s, lo, hi, yield):
				return
			}
		}
	}
}

// messagesIn yields what a span has of [lo, hi).
func (t *Tx) messagesIn(s span, lo, hi int64, yield func(Message, error) bool) bool {
	fail := func(err error) bool { yield(Message{}, err); return false }
	low := s.low
	if lo > s.messages {
		var err error
		if low, err = t.depthOf(s, lo); err != nil {
			return fail(err)
		}
		if low > s.high {
			return true
		}
	}
	rows, err := t.r.Query(`
		SELECT n.msg_start + (m.id & 4294967295), n.turn, m.role, m.json, b.hash, coalesce(b.size, 0), m.sum
		FROM node n
		JOIN message m ON m.id >= (n.id << 32) + max(0, ? - n.msg_start)
		              AND m.id < (n.id << 32) + min(n.msg_count, ? - n.msg_start)
		LEFT JOIN blob b ON b.id = m.blob_id
		WHERE n.segment = ? AND n.depth BETWEEN ? AND ? AND n.msg_count > 0
		ORDER BY n.depth, m.id`, lo, hi, s.segment, low, s.high)
	if err != nil {
		return fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			m    Message
			hash []byte
			size int64
			sum  int64
		)
		if err := rows.Scan(&m.Index, &m.Turn, &m.Role, &m.JSON, &hash, &size, &sum); err != nil {
			return fail(err)
		}
		if m.Index < lo {
			continue
		}
		if m.Index >= hi {
			return true
		}
		if m.JSON, err = t.messageBytes(m.JSON, hash, size, sum); err != nil {
			return fail(fmt.Errorf("message %d: %w", m.Index, err))
		}
		if !yield(m, nil) {
			return false
		}
	}
	if err := rows.Err(); err != nil {
		return fail(err)
	}
	return true
}

// sumOf is what a message's row keeps to tell damage by.
func sumOf(b []byte) int64 {
	h := blob.Sum(b)
	return int64(binary.LittleEndian.Uint64(h[:8]))
}

// messageBytes are the bytes of a message, from its row or its blob. ErrDamaged when they are
// not those that came in.
func (t *Tx) messageBytes(text, hash []byte, size, sum int64) ([]byte, error) {
	if hash == nil {
		if sumOf(text) != sum {
			return nil, ErrDamaged
		}
		return text, nil
	}
	h, err := blob.FromBytes(hash)
	if err != nil {
		return nil, err
	}
	return blob.ReadTx(t.r, h, size)
}

// depthOf finds, by halving, the first node of a span that ends after message index i.
func (t *Tx) depthOf(s span, i int64) (int64, error) {
	var failed error
	n := sort.Search(int(s.high-s.low+1), func(k int) bool {
		var end int64
		err := t.r.QueryRow(`SELECT msg_start + msg_count FROM node WHERE segment = ? AND depth = ?`,
			s.segment, s.low+int64(k)).Scan(&end)
		if err != nil && failed == nil {
			failed = noRows(err, ErrCorrupt)
		}
		return end > i
	})
	return s.low + int64(n), failed
}
