package blob

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reasonix/db"
)

// maxDepth is how many deltas may lie between a content and one that stands by itself.
const maxDepth = 32

// stored is a row as it was found; nothing of it is trusted.
type stored struct {
	ID       int64         `db:"id"`
	Hash     []byte        `db:"hash"`
	Size     int64         `db:"size"`
	Encoding int64         `db:"encoding"`
	Base     sql.NullInt64 `db:"base_id"`
	Length   int64         `db:"length"` // of data, in bytes
	Data     []byte        `db:"data"`   // nil when it is longer than any row should be
}

// The casts matter only in a damaged file: they leave it to the checks below what a value means.
const (
	selectStored = `
		SELECT id, hash, CAST(size AS INTEGER) AS size, CAST(encoding AS INTEGER) AS encoding,
		       CAST(base_id AS INTEGER) AS base_id, ifnull(length(data), -1) AS length,
		       CASE WHEN length(data) <= ? THEN data END AS data
		FROM blob `
	selectByHash = selectStored + `WHERE hash = ?`
	selectByID   = selectStored + `WHERE id = ?`
	selectChunk  = `
		SELECT chunk_id
		FROM blob_chunk
		WHERE blob_id = ? AND seq = ?`
)

// load reads the row of h.
func load(tx *db.ReadTx, h Hash) (stored, error) {
	var r stored
	err := tx.Get(&r, selectByHash, ChunkSize, h[:])
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, fmt.Errorf("content %s: %w", h, ErrNotFound)
	case err != nil:
		return r, readError(h, "row", err)
	case r.expired():
		return r, fmt.Errorf("content %s: %w", h, ErrExpired)
	}
	return r, nil
}

// readError tells an error of the surroundings from one of the content.
func readError(h Hash, what string, err error) error {
	if db.IsCorrupt(err) {
		return &DamagedError{Hash: h, Reason: what, Err: err}
	}
	return fmt.Errorf("read content %s: %s: %w", h.Short(), what, err)
}

// Read returns the whole content of h, verified. max is the longest content, in bytes, that the
// caller will hold; a longer one gives ErrTooLarge. max <= 0 means no limit. Other errors are
// ErrNotFound, ErrExpired and *DamagedError.
func (s *Store) Read(ctx context.Context, h Hash, max int64) (b []byte, err error) {
	err = s.db.View(ctx, func(tx *db.ReadTx) error {
		b, err = ReadTx(tx, h, max)
		return err
	})
	return b, err
}

// ReadTx is Read inside a transaction.
func ReadTx(tx *db.ReadTx, h Hash, max int64) ([]byte, error) {
	r, err := load(tx, h)
	if err != nil {
		return nil, err
	}
	if max > 0 && r.Size > max {
		return nil, fmt.Errorf("content %s of %d bytes: %w", h.Short(), r.Size, ErrTooLarge)
	}
	if Encoding(r.Encoding) != Chunked {
		return content(tx, h, r)
	}
	// The size in the row is a claim: the memory grows with what is really there.
	var all []byte
	for c := newChunks(h, r); ; {
		b, err := c.next(tx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return all, nil
		}
		all = append(all, b...)
	}
}

// content returns the verified bytes of r, the row of h, which is not chunked.
func content(tx *db.ReadTx, h Hash, r stored) ([]byte, error) {
	deltas, r, err := chain(tx, h, r)
	if err != nil {
		return nil, err
	}
	b, err := decode(Encoding(r.Encoding), r.Data, int(r.Size), nil)
	for i := len(deltas) - 1; err == nil && i >= 0; i-- {
		r = deltas[i]
		b, err = decode(ZstdDelta, r.Data, int(r.Size), b)
	}
	if err != nil {
		return nil, &DamagedError{Hash: h, Reason: fmt.Sprintf("row %d cannot be decoded", r.ID), Err: err}
	}
	if Sum(b) != h {
		return nil, &DamagedError{Hash: h, Reason: "its bytes have another hash"}
	}
	return b, nil
}

// chain follows the bases of r down to a row that stands by itself.
func chain(tx *db.ReadTx, h Hash, r stored) (deltas []stored, last stored, err error) {
	for {
		if err := r.sound(); err != nil {
			return nil, r, &DamagedError{Hash: h, Reason: fmt.Sprintf("row %d", r.ID), Err: err}
		}
		if Encoding(r.Encoding) != ZstdDelta {
			return deltas, r, nil
		}
		if len(deltas) == maxDepth {
			return nil, r, &DamagedError{Hash: h, Reason: fmt.Sprintf("more than %d deltas lie on each other", maxDepth)}
		}
		deltas = append(deltas, r)
		base := r.Base
		if r, err = loadPart(tx, h, base); err != nil {
			return nil, r, err
		}
	}
}

// loadPart reads a row on which the content h depends.
func loadPart(tx *db.ReadTx, h Hash, id sql.NullInt64) (stored, error) {
	var r stored
	if !id.Valid {
		return r, &DamagedError{Hash: h, Reason: "a delta names no base"}
	}
	err := tx.Get(&r, selectByID, ChunkSize, id.Int64)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, &DamagedError{Hash: h, Reason: fmt.Sprintf("row %d, on which it depends, is missing", id.Int64)}
	case err != nil:
		return r, readError(h, fmt.Sprintf("row %d", id.Int64), err)
	}
	return r, nil
}

// sound reports what cannot be in a row that holds bytes, before memory is taken for it.
func (r stored) sound() error {
	switch {
	case r.Encoding < int64(Raw) || r.Encoding > int64(ZstdDelta):
		return fmt.Errorf("encoding %d holds no bytes", r.Encoding)
	case r.Size < 0 || r.Size > ChunkSize:
		return fmt.Errorf("size %d is out of range", r.Size)
	case r.Length < 0 || r.Length > ChunkSize:
		return fmt.Errorf("%d stored bytes are out of range", r.Length)
	}
	return nil
}
