package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"

	"github.com/jmoiron/sqlx"
)

//go:embed migrations/*.sql
var embedded embed.FS

var migrationName = regexp.MustCompile(`^([0-9]{4})_[a-z0-9_]+\.sql$`)

// migrations are the steps of the schema: files[i] leads from version i to i+1.
type migrations struct {
	fsys  fs.FS
	files []string
}

func loadMigrations(fsys fs.FS) (migrations, error) {
	if fsys == nil {
		sub, err := fs.Sub(embedded, "migrations")
		if err != nil {
			return migrations{}, err
		}
		fsys = sub
	}
	entries, err := fs.ReadDir(fsys, ".") // sorted by name
	if err != nil {
		return migrations{}, fmt.Errorf("list migrations: %w", err)
	}
	ms := migrations{fsys: fsys}
	for _, e := range entries {
		m := migrationName.FindStringSubmatch(e.Name())
		if m == nil {
			return migrations{}, fmt.Errorf("migration %s: its name is not NNNN_name.sql", e.Name())
		}
		if n, err := strconv.Atoi(m[1]); err != nil || n != len(ms.files)+1 {
			return migrations{}, fmt.Errorf("migration %s: its number should be %04d", e.Name(), len(ms.files)+1)
		}
		ms.files = append(ms.files, e.Name())
	}
	return ms, nil
}

// prepare brings the store to the state in which it can be used: born, in WAL mode, with the
// present schema. It does so under the file lock, looking again at what it finds: another
// process may have been first.
func (d *DB) prepare(ctx context.Context, conn *sqlx.Conn, ms migrations) (settings, error) {
	unlock, err := d.lock(ctx)
	if err != nil {
		return settings{}, err
	}
	defer unlock()

	st, err := readSettings(ctx, conn)
	if err != nil {
		return st, err
	}
	if st.applicationID == 0 && st.pages == 0 {
		if err := birth(ctx, conn); err != nil {
			return st, fmt.Errorf("create: %w", err)
		}
	} else if st.applicationID != applicationID {
		return st, foreignID(st.applicationID)
	}
	latest := len(ms.files)
	if st.version > latest {
		return st, newer(st.version, latest)
	}
	if st.journalMode != "wal" {
		if _, err := conn.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
			return st, fmt.Errorf("set journal_mode: %w", err)
		}
	}
	if st.version < latest {
		if err := d.migrate(ctx, conn, ms, st.version); err != nil {
			return st, err
		}
	}
	return readSettings(ctx, conn)
}

// birth writes the first page of a new store, in one transaction and before WAL mode: at every
// moment the file is empty or its header says that it is ours. BEGIN must not be IMMEDIATE,
// which makes that page, and with it fixes auto_vacuum.
func birth(ctx context.Context, conn *sqlx.Conn) error {
	for _, q := range []string{
		"PRAGMA page_size = 4096",
		"BEGIN",
		"PRAGMA auto_vacuum = INCREMENTAL",
		"PRAGMA application_id = " + strconv.Itoa(applicationID),
		"COMMIT",
	} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			return err
		}
	}
	return nil
}

// migrate runs the files after version from. Foreign keys are off meanwhile, since a table
// that is rebuilt is dropped first; they are checked before each commit.
func (d *DB) migrate(ctx context.Context, conn *sqlx.Conn, ms migrations, from int) (err error) {
	if from > 0 {
		if err := d.backupBefore(ctx, from); err != nil {
			return fmt.Errorf("back up before the upgrade: %w", err)
		}
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return err
	}
	defer func() {
		_, onErr := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = ON")
		err = errors.Join(err, onErr)
	}()
	for i := from; i < len(ms.files); i++ {
		if err := migrateOne(ctx, conn, ms, i); err != nil {
			return fmt.Errorf("migration %s: %w", ms.files[i], err)
		}
	}
	// The header should show the new version to older programs, which read it before they
	// let SQLite open the file. When a reader stands in the way, a later checkpoint does it.
	_, err = conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

func migrateOne(ctx context.Context, conn *sqlx.Conn, ms migrations, i int) error {
	script, err := fs.ReadFile(ms.fsys, ms.files[i])
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = func() error {
		if _, err := conn.ExecContext(ctx, string(script)); err != nil {
			return err
		}
		var broken int
		if err := conn.GetContext(ctx, &broken, "SELECT count(*) FROM pragma_foreign_key_check"); err != nil {
			return err
		}
		if broken > 0 {
			return fmt.Errorf("%d rows refer to rows that are not there", broken)
		}
		if _, err := conn.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(i+1)); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "COMMIT")
		return err
	}()
	if err != nil {
		// SQLite may have rolled back by itself; then this one finds no transaction.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}
