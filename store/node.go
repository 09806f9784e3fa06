package store

import (
	"database/sql"
	"errors"
	"fmt"
	"iter"
)

const nodeColumns = `n.id, coalesce(n.parent_id, 0), n.kind, n.segment, n.depth, n.turn, n.msg_start, n.msg_count, n.created_ms`

type scanner interface{ Scan(dest ...any) error }

func scanNode(row scanner, more ...any) (Node, error) {
	var (
		n       Node
		created int64
	)
	dest := append([]any{&n.ID, &n.Parent, &n.Kind, &n.Segment, &n.Depth, &n.Turn, &n.MsgStart, &n.MsgCount, &created}, more...)
	err := row.Scan(dest...)
	n.Created = at(created)
	return n, err
}

// noRows turns sql.ErrNoRows into what it means here.
func noRows(err, means error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return means
	}
	return err
}

// Node reads a node.
func (t *Tx) Node(id NodeID) (Node, error) {
	n, err := scanNode(t.r.QueryRow(`SELECT `+nodeColumns+` FROM node n WHERE n.id = ?`, id))
	if err != nil {
		return Node{}, fmt.Errorf("read node %d: %w", id, noRows(err, ErrCorrupt))
	}
	return n, nil
}

// AddNode adds a child below parent (0 for the first root of the store) and so seals parent.
func (w *WriteTx) AddNode(parent NodeID, kind NodeKind) (Node, error) {
	n := Node{Parent: parent, Kind: kind, Turn: -1, Created: w.s.now()}
	var above any
	continues := false
	if parent != 0 {
		p, err := w.Node(parent)
		if err != nil {
			return Node{}, err
		}
		if err := w.seal(parent); err != nil {
			return Node{}, err
		}
		above, n.Depth = parent, p.Depth+1
		if kind != RootNode {
			n.Turn, n.MsgStart = p.Turn, p.Messages()
			if kind == TurnNode {
				n.Turn++
			}
			n.Segment = p.Segment
			var taken int
			if err := w.r.Get(&taken, `SELECT count(*) FROM node WHERE segment = ? AND depth = ?`, p.Segment, n.Depth); err != nil {
				return Node{}, err
			}
			continues = taken == 0
		}
	}
	var next int64
	if err := w.r.Get(&next, `SELECT coalesce(max(id), 0) + 1 FROM node`); err != nil {
		return Node{}, err
	}
	n.ID = NodeID(next)
	if !continues {
		n.Segment = n.ID
	}
	_, err := w.exec(`
		INSERT INTO node (id, parent_id, kind, segment, depth, turn, msg_start, created_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		n.ID, above, n.Kind, n.Segment, n.Depth, n.Turn, n.MsgStart, ms(n.Created))
	if err != nil {
		return Node{}, fmt.Errorf("add node: %w", err)
	}
	return n, nil
}

// seal ends the time in which node takes rows and messages, whoever had it open, and drops
// its rows that turned out to be no change; those that an open call announced may still
// become one and hold its before-state.
func (w *WriteTx) seal(node NodeID) error {
	n, err := w.exec(`UPDATE session SET open_id = NULL WHERE open_id = ?`, node)
	if err != nil || n == 0 {
		return err
	}
	_, err = w.exec(`
		DELETE FROM change
		WHERE (segment, depth) = (SELECT segment, depth FROM node WHERE id = ?)
		  AND before_kind = after_kind AND before_mode = after_mode AND before_blob IS after_blob
		  AND NOT EXISTS (SELECT 1 FROM call_path cp WHERE cp.path_id = change.path_id)`, node)
	return err
}

// span is a run of a segment: the nodes from depth low to depth high.
type span struct {
	segment   NodeID
	low, high int64
	first     NodeKind // kind of the segment's first node
	messages  int64    // of the line before the segment's first node
}

// spans are the parts of the line that ends at head, newest first: up to its session's root,
// or to the top of the tree.
func (t *Tx) spans(head NodeID, wholeTree bool) ([]span, error) {
	rows, err := t.r.Query(`
		WITH RECURSIVE part (segment, low, high, kind, messages, parent_id) AS (
		  SELECT n.segment, f.depth, n.depth, f.kind, f.msg_start, f.parent_id
		  FROM node n
		  JOIN node f ON f.id = n.segment
		  WHERE n.id = ?
		  UNION ALL
		  SELECT p.segment, f.depth, p.depth, f.kind, f.msg_start, f.parent_id
		  FROM part
		  JOIN node p ON p.id = part.parent_id
		  JOIN node f ON f.id = p.segment
		  WHERE ? OR part.kind <> 1
		)
		SELECT segment, low, high, kind, messages FROM part`, head, wholeTree)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []span
	for rows.Next() {
		var s span
		if err := rows.Scan(&s.segment, &s.low, &s.high, &s.first, &s.messages); err != nil {
			return nil, err
		}
		if s.low > s.high || (len(all) > 0 && s.high >= all[len(all)-1].low) {
			return nil, fmt.Errorf("line of node %d does not climb: %w", head, ErrCorrupt)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("line of node %d is empty: %w", head, ErrCorrupt)
	}
	return all, nil
}

// along asks a query of one span after the other and collects what scan makes of each row.
func along[T any](t *Tx, line iter.Seq2[int, span], scan func(scanner) (T, error), query string, args func(span) []any) ([]T, error) {
	var all []T
	for _, s := range line {
		part, err := collect(t, scan, query, args(s)...)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// collect asks a query and gives what scan makes of each row.
func collect[T any](t *Tx, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := t.r.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func closing(rows interface{ Close() error }, err error) error {
	if cerr := rows.Close(); err == nil {
		err = cerr
	}
	return err
}

// parted are the parts of the lines of two nodes, through all sessions above them, as apart
// splits them.
func (t *Tx) parted(from, to NodeID) (left, reached, shared []span, err error) {
	a, err := t.spans(from, true)
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := t.spans(to, true)
	if err != nil {
		return nil, nil, nil, err
	}
	left, reached, shared = apart(a, b)
	return left, reached, shared, nil
}

// apart splits two lines at their lowest common ancestor: the spans of each that the other
// does not share, newest first, and those that both share.
func apart(a, b []span) (onlyA, onlyB, shared []span) {
	high := make(map[NodeID]int, len(b))
	for i, s := range b {
		high[s.segment] = i
	}
	for i, s := range a {
		j, ok := high[s.segment]
		if !ok {
			continue
		}
		top := min(s.high, b[j].high)
		onlyA, onlyB = append(onlyA, a[:i]...), append(onlyB, b[:j]...)
		if s.high > top {
			onlyA = append(onlyA, span{s.segment, top + 1, s.high, s.first, s.messages})
		}
		if b[j].high > top {
			onlyB = append(onlyB, span{s.segment, top + 1, b[j].high, s.first, s.messages})
		}
		return onlyA, onlyB, append([]span{{s.segment, s.low, top, s.first, s.messages}}, a[i+1:]...)
	}
	return a, b, nil
}

// IsAncestor reports whether node lies on the line of head, head itself included.
func (t *Tx) IsAncestor(node, head NodeID) (bool, error) {
	n, err := t.Node(node)
	if err != nil {
		return false, err
	}
	line, err := t.spans(head, true)
	if err != nil {
		return false, err
	}
	for _, s := range line {
		if s.segment == n.Segment {
			return n.Depth <= s.high, nil
		}
	}
	return false, nil
}
