package db

import (
	"context"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrNotExist is returned when a store that is opened read-only is not there.
	ErrNotExist = errors.New("there is no store")

	// ErrForeign is returned when the file is something else than a store of this program.
	ErrForeign = errors.New("the file is not a reasonix store")

	// ErrNewer is returned when a newer version of this program wrote the store.
	ErrNewer = errors.New("the store was written by a newer version of reasonix")

	// ErrOlder is returned when a store that is opened read-only still has an older schema.
	ErrOlder = errors.New("the store has an older schema: open it once for writing")

	// ErrCorrupt is returned when SQLite finds the file damaged while it is opened.
	ErrCorrupt = errors.New("the store is damaged")

	// ErrReadOnly is returned when a change is asked of a store that is opened read-only, and
	// when one is opened for writing that this user may not write.
	ErrReadOnly = errors.New("the store can only be read")

	// ErrSettings is returned when the file or the SQLite library does not take the settings
	// on which durability rests.
	ErrSettings = errors.New("the store does not hold the needed settings")

	// ErrClosed is returned when a DB is used after Close.
	ErrClosed = errors.New("the store is closed")

	// ErrTxDone is returned when a transaction is used after its callback has returned.
	ErrTxDone = errors.New("the transaction is over")
)

// IsFull reports whether err says that the disk, or the quota of the file, is used up.
func IsFull(err error) bool { return primary(err) == sqlite3.SQLITE_FULL }

// IsCorrupt reports whether err says that the content of the file makes no sense.
func IsCorrupt(err error) bool {
	code := primary(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB || errors.Is(err, ErrCorrupt)
}

// IsConstraint reports whether err is the refusal of a row by a constraint of the schema.
func IsConstraint(err error) bool { return primary(err) == sqlite3.SQLITE_CONSTRAINT }

// IsBusy reports whether err is a lock of SQLite's that was not free within BusyTimeout. The
// file lock keeps writers of this program apart, so somebody else's program holds it.
func IsBusy(err error) bool { return primary(err) == sqlite3.SQLITE_BUSY }

// primary is the primary result code of the SQLite error in err's tree, or 0.
func primary(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// endsTransaction reports whether SQLite may have rolled back the whole transaction together
// with the statement that gave err. What runs afterwards would be committed one by one.
func endsTransaction(ctx context.Context, err error) bool {
	switch primary(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ABORT:
		return true
	}
	return err != nil && ctx.Err() != nil
}
