package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Backup writes a consistent and compact copy of the store to a new file (0600), durable when
// it returns nil. Writers may go on meanwhile. A file that is already there is refused with
// an error that is fs.ErrExist; after an error nothing is left at to. A kill can leave a part
// there, which is no store.
func (d *DB) Backup(ctx context.Context, to string) error {
	if err := d.vacuumInto(ctx, to); err != nil {
		return fmt.Errorf("back up %s to %s: %w", d.path, to, err)
	}
	return nil
}

func (d *DB) vacuumInto(ctx context.Context, to string) (err error) {
	// SQLite takes an empty file for a missing one, so that the permissions are ours.
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	// A connection of its own: query_only would refuse VACUUM, and the writer is in use.
	pool, err := openPool(dsn(d.path, 5*time.Second, "mode=ro"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if _, err := pool.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	return syncFile(to)
}

// backupBefore copies the store before it is upgraded from version. What an earlier attempt
// left is replaced: it stopped before the upgrade, and the store may have grown since.
func (d *DB) backupBefore(ctx context.Context, version int) error {
	to := fmt.Sprintf("%s.backup-v%d", d.path, version)
	if err := os.Remove(to + ".part"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.vacuumInto(ctx, to+".part"); err != nil {
		return err
	}
	if err := os.Rename(to+".part", to); err != nil {
		return err
	}
	return syncFile(filepath.Dir(to))
}

// syncFile makes a file that was written through another descriptor, or a folder's entries,
// durable.
func syncFile(path string) error {
	if runtime.GOOS == "windows" {
		return nil // syncs only what is open for writing, and no folder
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
