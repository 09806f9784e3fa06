package store

import (
	"errors"
	"fmt"
	"time"
)

// An import writes a session in several transactions. Until it is finished the session is hidden: it
// is deleted at time 0. A lease keeps what it wrote from collection; of an import that was killed
// nothing shows, and collection removes it once the lease has run out.

// leaseTime is how long an import may take between two of its transactions.
const leaseTime = 10 * time.Minute

// ErrImported is returned when a session of that source and id is there already.
var ErrImported = errors.New("it was imported before")

// Import is a session that is being written. It belongs to one goroutine.
type Import struct {
	ID    SessionID
	row   int64
	lease int64
	head  Node
	Turns int
}

// NewImport says what session is made. Times that are zero are those of the import.
type NewImport struct {
	Name, Source, SourceID string
	Created, Updated       time.Time
}

// ImportTurn is a turn of an import.
type ImportTurn struct {
	Prompt         string
	Status         Status // Done, Interrupted or Failed
	Started, Ended time.Time
}

// BeginImport begins a session below the one on which the disk stands. ErrImported when its source has
// one of that id.
func (w *WriteTx) BeginImport(n NewImport) (*Import, error) {
	if n.Source == "" || n.SourceID == "" || len(n.SourceID) > 1024 || len(n.Source) > 64 {
		return nil, fmt.Errorf("an import has a source and an id: %w", ErrInvalid)
	}
	if len(n.Name) > 200 {
		n.Name = ""
	}
	if s, err := w.Imported(n.Source, n.SourceID); err == nil {
		return nil, fmt.Errorf("session %s: %w", s.ID, ErrImported)
	} else if !errors.Is(err, ErrNoSession) {
		return nil, err
	}
	s, err := w.CreateSession(NewSession{Name: n.Name})
	if err != nil {
		return nil, err
	}
	i := &Import{ID: s.ID}
	if i.row, err = w.rowOf(s.ID); err != nil {
		return nil, err
	}
	if i.head, err = w.Node(s.Head); err != nil {
		return nil, err
	}
	_, err = w.exec(`UPDATE session SET open_id = NULL, deleted_ms = 0 WHERE id = ?`, i.row)
	if err != nil {
		return nil, err
	}
	return i, w.KeepImport(i)
}

// KeepImport renews the lease: call it in every transaction of an import, also those that only bind
// contents.
func (w *WriteTx) KeepImport(i *Import) error {
	until := ms(w.s.now().Add(leaseTime))
	if i.lease != 0 {
		n, err := w.exec(`UPDATE blob_lease SET expires_ms = ? WHERE id = ?`, until, i.lease)
		if err == nil && n == 0 {
			err = fmt.Errorf("the import took too long: %w", ErrInvalid)
		}
		if err == nil { // its line is what collection keeps
			_, err = w.exec(`UPDATE session SET head_id = ? WHERE id = ? AND head_id <> ?`, i.head.ID, i.row, i.head.ID)
		}
		return err
	}
	id, err := w.insert(`INSERT INTO blob_lease (expires_ms) VALUES (?)`, until)
	i.lease = id
	return err
}

// Head is the node that takes messages, rows and gaps: the root, then the newest turn.
func (i *Import) Head() Node { return i.head }

// AddImportTurn adds a turn below the head, which is sealed by that.
func (w *WriteTx) AddImportTurn(i *Import, t ImportTurn) (Node, error) {
	n, err := w.AddNode(i.head.ID, TurnNode)
	if err != nil {
		return n, err
	}
	if t.Started.IsZero() {
		t.Started = w.s.now()
	}
	if t.Ended.Before(t.Started) {
		t.Ended = t.Started
	}
	if t.Status == 0 || t.Status == TurnOpen {
		t.Status = TurnDone
	}
	_, err = w.exec(`
		INSERT INTO turn (node_id, session_id, prompt, status, started_ms, ended_ms)
		VALUES (?, ?, ?, ?, ?, ?)`, n.ID, i.row, t.Prompt, t.Status, ms(t.Started), ms(t.Ended))
	if err != nil {
		return n, fmt.Errorf("import turn: %w", err)
	}
	i.head, i.Turns = n, i.Turns+1
	return n, w.KeepImport(i)
}

// AppendImported adds messages at the head.
func (w *WriteTx) AppendImported(i *Import, msgs []NewMessage) error {
	if err := w.AppendMessages(i.head, msgs); err != nil {
		return err
	}
	i.head.MsgCount += int64(len(msgs))
	return w.KeepImport(i)
}

// FinishImport lets the session show. It becomes the current one where there is none. What the store
// says is the parent may be "", and is then no link.
func (w *WriteTx) FinishImport(i *Import, n NewImport) (Session, error) {
	created, updated := n.Created, n.Updated
	if created.IsZero() {
		created = w.s.now()
	}
	if updated.Before(created) {
		updated = created
	}
	if _, err := w.Imported(n.Source, n.SourceID); err == nil {
		return Session{}, ErrImported
	}
	_, err := w.exec(`
		UPDATE session
		SET source = ?, source_id = ?, head_id = ?, created_ms = ?, updated_ms = ?, deleted_ms = NULL
		WHERE id = ?`, n.Source, n.SourceID, i.head.ID, ms(created), ms(updated), i.row)
	if err != nil {
		return Session{}, fmt.Errorf("finish import: %w", err)
	}
	if _, err := w.exec(`DELETE FROM blob_lease WHERE id = ?`, i.lease); err != nil {
		return Session{}, err
	}
	if _, err := w.Current(); errors.Is(err, ErrNoSession) {
		if err := w.SetCurrent(i.ID); err != nil {
			return Session{}, err
		}
	}
	s, err := w.Session(i.ID)
	if err != nil {
		return s, err
	}
	_, err = w.AddOperation(Operation{
		Session: s.ID, Kind: OpImport, Turn: -1, State: Applied, HeadFrom: s.Root, HeadTo: s.Head,
	}, nil)
	return s, err
}

// AbandonImport takes the lease away: collection removes what was written.
func (w *WriteTx) AbandonImport(i *Import) error {
	_, err := w.exec(`DELETE FROM blob_lease WHERE id = ?`, i.lease)
	return err
}

// LinkFork says that a session was forked from another one, which does not share its nodes: another
// program copied them. A link that is there stays.
func (w *WriteTx) LinkFork(id, parent SessionID, turn int, msg int64) error {
	_, err := w.exec(`
		UPDATE session
		SET parent_id = (SELECT id FROM session WHERE sid = ?2), fork_turn = ?3, fork_msg = ?4
		WHERE sid = ?1 AND parent_id IS NULL AND sid <> ?2`, id, parent, turn, msg)
	if err != nil {
		return fmt.Errorf("link fork %s: %w", id, err)
	}
	return nil
}

// AddImportAppend adds a node below the head for what somebody else did between two turns.
func (w *WriteTx) AddImportAppend(i *Import) (Node, error) {
	n, err := w.AddNode(i.head.ID, AppendNode)
	if err == nil {
		i.head = n
	}
	return n, err
}

// Imported reads the session that was made of one of another program. Unlike SessionOf it never takes
// the id for one of ours. ErrNoSession.
func (t *Tx) Imported(source, sourceID string) (Session, error) {
	s, err := scanSession(t.r.QueryRow(`SELECT `+sessionColumns+sessionFrom+`
		WHERE s.source = ? AND s.source_id = ? AND s.deleted_ms IS NULL`, source, sourceID))
	if err != nil {
		return Session{}, fmt.Errorf("session %q of %s: %w", sourceID, source, noRows(err, ErrNoSession))
	}
	return s, nil
}
