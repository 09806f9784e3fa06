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
		SELECT blob.id, hash, CAST(size AS INTEGER) AS size, CAST(encoding AS INTEGER) AS encoding,
		       CAST(base_id AS INTEGER) AS base_id, ifnull(length(data), -1) AS length,
		       CASE WHEN length(data) <= ? THEN data END AS data
		FROM blob `
	selectByHash = selectStored + `WHERE hash = ?`
	selectByID   = selectStored + `WHERE id = ?`

	// selectChain are the rows from id ?2 down, as far as deltas may lie on each other. Their order
	// is that in which the recursion finds them.
	selectChain = `
		WITH RECURSIVE part (id, n) AS (
		  SELECT ?2, 1
		  UNION ALL
		  SELECT b.base_id, part.n + 1
		  FROM part
		  JOIN blob b ON b.id = part.id
		  WHERE b.encoding = 2 AND part.n <= ?3
		)
		` + selectInChain
	selectInChain = `
		SELECT part.n, blob.id, CAST(size AS INTEGER), CAST(encoding AS INTEGER), CAST(base_id AS INTEGER),
		       ifnull(length(data), -1), CASE WHEN length(data) <= ?1 THEN data END
		FROM part
		CROSS JOIN blob ON blob.id = part.id`
	selectChunk = `
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
	var spare []byte // the content before the last: memory for the next
	for i := len(deltas) - 1; err == nil && i >= 0; i-- {
		r = deltas[i]
		if cap(spare) < int(r.Size) {
			spare = make([]byte, r.Size+1)
		}
		base := b
		b, err = decodeDelta(r.Data, spare[:r.Size], base)
		spare = base
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
	var parts []stored
	if Encoding(r.Encoding) == ZstdDelta && r.Base.Valid {
		if parts, err = loadChain(tx, h, r.Base.Int64); err != nil {
			return nil, r, err
		}
	}
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
		switch {
		case !r.Base.Valid:
			return nil, r, &DamagedError{Hash: h, Reason: "a delta names no base"}
		case len(parts) == 0:
			return nil, r, missing(h, r.Base.Int64)
		}
		r, parts = parts[0], parts[1:]
	}
}

func missing(h Hash, id int64) error {
	return &DamagedError{Hash: h, Reason: fmt.Sprintf("row %d, on which it depends, is missing", id)}
}

// loadChain reads the rows from id down in one statement: a statement for each would take most of the
// time.
func loadChain(tx *db.ReadTx, h Hash, id int64) ([]stored, error) {
	rows, err := tx.Query(selectChain, ChunkSize, id, maxDepth)
	if err != nil {
		return nil, readError(h, "its bases", err)
	}
	defer rows.Close()
	var all []stored
	for rows.Next() {
		var (
			r stored
			n int
		)
		if err := rows.Scan(&n, &r.ID, &r.Size, &r.Encoding, &r.Base, &r.Length, &r.Data); err != nil {
			return nil, readError(h, "its bases", err)
		}
		if n != len(all)+1 {
			break // one before it is missing
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, readError(h, "its bases", err)
	}
	return all, nil
}

// loadPart reads a row on which the content h depends.
func loadPart(tx *db.ReadTx, h Hash, id int64) (stored, error) {
	var r stored
	err := tx.Get(&r, selectByID, ChunkSize, id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, missing(h, id)
	case err != nil:
		return r, readError(h, fmt.Sprintf("row %d", id), err)
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
