package db_test

import (
	"path/filepath"
	"testing"

	"reasonix/db"
)

// A Watch sees commits of its own DB and of others on the same file, each once, and no reading.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	ctx := t.Context()
	one, two := open(t, path, db.Options{}), open(t, path, db.Options{})
	w, err := one.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	expect := func(what string, want bool) {
		t.Helper()
		if got, err := w.Changed(ctx); err != nil || got != want {
			t.Errorf("%s: changed %v, %v; want %v", what, got, err, want)
		}
	}
	expect("at first", false)
	for _, d := range []*db.DB{one, two} {
		if err := d.Update(ctx, func(tx *db.WriteTx) error {
			_, err := tx.Exec(`CREATE TABLE IF NOT EXISTS t (n INTEGER) STRICT`)
			if err == nil {
				_, err = tx.Exec(`INSERT INTO t (n) VALUES (1)`)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		expect("after a commit", true)
		expect("again", false)
		if err := d.View(ctx, func(tx *db.ReadTx) error {
			var n int
			return tx.Get(&n, `SELECT count(*) FROM t`)
		}); err != nil {
			t.Fatal(err)
		}
		expect("after a reading", false)
	}
}
