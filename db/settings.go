package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jmoiron/sqlx"
	sqlite3 "modernc.org/sqlite/lib"
)

// settings are the effective values of a connection. The driver and SQLite pass over a pragma
// that comes too late, or that they do not know, without a word: only reading them back tells.
type settings struct {
	applicationID int64
	version       int // number of the last migration
	pages         int64
	journalMode   string
	pageSize      int64
	autoVacuum    int64
	synchronous   int64
	foreignKeys   int64
	queryOnly     int64
}

func readSettings(ctx context.Context, conn *sqlx.Conn) (settings, error) {
	var s settings
	for _, p := range []struct {
		name string
		dest any
	}{
		{"application_id", &s.applicationID},
		{"user_version", &s.version},
		{"page_count", &s.pages},
		{"journal_mode", &s.journalMode},
		{"page_size", &s.pageSize},
		{"auto_vacuum", &s.autoVacuum},
		{"synchronous", &s.synchronous},
		{"foreign_keys", &s.foreignKeys},
		{"query_only", &s.queryOnly},
	} {
		if err := conn.QueryRowxContext(ctx, "PRAGMA "+p.name).Scan(p.dest); err != nil {
			return s, fmt.Errorf("read %s: %w", p.name, err)
		}
	}
	return s, nil
}

// check compares s with what durability and the size of the file rest on. An immutable or
// restored file that is only read need not be in WAL mode.
func (s settings) check(writer bool) error {
	for _, p := range []struct {
		name      string
		got, want any
		ok        bool
	}{
		{"journal_mode", s.journalMode, "wal", s.journalMode == "wal" || !writer},
		{"page_size", s.pageSize, 4096, s.pageSize == 4096},
		{"auto_vacuum", s.autoVacuum, 2, s.autoVacuum == 2},
		{"synchronous", s.synchronous, 2, s.synchronous == 2},
		{"foreign_keys", s.foreignKeys, 1, s.foreignKeys == 1},
		{"query_only", s.queryOnly, 1, s.queryOnly == 1 || writer},
	} {
		if !p.ok {
			return fmt.Errorf("%w: %s is %v where %v is needed", ErrSettings, p.name, p.got, p.want)
		}
	}
	return nil
}

// cannotMake reports whether err says that SQLite may not write a file or make one beside it.
func cannotMake(err error) bool {
	code := primary(err)
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY || errors.Is(err, fs.ErrPermission)
}

// cannotOpen reports whether err is SQLite's failure to open, or to make, one of its files.
func cannotOpen(err error) bool {
	switch primary(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
		return true
	}
	return false
}
