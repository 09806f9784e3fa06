// Package db owns one SQLite file.
package db

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"time"

	"github.com/jmoiron/sqlx"
)

type Options struct {
	ReadOnly    bool
	BusyTimeout time.Duration
	Now         func() time.Time
	Migrations  fs.FS
	Fault       func(point string) error
	MaxPages    int64
}

var (
	ErrNewer    = errors.New("made by a newer version")
	ErrForeign  = errors.New("not a reasonix store")
	ErrCorrupt  = errors.New("store is damaged")
	ErrNotExist = errors.New("store does not exist")
	ErrReadOnly = errors.New("store is opened read-only")
	ErrOlder    = errors.New("store needs an upgrade")
)

type DB struct{}

func Open(ctx context.Context, path string, o Options) (*DB, error)     { panic("todo") }
func (d *DB) Close() error                                              { panic("todo") }
func (d *DB) Path() string                                              { panic("todo") }
func (d *DB) View(ctx context.Context, fn func(*ReadTx) error) error    { panic("todo") }
func (d *DB) Update(ctx context.Context, fn func(*WriteTx) error) error { panic("todo") }
func (d *DB) Backup(ctx context.Context, to string) error               { panic("todo") }

type ReadTx struct{}

func (t *ReadTx) Context() context.Context                            { panic("todo") }
func (t *ReadTx) Get(dest any, query string, args ...any) error       { panic("todo") }
func (t *ReadTx) Select(dest any, query string, args ...any) error    { panic("todo") }
func (t *ReadTx) Query(query string, args ...any) (*sqlx.Rows, error) { panic("todo") }
func (t *ReadTx) QueryRow(query string, args ...any) *sqlx.Row        { panic("todo") }

type WriteTx struct{ ReadTx }

func (t *WriteTx) Exec(query string, args ...any) (sql.Result, error) { panic("todo") }

func IsFull(err error) bool       { panic("todo") }
func IsCorrupt(err error) bool    { panic("todo") }
func IsConstraint(err error) bool { panic("todo") }
