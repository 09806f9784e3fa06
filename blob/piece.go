package blob

import (
	"database/sql"
	"errors"
	"fmt"

	"reasonix/db"
)

// piece is a content of at most ChunkSize that is ready to be inserted, in one or two forms: one
// that stands by itself, and one against a base, which is taken when the base is still there.
type piece struct {
	hash Hash
	size int64

	// By itself: as it will be stored, or raw when packed is false, since the other form, or the
	// store, made compressing seem needless. data is nil when the content is in the store and
	// too much was held in memory.
	packed   bool
	encoding Encoding
	data     []byte

	delta []byte // against base; nil for none
	base  Hash
}

// form is how a row holds a content.
type form struct {
	encoding Encoding
	base     ID // of a delta, else 0
	depth    int
	data     []byte
}

// insert writes the row of a piece, or fills the row gone, which Expire left of it.
func (p *piece) insert(tx *db.WriteTx, gone ID) (ID, error) {
	f, err := p.form(tx)
	if err != nil {
		return 0, err
	}
	return insert(tx, gone, p.hash, p.size, f)
}

// form decides whether the base can be used: gc may have removed it, or others built on it, since
// the piece was made.
func (p *piece) form(tx *db.WriteTx) (form, error) {
	if p.delta != nil {
		base, depth, ok, err := lookupBase(&tx.ReadTx, p.base, p.size)
		if err != nil {
			return form{}, err
		}
		if ok {
			return form{ZstdDelta, base, depth + 1, p.delta}, nil
		}
	}
	f := form{encoding: p.encoding, data: p.data}
	if !p.packed {
		f.encoding, f.data = encode(p.data)
	}
	return f, nil
}

// pack makes the form that stands by itself final.
func (p *piece) pack() {
	if !p.packed {
		p.packed = true
		p.encoding, p.data = encode(p.data)
	}
}

// memory is what the piece keeps, in bytes.
func (p *piece) memory() int64 { return int64(cap(p.data) + cap(p.delta)) }

// lookupBase tells of the row of h, and whether a content of size bytes may be stored against it.
func lookupBase(tx *db.ReadTx, h Hash, size int64) (id ID, depth int, ok bool, err error) {
	const q = `
		SELECT id, CAST(depth AS INTEGER),
		       ifnull(encoding <> 3 AND size BETWEEN 1 AND ?2 AND length(data) > 0 AND depth BETWEEN 0 AND ?3, 0)
		FROM blob WHERE hash = ?1`
	err = tx.QueryRow(q, h[:], ChunkSize, depthFor(size)-1).Scan(&id, &depth, &ok)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("look up base %s: %w", h.Short(), err)
	}
	return id, depth, ok, nil
}

// insert writes the row of a content, or fills the row gone, which Expire left of it.
func insert(tx *db.WriteTx, gone ID, h Hash, size int64, f form) (ID, error) {
	if gone != 0 {
		return gone, revive(tx, gone, f)
	}
	const q = `INSERT INTO blob (hash, size, encoding, base_id, depth, data) VALUES (?, ?, ?, ?, ?, ?)`
	res, err := tx.Exec(q, h[:], size, f.encoding, f.baseID(), f.depth, f.bytes())
	if err != nil {
		return 0, fmt.Errorf("insert content %s: %w", h.Short(), err)
	}
	id, err := res.LastInsertId()
	return ID(id), err
}

func revive(tx *db.WriteTx, id ID, f form) error {
	err := f.update(tx, id)
	if err == nil {
		_, err = tx.Exec(`DELETE FROM blob_expired WHERE blob_id = ?`, id)
	}
	if err != nil {
		return fmt.Errorf("store content row %d again: %w", id, err)
	}
	return nil
}

// update gives row id another form.
func (f form) update(tx *db.WriteTx, id ID) error {
	_, err := tx.Exec(`UPDATE blob SET encoding = ?, base_id = ?, depth = ?, data = ? WHERE id = ?`,
		f.encoding, f.baseID(), f.depth, f.bytes(), id)
	return err
}

func (f form) baseID() any {
	if f.base == 0 {
		return nil
	}
	return f.base
}

func (f form) bytes() []byte {
	if f.data == nil {
		return []byte{} // nil would be NULL
	}
	return f.data
}
