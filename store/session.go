package store

import (
	"errors"
	"fmt"
	"strings"
)

const sessionColumns = `
	s.sid, s.name, s.source, s.source_id, s.head_id, s.root_id, coalesce(s.open_id, 0), coalesce(s.open_turn_id, 0),
	coalesce(p.sid, ''), coalesce(s.fork_turn, -1), coalesce(s.fork_msg, 0), s.created_ms, s.updated_ms,
	s.id IS (SELECT current_id FROM workspace), h.turn + 1, h.msg_start + h.msg_count`

const sessionFrom = `
	FROM session s
	JOIN node h ON h.id = s.head_id
	LEFT JOIN session p ON p.id = s.parent_id`

func scanSession(row scanner) (Session, error) {
	var (
		s                Session
		created, updated int64
	)
	err := row.Scan(&s.ID, &s.Name, &s.Source, &s.SourceID, &s.Head, &s.Root, &s.Open, &s.OpenTurn,
		&s.Parent, &s.ForkTurn, &s.ForkMsg, &created, &updated, &s.Current, &s.Turns, &s.Messages)
	s.Created, s.Updated = at(created), at(updated)
	return s, err
}

// Sessions are all sessions, the one last used first.
func (t *Tx) Sessions() ([]Session, error) {
	return t.sessions(`WHERE s.deleted_ms IS NULL ORDER BY s.updated_ms DESC, s.id DESC`)
}

func (t *Tx) sessions(where string, args ...any) ([]Session, error) {
	return collect(t, scanSession, `SELECT `+sessionColumns+sessionFrom+` `+where, args...)
}

// Session reads one session by its id.
func (t *Tx) Session(id SessionID) (Session, error) {
	s, err := scanSession(t.r.QueryRow(`SELECT `+sessionColumns+sessionFrom+` WHERE s.sid = ? AND s.deleted_ms IS NULL`, id))
	if err != nil {
		return Session{}, fmt.Errorf("session %q: %w", id, noRows(err, ErrNoSession))
	}
	return s, nil
}

// SessionOf reads the session that an agent feeds under its own id; an event may also name
// a session of ours by its id, which is how a fork is continued.
func (t *Tx) SessionOf(source, sourceID string) (Session, error) {
	id := SessionID(sourceID)
	err := t.r.QueryRow(`
		SELECT sid
		FROM session
		WHERE source = ? AND source_id = ? AND source_id <> '' AND deleted_ms IS NULL`, source, sourceID).Scan(&id)
	if err := noRows(err, nil); err != nil {
		return Session{}, err
	}
	return t.Session(id)
}

// Current is the session last recorded into, forked to or switched to.
func (t *Tx) Current() (Session, error) {
	return t.pointed("current_id", "the workspace has no session yet")
}

// Previous is the session that was current before; "switch -" goes there.
func (t *Tx) Previous() (Session, error) {
	return t.pointed("previous_id", "there is no session before this one")
}

func (t *Tx) pointed(column, none string) (Session, error) {
	s, err := scanSession(t.r.QueryRow(`SELECT ` + sessionColumns + sessionFrom + `
		WHERE s.id = (SELECT ` + column + ` FROM workspace) AND s.deleted_ms IS NULL`))
	if err != nil {
		return Session{}, fmt.Errorf("%s: %w", none, noRows(err, ErrNoSession))
	}
	return s, nil
}

// FindSession resolves what a person types: "current" or nothing, an id, a name, an agent's
// own id, or an unambiguous beginning of an id.
func (t *Tx) FindSession(ref string) (Session, error) {
	if ref == "" || ref == "current" {
		return t.Current()
	}
	for _, where := range []string{`s.sid = ?`, `s.name = ?`, `s.source_id = ?`, `substr(s.sid, 1, length(?1)) = ?1`} {
		found, err := t.sessions(`WHERE s.deleted_ms IS NULL AND `+where+` ORDER BY s.id`, ref)
		if err != nil {
			return Session{}, err
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			ids := make([]string, len(found))
			for i, s := range found {
				ids[i] = string(s.ID)
			}
			return Session{}, fmt.Errorf("%q fits %s: %w", ref, strings.Join(ids, ", "), ErrAmbiguous)
		}
	}
	return Session{}, fmt.Errorf("%q: %w", ref, ErrNoSession)
}

// NewSession describes a session to be made.
type NewSession struct {
	Name, Source, SourceID string
	// Head of a fork, with the parent it was forked from and where; zero for a fresh session,
	// whose root is put below the head of the session on which the disk stands.
	Head     NodeID
	Parent   SessionID
	ForkTurn int
	ForkMsg  int64
}

// CreateSession makes a session. It does not become current by that.
func (w *WriteTx) CreateSession(n NewSession) (Session, error) {
	if len(n.Name) > 200 || len(n.Source) > 64 || len(n.SourceID) > 1024 {
		return Session{}, fmt.Errorf("name, source or id of a session is too long: %w", ErrInvalid)
	}
	var parent, forkTurn, forkMsg, open any
	head, root := n.Head, NodeID(0)
	if n.Parent == "" {
		var below NodeID
		switch cur, err := w.Current(); {
		case err == nil:
			below = cur.Head
		case !errors.Is(err, ErrNoSession):
			return Session{}, err
		default:
			// The current session may have been deleted: the disk still stands somewhere.
			if err := w.r.Get(&below, `SELECT coalesce(max(head_id), 0) FROM session`); err != nil {
				return Session{}, err
			}
		}
		node, err := w.AddNode(below, RootNode)
		if err != nil {
			return Session{}, err
		}
		head, root = node.ID, node.ID
		open = node.ID // the preamble goes into the root
	} else {
		p, err := w.Session(n.Parent)
		if err != nil {
			return Session{}, err
		}
		pid, err := w.rowOf(n.Parent)
		if err != nil {
			return Session{}, err
		}
		parent, forkTurn, forkMsg, root = pid, n.ForkTurn, n.ForkMsg, p.Root
		if err := w.seal(head); err != nil {
			return Session{}, err
		}
	}
	now := ms(w.s.now())
	for try := 0; ; try++ {
		id := w.s.newID()
		var taken int
		if err := w.r.Get(&taken, `SELECT count(*) FROM session WHERE sid = ? OR source_id = ?`, id, id); err != nil {
			return Session{}, err
		}
		if taken > 0 && try < 100 {
			continue
		}
		_, err := w.insert(`
			INSERT INTO session (sid, name, source, source_id, head_id, root_id, open_id, parent_id, fork_turn, fork_msg,
			                     created_ms, updated_ms, event_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
			id, n.Name, n.Source, n.SourceID, head, root, open, parent, forkTurn, forkMsg, now, now)
		if err != nil {
			return Session{}, fmt.Errorf("create session: %w", err)
		}
		return w.Session(id)
	}
}

func (t *Tx) rowOf(id SessionID) (int64, error) {
	var row int64
	err := t.r.QueryRow(`SELECT id FROM session WHERE sid = ?`, id).Scan(&row)
	if err != nil {
		return 0, fmt.Errorf("session %q: %w", id, noRows(err, ErrNoSession))
	}
	return row, nil
}

// SetHead moves a session to a node, which is sealed by that unless it is the session's own
// open one.
func (w *WriteTx) SetHead(id SessionID, head NodeID) error {
	s, err := w.Session(id)
	if err != nil {
		return err
	}
	if head != s.Open {
		for _, n := range []NodeID{head, s.Open} {
			if err := w.seal(n); err != nil {
				return err
			}
		}
	}
	_, err = w.exec(`UPDATE session SET head_id = ?, updated_ms = ? WHERE sid = ?`, head, ms(w.s.now()), id)
	return err
}

// SetCurrent makes a session the workspace's current one and remembers the one before.
func (w *WriteTx) SetCurrent(id SessionID) error {
	_, err := w.exec(`
		UPDATE workspace
		SET previous_id = current_id, current_id = (SELECT id FROM session WHERE sid = ?1)
		WHERE id = 1 AND current_id IS NOT (SELECT id FROM session WHERE sid = ?1)`, id)
	return err
}

// RenameSession gives a session a name; an empty one takes it away.
func (w *WriteTx) RenameSession(id SessionID, name string) error {
	if len(name) > 200 {
		return fmt.Errorf("name is longer than 200 bytes: %w", ErrInvalid)
	}
	_, err := w.exec(`UPDATE session SET name = ?, updated_ms = ? WHERE sid = ?`, name, ms(w.s.now()), id)
	return err
}

// Touch notes an event of the session's agent now (for busy).
func (w *WriteTx) Touch(id SessionID) error {
	now := ms(w.s.now())
	_, err := w.exec(`UPDATE session SET event_ms = ?, updated_ms = ? WHERE sid = ?`, now, now, id)
	return err
}
