package db_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"reasonix/db"
)

var ctx = context.Background()

const schema1 = `CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;`

func migrations(scripts ...string) fs.FS {
	m := fstest.MapFS{}
	for i, s := range scripts {
		m[string([]byte{'0', '0', '0', byte('1' + i)})+"_step.sql"] = &fstest.MapFile{Data: []byte(s)}
	}
	return m
}

func open(t testing.TB, path string, o db.Options) *db.DB {
	t.Helper()
	if o.Migrations == nil {
		o.Migrations = migrations(schema1)
	}
	d, err := db.Open(ctx, path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func add(d *db.DB, name string) error {
	return d.Update(ctx, func(tx *db.WriteTx) error {
		_, err := tx.Exec("INSERT INTO item (name) VALUES (?)", name)
		return err
	})
}

func names(t testing.TB, d *db.DB) []string {
	t.Helper()
	var got []string
	err := d.View(ctx, func(tx *db.ReadTx) error {
		return tx.Select(&got, "SELECT name FROM item ORDER BY name")
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = info.Mode().String() + " " + string(b)
	}
	return got
}

var _ = errors.Is
