package store

import (
	"errors"
	"fmt"
	"time"

	"reasonix/db"
)

var (
	// ErrTaken is returned when a name stands for something else already.
	ErrTaken = errors.New("the name is taken")
	// ErrNoPin is returned when no pin has the name.
	ErrNoPin = errors.New("no such pin")
)

// Pin is a name of a turn, which collection keeps as long as it has one.
type Pin struct {
	Name    string
	Session SessionID
	Turn    int
	Node    NodeID // the turn's
	Created time.Time
}

// AddPin names a turn of a session's line. The name has 1 to 64 bytes and is unique in the store:
// ErrTaken. A turn may have several names.
func (w *WriteTx) AddPin(name string, id SessionID, turn int) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("the name of a pin has 1 to 64 bytes: %w", ErrInvalid)
	}
	s, err := w.Session(id)
	if err != nil {
		return err
	}
	t, err := w.Turn(s.Head, turn)
	if err != nil {
		return err
	}
	_, err = w.exec(`
		INSERT INTO pin (name, session_id, node_id, created_ms)
		VALUES (?, (SELECT id FROM session WHERE sid = ?), ?, ?)`, name, id, t.Node.ID, ms(w.s.now()))
	if db.IsConstraint(err) {
		err = ErrTaken
	}
	if err != nil {
		return fmt.Errorf("pin turn %d as %q: %w", turn, name, err)
	}
	return nil
}

// RemovePin takes a name away; ErrNoPin when there is none.
func (w *WriteTx) RemovePin(name string) error {
	n, err := w.exec(`DELETE FROM pin WHERE name = ?`, name)
	if err == nil && n == 0 {
		err = ErrNoPin
	}
	if err != nil {
		return fmt.Errorf("unpin %q: %w", name, err)
	}
	return nil
}

const selectPins = `
	SELECT p.name, s.sid, n.turn, p.node_id, p.created_ms
	FROM pin p
	JOIN session s ON s.id = p.session_id
	JOIN node n ON n.id = p.node_id `

// Pins are all pins, by name.
func (t *Tx) Pins() ([]Pin, error) {
	return collect(t, scanPin, selectPins+`ORDER BY p.name`)
}

// Pin reads one pin; ErrNoPin when no pin has the name.
func (t *Tx) Pin(name string) (Pin, error) {
	p, err := scanPin(t.r.QueryRow(selectPins+`WHERE p.name = ?`, name))
	if err != nil {
		return Pin{}, fmt.Errorf("pin %q: %w", name, noRows(err, ErrNoPin))
	}
	return p, nil
}

func scanPin(row scanner) (p Pin, err error) {
	var created int64
	err = row.Scan(&p.Name, &p.Session, &p.Turn, &p.Node, &created)
	p.Created = at(created)
	return p, err
}
