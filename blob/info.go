package blob

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"reasonix/db"
)

// Info is what the store says of a content without looking into it.
type Info struct {
	Hash     Hash
	Size     int64 // of the content, in bytes
	Stored   int64 // what its row, or the rows of its chunks, hold, in bytes; shared chunks count each time
	Encoding Encoding
	Base     Hash // of a delta; else zero
	Expired  bool // its bytes were dropped
}

type infoRow struct {
	ID       int64         `db:"id"`
	Hash     []byte        `db:"hash"`
	Size     int64         `db:"size"`
	Encoding int64         `db:"encoding"`
	Stored   sql.NullInt64 `db:"stored"`
	Base     []byte        `db:"base"`
}

const infoColumns = `
	SELECT b.id, b.hash, CAST(b.size AS INTEGER) AS size, CAST(b.encoding AS INTEGER) AS encoding,
	       base.hash AS base,
	       CASE WHEN b.encoding <> 3 THEN length(b.data)
	            ELSE (SELECT sum(length(d.data))
	                  FROM blob_chunk AS c JOIN blob AS d ON d.id = c.chunk_id
	                  WHERE c.blob_id = b.id)
	       END AS stored
	FROM blob AS b LEFT JOIN blob AS base ON base.id = b.base_id `

func (r infoRow) info() (Info, error) {
	in := Info{Size: r.Size, Stored: r.Stored.Int64, Encoding: Encoding(r.Encoding)}
	in.Expired = in.Encoding == Raw && r.Stored.Int64 == 0 && r.Size > 0
	var err error
	if in.Hash, err = FromBytes(r.Hash); err != nil {
		return Info{}, &DamagedError{Reason: fmt.Sprintf("row %d", r.ID), Err: err}
	}
	if r.Base != nil {
		if in.Base, err = FromBytes(r.Base); err != nil {
			return Info{}, &DamagedError{Hash: in.Hash, Reason: "its base", Err: err}
		}
	}
	return in, nil
}

// Stat tells of the content of h; ErrNotFound when there is none.
func (s *Store) Stat(ctx context.Context, h Hash) (in Info, err error) {
	err = s.db.View(ctx, func(tx *db.ReadTx) error {
		var r infoRow
		err := tx.Get(&r, infoColumns+`WHERE b.hash = ?`, h[:])
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("content %s: %w", h, ErrNotFound)
		}
		if err != nil {
			return readError(h, "row", err)
		}
		in, err = r.info()
		return err
	})
	return in, err
}

// All tells of every content, chunks among them, in the order in which they came. A row that
// makes no sense gives a *DamagedError, after which the walk goes on; any other error ends it.
// No transaction is held while the loop's body runs: contents that come or go meanwhile may be
// told of or not.
func (s *Store) All(ctx context.Context) iter.Seq2[Info, error] {
	const page = 512
	return func(yield func(Info, error) bool) {
		for last := int64(-1 << 63); ; {
			var rows []infoRow
			err := s.db.View(ctx, func(tx *db.ReadTx) error {
				return tx.Select(&rows, infoColumns+`WHERE b.id > ? ORDER BY b.id LIMIT ?`, last, page)
			})
			if err != nil {
				yield(Info{}, fmt.Errorf("list contents: %w", err))
				return
			}
			for _, r := range rows {
				if in, err := r.info(); !yield(in, err) {
					return
				}
				last = r.ID
			}
			if len(rows) < page {
				return
			}
		}
	}
}
