package blob

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reasonix/db"
)

// Bind makes p part of tx and returns its row. When the store has the content already, that row
// is returned; binding again gives the same row. The lease ends with tx: when tx is rolled back
// p can be bound anew. Once tx is committed the content is as durable as tx, and stays as long
// as a row that tx or a later one wrote refers to it. ErrGone means that p came too late.
func (s *Store) Bind(tx *db.WriteTx, p *Prepared) (ID, error) {
	id, known, err := Lookup(&tx.ReadTx, p.hash)
	if err != nil {
		return 0, err
	}
	if !known {
		if id, err = bindNew(tx, p, id); err != nil {
			return 0, err
		}
	}
	s.release(p)
	return id, endLease(tx, p)
}

// bindNew writes a content that is not there; gone is the row that Expire left of it, if any.
func bindNew(tx *db.WriteTx, p *Prepared, gone ID) (ID, error) {
	if p.digest {
		return 0, fmt.Errorf("bind content %s, which was only named: %w", p.hash.Short(), ErrGone)
	}
	if len(p.chunks) > 0 {
		return bindChunks(tx, p, gone)
	}
	if p.data == nil && p.size > 0 {
		return 0, fmt.Errorf("bind content %s: %w", p.hash.Short(), ErrGone)
	}
	return p.insert(tx, gone)
}

func bindChunks(tx *db.WriteTx, p *Prepared, gone ID) (ID, error) {
	id, err := insert(tx, gone, p.hash, p.size, form{encoding: Chunked})
	if err != nil {
		return 0, err
	}
	for seq, h := range p.chunks {
		chunk, known, err := Lookup(&tx.ReadTx, h)
		if err != nil {
			return 0, err
		}
		if !known {
			return 0, fmt.Errorf("bind content %s: chunk %d: %w", p.hash.Short(), seq, ErrGone)
		}
		const q = `INSERT INTO blob_chunk (blob_id, seq, chunk_id) VALUES (?, ?, ?)`
		if _, err := tx.Exec(q, id, seq, chunk); err != nil {
			return 0, fmt.Errorf("bind content %s: %w", p.hash.Short(), err)
		}
	}
	return id, nil
}

func endLease(tx *db.WriteTx, p *Prepared) error {
	if p.lease == 0 {
		return nil
	}
	if _, err := tx.Exec(`DELETE FROM blob_lease WHERE id = ?`, p.lease); err != nil {
		return fmt.Errorf("end the lease of content %s: %w", p.hash.Short(), err)
	}
	return nil
}

// Discard gives back the lease of a content that will not be bound, so that the next sweep may
// remove what Prepare wrote. p must not be used afterwards. nil, a p that has no lease and one that
// was bound are fine, and cost no write.
func (s *Store) Discard(ctx context.Context, p *Prepared) error {
	if p == nil {
		return nil
	}
	s.release(p)
	if p.lease == 0 {
		return nil
	}
	var runs bool
	err := s.db.View(ctx, func(tx *db.ReadTx) error {
		return tx.Get(&runs, `SELECT EXISTS (SELECT 1 FROM blob_lease WHERE id = ?)`, p.lease)
	})
	if err != nil {
		return fmt.Errorf("end the lease of content %s: %w", p.hash.Short(), err)
	}
	if !runs {
		p.lease = 0
		return nil
	}
	err = s.db.Update(ctx, func(tx *db.WriteTx) error { return endLease(tx, p) })
	if err == nil {
		p.lease = 0
	}
	return err
}

// Lookup returns the row of h and whether its bytes are stored; a row without them is what Expire
// left, and 0 says that there is none. It does not check the content.
func Lookup(tx *db.ReadTx, h Hash) (id ID, stored bool, err error) {
	const q = `SELECT id, ifnull(encoding <> 0 OR length(data) > 0 OR size = 0, 1) FROM blob WHERE hash = ?`
	err = tx.QueryRow(q, h[:]).Scan(&id, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look up content %s: %w", h.Short(), err)
	}
	return id, stored, nil
}

// HashOf returns the name of the content in row id; ErrNotFound when there is no such row.
func HashOf(tx *db.ReadTx, id ID) (Hash, error) {
	var b []byte
	err := tx.Get(&b, `SELECT hash FROM blob WHERE id = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Hash{}, fmt.Errorf("content row %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Hash{}, fmt.Errorf("look up content row %d: %w", id, err)
	}
	h, err := FromBytes(b)
	if err != nil {
		return Hash{}, &DamagedError{Reason: fmt.Sprintf("row %d", id), Err: err}
	}
	return h, nil
}
