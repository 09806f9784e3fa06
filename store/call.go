package store

import (
	"fmt"
	"time"
)

// CallKind says what an announced tool call does.
type CallKind uint8

// The numbers are stored; they never change.
const (
	EditCall CallKind = 1
	ExecCall CallKind = 2
)

// Call is a tool call that was announced and has not ended.
type Call struct {
	id      int64
	Key     string // the agent's own id of it; may be empty
	Kind    CallKind
	Tool    string
	Node    NodeID // where its before-states were recorded
	Started time.Time
	Ended   bool // a command that is over, and whose effects no scan has reached yet
	Paths   []Path
}

// AddCall notes that a call has begun. One with the same key is the same call: its paths are
// added to it.
func (w *WriteTx) AddCall(id SessionID, c Call) error {
	var (
		call int64
		err  error
	)
	if c.Key != "" {
		err := w.r.QueryRow(`
			SELECT c.id
			FROM call c
			JOIN session s ON s.id = c.session_id
			WHERE s.sid = ? AND c.call_key = ?`, id, c.Key).Scan(&call)
		if err := noRows(err, nil); err != nil {
			return err
		}
	}
	if call == 0 {
		call, err = w.insert(`
			INSERT INTO call (session_id, call_key, kind, tool, node_id, started_ms)
			VALUES ((SELECT id FROM session WHERE sid = ?), ?, ?, ?, ?, ?)`, id, c.Key, c.Kind, c.Tool, c.Node, ms(w.s.now()))
		if err != nil {
			return fmt.Errorf("begin call: %w", err)
		}
	}
	for _, p := range c.Paths {
		path, err := w.addPath(p)
		if err != nil {
			return err
		}
		if _, err := w.exec(`INSERT INTO call_path (call_id, path_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, call, path); err != nil {
			return fmt.Errorf("begin call: %w", err)
		}
	}
	return nil
}

// Calls are the open calls of a session, oldest first.
func (t *Tx) Calls(id SessionID) ([]Call, error) {
	row, err := t.rowOf(id)
	if err != nil {
		return nil, err
	}
	rows, err := t.r.Query(`
		SELECT c.id, c.call_key, c.kind, c.tool, c.node_id, c.started_ms, c.ended, p.path
		FROM call c
		LEFT JOIN call_path cp ON cp.call_id = c.id
		LEFT JOIN path p ON p.id = cp.path_id
		WHERE c.session_id = ?
		ORDER BY c.id, p.path`, row)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Call
	for rows.Next() {
		var (
			c       Call
			started int64
			path    []byte
		)
		if err := rows.Scan(&c.id, &c.Key, &c.Kind, &c.Tool, &c.Node, &started, &c.Ended, &path); err != nil {
			return nil, err
		}
		c.Started = at(started)
		if n := len(all); n == 0 || all[n-1].id != c.id {
			all = append(all, c)
		}
		if path != nil {
			last := &all[len(all)-1]
			last.Paths = append(last.Paths, Path(path))
		}
	}
	return all, rows.Err()
}

// EndCall closes a call.
func (w *WriteTx) EndCall(c Call) error {
	_, err := w.exec(`DELETE FROM call WHERE id = ?`, c.id)
	return err
}

// Activity is what tells whether a session is busy.
type Activity struct {
	Session   Session
	LastEvent time.Time // zero when its agent never sent one
	Calls     []Call
}

// Activities are those of all sessions that have a turn or a call open.
func (t *Tx) Activities() ([]Activity, error) {
	all, err := collect(t, scanActivity, `
		SELECT s.sid, s.event_ms
		FROM session s
		WHERE s.deleted_ms IS NULL
		  AND s.id IN (SELECT id FROM session WHERE open_turn_id IS NOT NULL UNION SELECT session_id FROM call)
		ORDER BY s.id`)
	if err != nil {
		return nil, err
	}
	for i := range all {
		id := all[i].Session.ID
		if all[i].Session, err = t.Session(id); err != nil {
			return nil, err
		}
		if all[i].Calls, err = t.Calls(id); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func scanActivity(row scanner) (a Activity, err error) {
	var last int64
	err = row.Scan(&a.Session.ID, &last)
	a.LastEvent = at(last)
	return a, err
}
