package store

import (
	"errors"
	"fmt"
)

// ErrCurrent is returned when the session on which the disk stands is to be deleted.
var ErrCurrent = errors.New("it is the current session")

// hidden is what the agent's own id of a deleted session begins with: the agent that goes on under
// it makes a new session.
const hidden = "deleted:"

// DeleteSession hides a session. Its history stays until collection finds that the operation which
// is logged here can no longer be undone. ErrCurrent, ErrNoSession.
func (w *WriteTx) DeleteSession(id SessionID) (OpID, error) {
	s, err := w.Session(id)
	switch {
	case err != nil:
		return 0, err
	case s.Current:
		return 0, fmt.Errorf("delete session %s: %w", id, ErrCurrent)
	}
	op, err := w.AddOperation(Operation{
		Session: id, Kind: OpDelete, Turn: -1, State: Applied, HeadFrom: s.Head, HeadTo: s.Head,
	}, nil)
	if err != nil {
		return 0, err
	}
	_, err = w.exec(`
		UPDATE session
		SET deleted_ms = ?2, source_id = CASE source_id WHEN '' THEN '' ELSE ?3 || sid || ':' || source_id END
		WHERE sid = ?1`, id, ms(w.s.now()), hidden)
	if err != nil {
		return 0, fmt.Errorf("delete session %s: %w", id, err)
	}
	return op, nil
}

// RestoreSession takes the deletion of a session back, as an undo of the operation of. Where its
// agent has begun another session under the same id meanwhile, that one keeps it.
func (w *WriteTx) RestoreSession(of Operation) (OpID, error) {
	if of.Kind != OpDelete || of.UndoneBy != 0 {
		return 0, fmt.Errorf("operation %d is no deletion that stands: %w", of.ID, ErrInvalid)
	}
	id, err := w.AddOperation(Operation{
		Session: of.Session, Kind: OpUndo, Of: of.ID, Turn: -1, State: Applied, HeadFrom: of.HeadTo, HeadTo: of.HeadFrom,
	}, nil)
	if err != nil {
		return 0, err
	}
	_, err = w.exec(`
		UPDATE session
		SET deleted_ms = NULL,
		    source_id = (
		      SELECT CASE WHEN EXISTS (SELECT 1 FROM session o WHERE o.source = session.source AND o.source_id = was.id)
		                  THEN '' ELSE was.id END
		      FROM (SELECT substr(session.source_id, length(?2 || session.sid || ':') + 1) AS id) was)
		WHERE sid = ?1 AND deleted_ms IS NOT NULL`, of.Session, hidden)
	if err != nil {
		return 0, fmt.Errorf("restore session %s: %w", of.Session, err)
	}
	return id, nil
}

// NewestDeletion is the newest deletion of any session that stands; ErrNoOperation when there is
// none.
func (t *Tx) NewestDeletion() (Operation, error) {
	ops, err := t.operations(`WHERE o.kind = 9 AND o.state = 2 AND o.undone_by IS NULL ORDER BY o.id DESC LIMIT 1`)
	if err == nil && len(ops) == 0 {
		err = ErrNoOperation
	}
	if err != nil {
		return Operation{}, err
	}
	return ops[0], nil
}
