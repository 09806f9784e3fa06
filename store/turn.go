package store

import (
	"errors"
	"fmt"
	"math"
)

const turnColumns = `t.turn_key, t.prompt, t.status, t.started_ms, coalesce(t.ended_ms, 0)`

func scanTurn(row scanner) (Turn, error) {
	var (
		t              Turn
		started, ended int64
	)
	n, err := scanNode(row, &t.Key, &t.Prompt, &t.Status, &started, &ended)
	t.Node, t.MsgIndex, t.Messages, t.StartedAt, t.EndedAt = n, n.MsgStart, n.MsgCount, at(started), at(ended)
	return t, err
}

// Turn reads turn number n of the line that ends at head: one look-up for each segment.
func (t *Tx) Turn(head NodeID, n int) (Turn, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return Turn{}, err
	}
	for _, s := range line {
		turn, err := scanTurn(t.r.QueryRow(`
			SELECT `+nodeColumns+`, `+turnColumns+`
			FROM node n
			JOIN turn t ON t.node_id = n.id
			WHERE n.segment = ? AND n.turn = ? AND n.kind = 2 AND n.depth BETWEEN ? AND ?`, s.segment, n, s.low, s.high))
		if err == nil {
			return turn, nil
		}
		if err := noRows(err, nil); err != nil {
			return Turn{}, err
		}
	}
	return Turn{}, fmt.Errorf("turn %d: %w", n, ErrNoTurn)
}

// Turns are at most limit turns of the line of head with a number below before, newest first.
// A limit of 0 and a before below 0 mean no bound.
func (t *Tx) Turns(head NodeID, before, limit int) ([]Turn, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	if before < 0 {
		before = math.MaxInt32
	}
	if limit <= 0 {
		limit = math.MaxInt32
	}
	var all []Turn
	for _, s := range line {
		part, err := collect(t, scanTurn, `
			SELECT `+nodeColumns+`, `+turnColumns+`
			FROM node n
			JOIN turn t ON t.node_id = n.id
			WHERE n.segment = ? AND n.turn < ? AND n.kind = 2 AND n.depth BETWEEN ? AND ?
			ORDER BY n.turn DESC
			LIMIT ?`, s.segment, before, s.low, s.high, limit-len(all))
		if err != nil {
			return nil, err
		}
		if all = append(all, part...); len(all) >= limit {
			break
		}
	}
	return all, nil
}

// TurnByKey finds the turn that a caller's key opened, on the present line of the session.
func (t *Tx) TurnByKey(s Session, key string) (Turn, error) {
	row, err := t.rowOf(s.ID)
	if err != nil {
		return Turn{}, err
	}
	turn, err := scanTurn(t.r.QueryRow(`
		SELECT `+nodeColumns+`, `+turnColumns+`
		FROM turn t
		JOIN node n ON n.id = t.node_id
		WHERE t.session_id = ? AND t.turn_key = ? AND t.turn_key <> ''
		ORDER BY t.node_id DESC
		LIMIT 1`, row, key))
	if err != nil {
		return Turn{}, noRows(err, ErrNoTurn)
	}
	on, err := t.IsAncestor(turn.Node.ID, s.Head)
	if err == nil && !on {
		err = ErrNoTurn
	}
	return turn, err
}

// TurnChanges are the rows of turn n on the line of head and of what follows it up to the
// next turn; n is -1 for what lies before turn 0.
func (t *Tx) TurnChanges(head NodeID, n int) ([]Placed, error) {
	return t.ChangesBetween(head, n, n)
}

// OpenTurn reads the turn that the session has open, ErrNoTurn when it has none.
func (t *Tx) OpenTurn(s Session) (Turn, error) {
	if s.OpenTurn == 0 {
		return Turn{}, ErrNoTurn
	}
	turn, err := scanTurn(t.r.QueryRow(`
		SELECT `+nodeColumns+`, `+turnColumns+`
		FROM node n
		JOIN turn t ON t.node_id = n.id
		WHERE n.id = ?`, s.OpenTurn))
	return turn, noRows(err, ErrCorrupt)
}

// BeginTurn opens a turn below the session's head. One that is open must be closed first.
func (w *WriteTx) BeginTurn(id SessionID, key, prompt string) (Turn, error) {
	s, err := w.Session(id)
	if err != nil {
		return Turn{}, err
	}
	if s.OpenTurn != 0 {
		return Turn{}, errors.New("begin turn: another one is open")
	}
	row, err := w.rowOf(id)
	if err != nil {
		return Turn{}, err
	}
	n, err := w.AddNode(s.Head, TurnNode)
	if err != nil {
		return Turn{}, err
	}
	_, err = w.exec(`
		INSERT INTO turn (node_id, session_id, turn_key, prompt, status, started_ms)
		VALUES (?, ?, ?, ?, ?, ?)`, n.ID, row, key, prompt, TurnOpen, ms(n.Created))
	if err != nil {
		return Turn{}, fmt.Errorf("begin turn: %w", err)
	}
	_, err = w.exec(`UPDATE session SET head_id = ?, open_id = ?, open_turn_id = ? WHERE sid = ?`, n.ID, n.ID, n.ID, id)
	return Turn{Node: n, Key: key, Prompt: prompt, Status: TurnOpen, MsgIndex: n.MsgStart, StartedAt: n.Created}, err
}

// EndTurn seals the session's open turn and closes its calls; without one it does nothing.
func (w *WriteTx) EndTurn(id SessionID, status Status) error {
	s, err := w.Session(id)
	if err != nil {
		return err
	}
	if _, err := w.exec(`DELETE FROM call WHERE session_id = (SELECT id FROM session WHERE sid = ?)`, id); err != nil {
		return err
	}
	if s.Open != 0 {
		if err := w.seal(s.Open); err != nil {
			return err
		}
	}
	if s.OpenTurn != 0 {
		if _, err := w.exec(`UPDATE turn SET status = ?, ended_ms = ? WHERE node_id = ?`, status, ms(w.s.now()), s.OpenTurn); err != nil {
			return err
		}
	}
	_, err = w.exec(`UPDATE session SET open_turn_id = NULL WHERE sid = ?`, id)
	return err
}

// Writable is the node of the session that takes rows and messages now: the open turn's own;
// where that was sealed meanwhile, or no turn is open, a new append node at the head.
func (w *WriteTx) Writable(id SessionID) (Node, error) {
	s, err := w.Session(id)
	if err != nil {
		return Node{}, err
	}
	return w.WritableOf(s)
}

// WritableOf is Writable for a session that was read in this transaction and has not changed
// since.
func (w *WriteTx) WritableOf(s Session) (Node, error) {
	if s.Open != 0 {
		return w.Node(s.Open)
	}
	n, err := w.AddNode(s.Head, AppendNode)
	if err != nil {
		return Node{}, err
	}
	var open any
	if s.OpenTurn != 0 {
		open = n.ID
	}
	_, err = w.exec(`UPDATE session SET head_id = ?, open_id = ? WHERE sid = ?`, n.ID, open, s.ID)
	return n, err
}
