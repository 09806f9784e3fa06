package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"reasonix/db"
)

var ctx = context.Background()

const schema1 = `CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE part (item_id INTEGER NOT NULL REFERENCES item (id)) STRICT;`

func migrations(scripts ...string) fs.FS {
	m := fstest.MapFS{}
	for i, s := range scripts {
		m[fmt.Sprintf("%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(s)}
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
	got := []string{}
	err := d.View(ctx, func(tx *db.ReadTx) error {
		return tx.Select(&got, "SELECT name FROM item ORDER BY name")
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantNames(t testing.TB, d *db.DB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), names(t, d)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// files is the content of every file in dir, but for the lock file.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
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

func TestSettingsHold(t *testing.T) {
	dir := t.TempDir()
	d := open(t, filepath.Join(dir, "s.db"), db.Options{})
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "page_size": "4096", "auto_vacuum": "2",
		"trusted_schema": "0", "cell_size_check": "1", "busy_timeout": "5000", "mmap_size": "0",
		"application_id": fmt.Sprint(0x52524e58), "user_version": "1", "wal_autocheckpoint": "1000",
	}
	read := func(get func(dest any, query string, args ...any) error) map[string]string {
		got := map[string]string{}
		for name := range want {
			var v string
			if err := get(&v, "PRAGMA "+name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got[name] = v
		}
		return got
	}
	err := d.Update(ctx, func(tx *db.WriteTx) error {
		if diff := cmp.Diff(want, read(tx.Get)); diff != "" {
			t.Errorf("writer (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = d.View(ctx, func(tx *db.ReadTx) error {
		if diff := cmp.Diff(want, read(tx.Get)); diff != "" {
			t.Errorf("reader (-want +got):\n%s", diff)
		}
		_, err := tx.Query("INSERT INTO item (name) VALUES ('x')")
		if err == nil {
			t.Error("a reader could write")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range files(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestCloseLeavesOneFile(t *testing.T) {
	dir := t.TempDir()
	d := open(t, filepath.Join(dir, "s.db"), db.Options{})
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	wantNames(t, d, "a")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	got := files(t, dir)
	if len(got) != 1 || got["s.db"] == "" {
		t.Errorf("%d files are left beside the store", len(got)-1)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := add(d, "b"); !errors.Is(err, db.ErrClosed) {
		t.Errorf("Update after Close: %v", err)
	}
	if err := d.View(ctx, func(*db.ReadTx) error { return nil }); !errors.Is(err, db.ErrClosed) {
		t.Errorf("View after Close: %v", err)
	}
}

func TestNamesOfFiles(t *testing.T) {
	for _, name := range []string{
		"plain", "with space", "a?b=c", "a#b", "100%", "%41", "it's", `a"b`, "a&b;c", "ü", "a\nb", "a\xff", "file:x", "?", "+", ":memory:",
	} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			d := open(t, path, db.Options{})
			if err := add(d, name[:1]); err != nil {
				t.Fatal(err)
			}
			if err := d.Backup(ctx, path+".copy"); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for name := range files(t, dir) {
				got = append(got, name)
			}
			if len(got) != 2 {
				t.Errorf("files: %q", got)
			}
			wantNames(t, open(t, path, db.Options{ReadOnly: true}), name[:1])
		})
	}
}

func TestSymlinkedStoreIsOneStore(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "s.db"), filepath.Join(dir, "link.db")
	d := open(t, real, db.Options{})
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	l := open(t, link, db.Options{})
	if d.Path() != l.Path() {
		t.Errorf("paths %s and %s", d.Path(), l.Path())
	}
	if err := errors.Join(add(l, "a"), add(d, "b")); err != nil {
		t.Fatal(err)
	}
	wantNames(t, d, "a", "b")
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	ro := db.Options{ReadOnly: true, Migrations: migrations(schema1)}
	if _, err := db.Open(ctx, path, ro); !errors.Is(err, db.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := db.Open(ctx, filepath.Join(dir, "no", "s.db"), ro); !errors.Is(err, db.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if len(files(t, dir)) != 0 {
		t.Error("reading made a file")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Open(ctx, path, ro); !errors.Is(err, db.ErrOlder) {
		t.Errorf("empty: %v", err)
	}
	d := open(t, path, db.Options{})
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, ro)
	if err := add(d, "b"); err != nil {
		t.Fatal(err)
	}
	wantNames(t, r, "a", "b")
	if err := add(r, "c"); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("Update: %v", err)
	}
	if err := errors.Join(r.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}

	before := files(t, dir)
	r = open(t, path, ro)
	wantNames(t, r, "a", "b")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("reading changed files (-before +after):\n%s", diff)
	}
	newer := db.Options{ReadOnly: true, Migrations: migrations(schema1, "CREATE TABLE more (id INTEGER) STRICT")}
	if _, err := db.Open(ctx, path, newer); !errors.Is(err, db.ErrOlder) {
		t.Errorf("older schema: %v", err)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("a refusal changed files (-before +after):\n%s", diff)
	}
}

// A folder at the name of the -shm file stands for a place where SQLite can make no file.
func TestReadOnlyWhereNothingCanBeMade(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	d := open(t, path, db.Options{})
	if err := errors.Join(add(d, "a"), d.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+"-shm", 0o700); err != nil {
		t.Fatal(err)
	}
	wantNames(t, open(t, path, db.Options{ReadOnly: true}), "a")
}

func TestFilesOfOthersAreUntouched(t *testing.T) {
	store := func(t *testing.T, path string, scripts ...string) {
		d := open(t, path, db.Options{Migrations: migrations(scripts...)})
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(t *testing.T, path string, at int64, b ...byte) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(b, at)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want error
	}{
		"text":       {func(t *testing.T, p string) { os.WriteFile(p, []byte("hello"), 0o644) }, db.ErrForeign},
		"long text":  {func(t *testing.T, p string) { os.WriteFile(p, make([]byte, 9000), 0o644) }, db.ErrForeign},
		"folder":     {func(t *testing.T, p string) { os.Mkdir(p, 0o700) }, db.ErrForeign},
		"no id":      {func(t *testing.T, p string) { store(t, p, schema1); patch(t, p, 68, 0, 0, 0, 0) }, db.ErrForeign},
		"another id": {func(t *testing.T, p string) { store(t, p, schema1); patch(t, p, 68, 1, 2, 3, 4) }, db.ErrForeign},
		"newer":      {func(t *testing.T, p string) { store(t, p, schema1, "SELECT 1") }, db.ErrNewer},
		"much newer": {func(t *testing.T, p string) { store(t, p, schema1); patch(t, p, 60, 255, 255, 255, 255) }, db.ErrNewer},
		"damaged": {func(t *testing.T, p string) {
			store(t, p, schema1)
			patch(t, p, 100, make([]byte, 3000)...)
		}, db.ErrCorrupt},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/readonly=%v", name, readOnly), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "s.db")
				c.make(t, path)
				before := map[string]string{}
				if name != "folder" {
					before = files(t, dir)
				}
				_, err := db.Open(ctx, path, db.Options{Migrations: migrations(schema1), ReadOnly: readOnly})
				if !errors.Is(err, c.want) && (name != "damaged" || err != nil) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if err == nil {
					return // damage of a page that opening does not read is met by the first query
				}
				if name == "folder" {
					return
				}
				if diff := cmp.Diff(before, files(t, dir)); diff != "" {
					t.Errorf("files changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// TestOneConnection reads through the writer's connection, and beside it while it is in use.
func TestOneConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := open(t, path, db.Options{Migrations: migrations(schema1), OneConnection: true})
	if err := add(d, "before"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, d); len(got) != 1 {
		t.Errorf("read %q", got)
	}
	err := d.Update(t.Context(), func(tx *db.WriteTx) error {
		if got := names(t, d); len(got) != 1 { // a View inside an Update
			t.Errorf("read %q beside a writer", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := add(d, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
			names(t, d)
		})
	}
	wg.Wait()
	if got := names(t, d); len(got) != 9 {
		t.Errorf("%d rows", len(got))
	}
}
