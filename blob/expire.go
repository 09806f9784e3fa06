package blob

import (
	"errors"
	"fmt"

	"reasonix/db"
)

// ErrExpired is returned when the store has dropped the bytes of a content and kept its name:
// it was there, and it can not be had back.
var ErrExpired = errors.New("the content was dropped")

// ErrNeeded is returned when a content that is to be dropped is the base or a chunk of another.
var ErrNeeded = errors.New("another content is stored against this one")

// Reason says why the bytes of a content were dropped.
type Reason uint8

// The numbers are stored; they never change.
const (
	Retention Reason = 1 // it was older than what is kept
	Purged    Reason = 2 // a person wanted it gone
)

// expired reports whether a row is what Expire leaves.
func (r stored) expired() bool { return r.Encoding == int64(Raw) && r.Length == 0 && r.Size > 0 }

// Expire drops the bytes of contents and keeps their rows, which what refers to them needs: reading
// one gives ErrExpired from then on, and binding the same content again brings it back. A content
// of no bytes, and one that is expired already, stay as they are. Their chunks become contents that
// nothing refers to. ErrNeeded means that a content that still has its bytes is stored against one
// of them; nothing is dropped then.
func (s *Store) Expire(tx *db.WriteTx, why Reason, ids ...ID) error {
	for _, id := range ids {
		if err := unneeded(tx, id); err != nil {
			return err
		}
		for _, q := range []string{
			`DELETE FROM blob_chunk WHERE blob_id = ?`,
			`UPDATE blob SET encoding = 0, base_id = NULL, depth = 0, data = x'' WHERE id = ? AND size > 0`,
		} {
			if _, err := tx.Exec(q, id); err != nil {
				return fmt.Errorf("expire content row %d: %w", id, err)
			}
		}
		const q = `
			INSERT INTO blob_expired (blob_id, reason, expired_ms)
			SELECT id, ?, ? FROM blob WHERE id = ? AND size > 0
			ON CONFLICT (blob_id) DO UPDATE SET reason = max(reason, excluded.reason)`
		if _, err := tx.Exec(q, why, s.now().UnixMilli(), id); err != nil {
			return fmt.Errorf("expire content row %d: %w", id, err)
		}
	}
	return nil
}

// Delete removes contents with their rows. Nothing may refer to them any more, or a foreign key
// refuses; ErrNeeded means that another content is stored against one of them.
func (s *Store) Delete(tx *db.WriteTx, ids ...ID) error {
	for _, id := range ids {
		if err := unneeded(tx, id); err != nil {
			return err
		}
		for _, q := range []string{`DELETE FROM blob_chunk WHERE blob_id = ?`, `DELETE FROM blob WHERE id = ?`} {
			if _, err := tx.Exec(q, id); err != nil {
				return fmt.Errorf("delete content row %d: %w", id, err)
			}
		}
	}
	return nil
}

// unneeded gives ErrNeeded when another content is stored against id.
func unneeded(tx *db.WriteTx, id ID) error {
	const q = `
		SELECT EXISTS (SELECT 1 FROM blob WHERE base_id = ?1)
		    OR EXISTS (SELECT 1 FROM blob_chunk WHERE chunk_id = ?1)`
	var needed bool
	if err := tx.Get(&needed, q, id); err != nil {
		return fmt.Errorf("drop content row %d: %w", id, err)
	}
	if needed {
		return fmt.Errorf("drop content row %d: %w", id, ErrNeeded)
	}
	return nil
}

// Detach stores contents that are deltas each by itself, so that nothing hangs on their bases. Others
// stay as they are. A *DamagedError leaves everything as it was.
func (s *Store) Detach(tx *db.WriteTx, ids ...ID) error {
	for _, id := range ids {
		h, err := HashOf(&tx.ReadTx, id)
		if err != nil {
			return err
		}
		r, err := load(&tx.ReadTx, h)
		if err != nil {
			return err
		}
		if Encoding(r.Encoding) != ZstdDelta {
			continue
		}
		raw, err := content(&tx.ReadTx, h, r)
		if err != nil {
			return err
		}
		enc, data := encode(raw)
		if data == nil {
			data = []byte{}
		}
		const q = `UPDATE blob SET encoding = ?, base_id = NULL, depth = 0, data = ? WHERE id = ?`
		if _, err := tx.Exec(q, enc, data, id); err != nil {
			return fmt.Errorf("store content %s by itself: %w", h.Short(), err)
		}
	}
	return nil
}
