package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// ReadTx is a transaction that sees one state of the store, whatever is written meanwhile. It
// belongs to the callback that got it and to one goroutine; afterwards it gives ErrTxDone.
// Statements are kept prepared by their text: use constants and placeholders.
type ReadTx struct {
	ctx    context.Context
	conn   *sqlx.Conn // nil once the transaction is over
	failed error      // the error with which SQLite may have ended the transaction

	rows     context.Context // lazily: ends results that the callback left open
	stopRows context.CancelFunc
}

// WriteTx is a transaction that may also write. It sees its own writes.
type WriteTx struct {
	ReadTx
	fault func(point string) error
}

// View runs fn in a read transaction and returns its error. fn may call View again, which can
// see a later state. View never waits for an Update.
func (d *DB) View(ctx context.Context, fn func(*ReadTx) error) (err error) {
	tx, pool := &ReadTx{ctx: ctx}, d.readers
	if d.one && d.turn.TryLock() {
		defer d.turn.Unlock()
		pool = d.writer
	}
	if tx.conn, err = d.connect(ctx, pool); err != nil {
		return fmt.Errorf("begin reading: %w", err)
	}
	if _, err := tx.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return errors.Join(fmt.Errorf("begin reading: %w", err), tx.conn.Close())
	}
	defer tx.end("ROLLBACK")
	return fn(tx)
}

// Update runs fn in the store's only write transaction. When fn returns nil the transaction is
// committed, and durable once Update returns nil. When fn returns an error or panics, or ctx is
// done before the commit, nothing of it stays; the error is returned as it is. After a crash
// the store holds all of it or nothing.
//
// Update waits for the other writers of all processes as long as ctx allows; the error is then
// ctx.Err. It must not be called from inside another Update of the same store, which would
// wait for itself. Keep fn short and free of other input and output.
func (d *DB) Update(ctx context.Context, fn func(*WriteTx) error) error {
	release, err := d.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	tx := &WriteTx{ReadTx: ReadTx{ctx: ctx}, fault: d.fault}
	if err := tx.point("begin"); err != nil {
		return err
	}
	if tx.conn, err = d.connect(ctx, d.writer); err != nil {
		return fmt.Errorf("begin writing: %w", err)
	}
	if _, err := tx.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		tx.end("ROLLBACK")
		if cannotMake(err) { // the folder, where a WAL would have to be made
			err = fmt.Errorf("%w: %w", ErrReadOnly, err)
		}
		return fmt.Errorf("begin writing: %w", err)
	}
	defer tx.end("ROLLBACK")
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.commit(); err != nil {
		return err
	}
	return tx.point("committed")
}

// alone makes the caller the only writer of all processes, until release.
func (d *DB) alone(ctx context.Context) (release func(), err error) {
	if d.writer == nil {
		return nil, ErrReadOnly
	}
	unlock, err := d.lock(ctx)
	if err != nil || !d.one {
		return unlock, err
	}
	d.turn.Lock()
	return func() { d.turn.Unlock(); unlock() }, nil
}

func (d *DB) connect(ctx context.Context, pool *sqlx.DB) (*sqlx.Conn, error) {
	select {
	case <-d.closed:
		return nil, ErrClosed
	default:
		return pool.Connx(ctx)
	}
}

func (t *WriteTx) commit() error {
	if t.failed != nil {
		return t.failed
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if err := t.point("commit"); err != nil {
		return err
	}
	t.closeRows()
	// From here on ctx no longer counts: an interrupted COMMIT would leave it open whether
	// the transaction took effect.
	if _, err := t.conn.ExecContext(context.WithoutCancel(t.ctx), "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	t.release()
	return nil
}

func (t *WriteTx) point(name string) error {
	if t.fault == nil {
		return nil
	}
	return t.fault(name)
}

// end runs the statement that ends the transaction, unless it is over. A connection on which
// that fails is thrown away: SQLite has then already rolled back, or never will.
func (t *ReadTx) end(statement string) {
	if t.conn == nil {
		return
	}
	t.closeRows()
	if _, err := t.conn.ExecContext(context.WithoutCancel(t.ctx), statement); err != nil {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	t.release()
}

// release gives the connection back. Its error only says that it was thrown away before.
func (t *ReadTx) release() {
	_ = t.conn.Close()
	t.conn = nil
}

func (t *ReadTx) closeRows() {
	if t.stopRows != nil {
		t.stopRows()
	}
}

// Context is the context that View or Update was given.
func (t *ReadTx) Context() context.Context { return t.ctx }

// Get reads one row into dest as sqlx.Get does; it gives sql.ErrNoRows when there is none.
func (t *ReadTx) Get(dest any, query string, args ...any) error {
	if err := t.usable(); err != nil {
		return err
	}
	return t.note(t.conn.GetContext(t.ctx, dest, query, args...))
}

// Select reads all rows into the slice that dest points to, as sqlx.Select does.
func (t *ReadTx) Select(dest any, query string, args ...any) error {
	if err := t.usable(); err != nil {
		return err
	}
	return t.note(t.conn.SelectContext(t.ctx, dest, query, args...))
}

// Query returns the rows to be read one by one; the caller closes them. They end with the
// transaction.
func (t *ReadTx) Query(query string, args ...any) (*sqlx.Rows, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	rows, err := t.conn.QueryxContext(t.rowsContext(), query, args...)
	return rows, t.note(err)
}

// QueryRow returns one row, whose Scan gives the error, sql.ErrNoRows when there is none.
func (t *ReadTx) QueryRow(query string, args ...any) *sqlx.Row {
	if err := t.usable(); err != nil {
		return failedRow(err)
	}
	return t.conn.QueryRowxContext(t.rowsContext(), query, args...)
}

// Exec runs a statement that changes the store. After an error with which SQLite may have
// rolled back everything (a full disk, a done ctx), the transaction cannot be committed.
func (t *WriteTx) Exec(query string, args ...any) (sql.Result, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if err := t.point("exec"); err != nil {
		return nil, err
	}
	res, err := t.conn.ExecContext(t.ctx, query, args...)
	return res, t.note(err)
}

func (t *ReadTx) usable() error {
	if t.conn == nil {
		return ErrTxDone
	}
	return t.failed
}

func (t *ReadTx) note(err error) error {
	if err != nil && t.failed == nil && endsTransaction(t.ctx, err) {
		t.failed = err
	}
	return err
}

func (t *ReadTx) rowsContext() context.Context {
	if t.rows == nil {
		t.rows, t.stopRows = context.WithCancel(t.ctx)
	}
	return t.rows
}
