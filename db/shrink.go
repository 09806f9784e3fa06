package db

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Size is how large the file is, in bytes, and how much of that is free for reuse. What lies in
// the WAL counts as if it were in the file already.
func (t *ReadTx) Size() (all, free int64, err error) {
	var pages, unused, page int64
	for _, one := range []struct {
		pragma string
		to     *int64
	}{{"page_count", &pages}, {"freelist_count", &unused}, {"page_size", &page}} {
		if err := t.Get(one.to, "PRAGMA "+one.pragma); err != nil {
			return 0, 0, fmt.Errorf("read the size of the store: %w", err)
		}
	}
	return pages * page, unused * page, nil
}

// Checkpoint moves what the WAL holds into the file and empties the WAL, so that space which was
// given back is the system's. whole is false when a reader stood in the way; a later one, or the
// last Close, then does it.
func (d *DB) Checkpoint(ctx context.Context) (whole bool, err error) {
	err = d.outside(ctx, func(conn *sqlx.Conn) error {
		whole, err = checkpoint(ctx, conn)
		return err
	})
	return whole, err
}

// Erase overwrites what was deleted from the store: it rewrites the file without any free space
// and empties the WAL. It needs about the size of the store once more on the disk meanwhile. clean
// is false when a reader of another process still holds the WAL: it may then hold deleted bytes
// until that ends and Erase, or a Checkpoint, comes again. A crash leaves the store whole.
func (d *DB) Erase(ctx context.Context) (clean bool, err error) {
	err = d.outside(ctx, func(conn *sqlx.Conn) error {
		for _, q := range []string{"PRAGMA secure_delete = ON", "VACUUM"} {
			if _, err := conn.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		clean, err = checkpoint(ctx, conn)
		return err
	})
	return clean, err
}

func checkpoint(ctx context.Context, conn *sqlx.Conn) (whole bool, err error) {
	var busy, log, moved int
	err = conn.QueryRowxContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	return err == nil && busy == 0, err
}

// outside runs fn on the writer's connection while no Update of any process runs, and outside of
// a transaction.
func (d *DB) outside(ctx context.Context, fn func(*sqlx.Conn) error) error {
	release, err := d.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	conn, err := d.connect(ctx, d.writer)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := fn(conn); err != nil {
		return fmt.Errorf("tidy the store: %w", err)
	}
	return nil
}
