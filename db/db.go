// Package db owns one SQLite file: how it is created, recognised, upgraded, locked and set, and
// the two kinds of transaction in which everything else reads and writes it. It knows no table.
//
// A View is a consistent snapshot. An Update is durable when it returns nil: WAL with
// synchronous=FULL, one sync of the WAL per commit. Writers of all processes queue at a file
// lock (<store>.lock); readers never wait for them.
//
// Caveat: no other code of the same process may open and close the file while a DB is open on
// it: that would drop SQLite's locks (https://www.sqlite.org/howtocorrupt.html, 2.2).
package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// Options say how a store is opened. The zero value opens for reading and writing.
type Options struct {
	// ReadOnly opens a store that must be there and have the present schema. It is never
	// created, upgraded or changed.
	ReadOnly bool

	// BusyTimeout is how long SQLite waits for a lock that a program which does not take
	// the file lock holds. 0 means 5 s; fractions of a millisecond are dropped.
	BusyTimeout time.Duration

	// Now is the clock, which this package does not look at so far. nil means time.Now.
	Now func() time.Time

	// Migrations holds NNNN_name.sql files at its root, numbered from 0001 without a hole.
	// nil means those of the program.
	Migrations fs.FS

	// Fault is for tests: it is called before each step of an Update ("begin", "exec",
	// "commit") and after its commit ("committed"). An error of it fails the step in place
	// of running it; after "committed" the transaction has taken effect nevertheless.
	// nil means none.
	Fault func(point string) error

	// OneConnection lets View use the writer's connection while no Update does: a short process
	// then opens, and prepares its statements on, one connection instead of two. fn of a View
	// must then not call Update.
	OneConnection bool

	// Functions can be called in queries. One DB of a process may have some at a time: ErrFunctions.
	Functions []Function

	// MaxPages limits the file to that many pages of 4096 bytes, for tests of a full disk.
	// 0 means no limit.
	MaxPages int64
}

// DB is an open store. It is safe for concurrent use; a DB must be closed.
type DB struct {
	path  string
	fault func(point string) error

	readers *sqlx.DB      // opened lazily; query_only
	writer  *sqlx.DB      // at most one connection; nil when opened read-only
	slot    chan struct{} // holds a token while a goroutine is the writer
	one     bool          // OneConnection
	turn    sync.Mutex    // held by who uses the writer's connection, when one is set
	used    *usedFile
	closed  chan struct{}
}

// Open opens the store at path, creating it (0600) or upgrading its schema where needed. The
// folder must be there. Before an upgrade the store is copied to <path>.backup-v<N>, N being
// its schema. Many processes may open, and create, one store at the same time.
//
// The errors are ErrNotExist, ErrForeign, ErrNewer, ErrOlder, ErrCorrupt, ErrReadOnly (this user
// may not write the file or its folder), ErrSettings and those of the file system. A file that is refused as foreign or newer has not been touched. After a
// crash the next Open goes on from the last migration that was committed.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	d, err := open(ctx, path, o)
	if err != nil {
		if IsCorrupt(err) && !errors.Is(err, ErrCorrupt) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return d, nil
}

func open(ctx context.Context, path string, o Options) (*DB, error) {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	ms, err := loadMigrations(o.Migrations)
	if err != nil {
		return nil, err
	}
	path, err = canonical(path)
	if err != nil {
		if o.ReadOnly && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", ErrNotExist, err)
		}
		return nil, err
	}
	used, err := claim(path, !o.ReadOnly, len(ms.files))
	if err != nil {
		return nil, err
	}
	d := &DB{path: path, fault: o.Fault, slot: make(chan struct{}, 1), one: o.OneConnection && !o.ReadOnly, used: used, closed: make(chan struct{})}
	if err = d.provide(o.Functions); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if o.ReadOnly {
		err = d.openReadOnly(ctx, o, len(ms.files))
	} else {
		err = d.openWriter(ctx, o, ms)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *DB) openWriter(ctx context.Context, o Options, ms migrations) (err error) {
	defer func() {
		if cannotMake(err) {
			err = fmt.Errorf("%w: %w", ErrReadOnly, err)
		}
	}()
	if !d.used.writable {
		return fmt.Errorf("%w: %w", ErrReadOnly, &fs.PathError{Op: "open", Path: d.path, Err: fs.ErrPermission})
	}
	limit := []string(nil)
	if o.MaxPages > 0 {
		limit = []string{"_pragma=max_page_count(" + strconv.FormatInt(o.MaxPages, 10) + ")"}
	}
	if d.writer, err = openPool(dsn(d.path, o.BusyTimeout, append(limit, "mode=rw")...)); err != nil {
		return err
	}
	d.writer.SetMaxOpenConns(1)
	if d.readers, err = openPool(dsn(d.path, o.BusyTimeout, "mode=rw", "_pragma=query_only(1)")); err != nil {
		return err
	}
	// Callbacks may nest Views: a limit could make them wait for each other.
	d.readers.SetMaxIdleConns(max(2, runtime.GOMAXPROCS(0)))

	conn, err := d.writer.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	st, err := readSettings(ctx, conn)
	if err != nil {
		return err
	}
	if st.applicationID != applicationID || st.journalMode != "wal" || st.version != len(ms.files) {
		if st, err = d.prepare(ctx, conn, ms); err != nil {
			return err
		}
	}
	return st.check(true)
}

// openReadOnly avoids mode=ro where it can: such a connection makes -wal and -shm files when
// there are none, and then may not remove them. A WAL that a killed process left is another
// matter: only mode=ro leaves it alone. In a folder where nothing can be made, a store that was
// closed properly can still be read as an immutable file.
func (d *DB) openReadOnly(ctx context.Context, o Options, latest int) error {
	mode, wal := "mode=rw", d.path+"-wal"
	info, err := os.Stat(wal)
	pending := err == nil && info.Size() > 0
	if pending {
		mode = "mode=ro"
	}
	err = d.openReaders(ctx, o, latest, mode)
	if err == nil || !cannotOpen(err) {
		return err
	}
	if pending {
		return fmt.Errorf("%w (while %s is there, its folder must be writable)", err, wal)
	}
	return d.openReaders(ctx, o, latest, "mode=ro", "immutable=1")
}

func (d *DB) openReaders(ctx context.Context, o Options, latest int, params ...string) (err error) {
	d.readers, err = openPool(dsn(d.path, o.BusyTimeout, append(params, "_pragma=query_only(1)")...))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.readers.Close())
		}
	}()
	conn, err := d.readers.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	st, err := readSettings(ctx, conn)
	if err != nil {
		return err
	}
	switch {
	case st.applicationID == 0 && st.pages == 0, st.applicationID == applicationID && st.version < latest:
		return fmt.Errorf("%w: its schema is %d, this version knows %d", ErrOlder, st.version, latest)
	case st.applicationID != applicationID:
		return foreignID(st.applicationID)
	case st.version > latest:
		return newer(st.version, latest)
	}
	return st.check(false)
}

// Path is the absolute path of the file, with symbolic links resolved.
func (d *DB) Path() string { return d.path }

// Close waits for the running Update, if any, and closes the file; the last DB that closes a
// store moves the content of the WAL into it, so that the next start is quick. No transaction
// may begin after Close; a View must have ended before. It may be called twice.
func (d *DB) Close() error {
	d.slot <- struct{}{}
	defer func() { <-d.slot }()
	select {
	case <-d.closed:
		return nil
	default:
		close(d.closed)
	}
	var err error
	// The writer goes last: it is the one that may checkpoint.
	for _, pool := range []*sqlx.DB{d.readers, d.writer} {
		if pool != nil {
			err = errors.Join(err, pool.Close())
		}
	}
	d.withdraw()
	d.used.release()
	return err
}
