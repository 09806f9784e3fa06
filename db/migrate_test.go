package db_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"reasonix/db"
)

func TestUpgradeKeepsABackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	d := open(t, path, db.Options{})
	if err := errors.Join(add(d, "a"), d.Close()); err != nil {
		t.Fatal(err)
	}
	two := migrations(schema1, "ALTER TABLE item ADD COLUMN note TEXT; INSERT INTO item (name) VALUES ('b');")
	d = open(t, path, db.Options{Migrations: two})
	wantNames(t, d, "a", "b")
	info, err := os.Stat(path + ".backup-v1")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("the backup has mode %v", info.Mode())
	}
	wantNames(t, open(t, path+".backup-v1", db.Options{ReadOnly: true}), "a")
	if err := add(open(t, path+".backup-v1", db.Options{}), "c"); err != nil {
		t.Errorf("the backup is no store to work with: %v", err)
	}
}

func TestMigrationsThatFail(t *testing.T) {
	for name, script := range map[string]string{
		"syntax":      "INSERT INTO item (name) VALUES ('half'); NONSENSE;",
		"constraint":  "INSERT INTO item (name) VALUES ('half'), ('half');",
		"foreign key": "INSERT INTO part VALUES (77);",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			d := open(t, path, db.Options{})
			if err := errors.Join(add(d, "a"), d.Close()); err != nil {
				t.Fatal(err)
			}
			bad := migrations(schema1, "INSERT INTO item (name) VALUES ('second')", script)
			for range 2 { // the second attempt meets the remains of the first
				_, err := db.Open(ctx, path, db.Options{Migrations: bad})
				if err == nil || !strings.Contains(err.Error(), "0003_step.sql") {
					t.Fatalf("got %v", err)
				}
			}
			good := migrations(schema1, "INSERT INTO item (name) VALUES ('second')", "INSERT INTO item (name) VALUES ('third')")
			wantNames(t, open(t, path, db.Options{Migrations: good}), "a", "second", "third")
		})
	}
}

func TestMigrationMayRebuildATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	d := open(t, path, db.Options{})
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	err := d.Update(ctx, func(tx *db.WriteTx) error {
		_, err := tx.Exec("INSERT INTO part SELECT id FROM item")
		return err
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	d = open(t, path, db.Options{Migrations: migrations(schema1, `
		CREATE TABLE item2 (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, note TEXT) STRICT;
		INSERT INTO item2 (id, name) SELECT id, name FROM item;
		DROP TABLE item;
		ALTER TABLE item2 RENAME TO item;`)})
	wantNames(t, d, "a")
	err = d.Update(ctx, func(tx *db.WriteTx) error {
		_, err := tx.Exec("DELETE FROM item")
		return err
	})
	if !db.IsConstraint(err) {
		t.Errorf("foreign keys are off after the upgrade: %v", err)
	}
}

func TestNamesOfMigrations(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("SELECT 1")}
	for name, fsys := range map[string]fs.FS{
		"hole":      fstest.MapFS{"0001_a.sql": file, "0003_b.sql": file},
		"twice":     fstest.MapFS{"0001_a.sql": file, "0001_b.sql": file},
		"from zero": fstest.MapFS{"0000_a.sql": file},
		"stranger":  fstest.MapFS{"0001_a.sql": file, "README": file},
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		if _, err := db.Open(ctx, path, db.Options{Migrations: fsys}); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file was made", name)
		}
	}
}

func TestOwnMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for range 2 {
		d, err := db.Open(ctx, path, db.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBackupRefusesAFileThatIsThere(t *testing.T) {
	dir := t.TempDir()
	d := open(t, filepath.Join(dir, "s.db"), db.Options{})
	to := filepath.Join(dir, "copy.db")
	if err := os.WriteFile(to, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Backup(ctx, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(to); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
}
