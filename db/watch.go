package db

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Watch notices that a store was changed, by whatever process. It holds a connection of its own
// and no transaction. It is for one goroutine.
type Watch struct {
	conn *sqlx.Conn
	last int64
}

// Watch begins to watch; the caller closes it before the DB.
func (d *DB) Watch(ctx context.Context) (*Watch, error) {
	conn, err := d.connect(ctx, d.readers)
	if err != nil {
		return nil, fmt.Errorf("watch the store: %w", err)
	}
	w := &Watch{conn: conn}
	if _, err := w.Changed(ctx); err != nil {
		_ = conn.Close() // the connection is of no use
		return nil, err
	}
	return w, nil
}

// Changed reports whether a transaction was committed since the last call. It costs one look at
// memory that all processes share: SQLite counts the commits of connections other than this one,
// which never writes.
func (w *Watch) Changed(ctx context.Context) (bool, error) {
	before := w.last
	if err := w.conn.QueryRowxContext(ctx, "PRAGMA data_version").Scan(&w.last); err != nil {
		return false, fmt.Errorf("watch the store: %w", err)
	}
	return w.last != before, nil
}

// Close ends the watch.
func (w *Watch) Close() error { return w.conn.Close() }
