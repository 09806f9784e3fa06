package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/db"
)

var errBoom = errors.New("boom")

func TestUpdateIsAllOrNothing(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	insert := func(tx *db.WriteTx, name string) {
		if _, err := tx.Exec("INSERT INTO item (name) VALUES (?)", name); err != nil {
			t.Error(err)
		}
	}
	if err := d.Update(ctx, func(tx *db.WriteTx) error { insert(tx, "a"); return errBoom }); !errors.Is(err, errBoom) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_ = d.Update(ctx, func(tx *db.WriteTx) error { insert(tx, "b"); panic("boom") })
	}()
	cctx, cancel := context.WithCancel(ctx)
	err := d.Update(cctx, func(tx *db.WriteTx) error { insert(tx, "c"); cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before the commit: %v", err)
	}
	wantNames(t, d)
	if err := add(d, "d"); err != nil {
		t.Fatal(err)
	}
	wantNames(t, d, "d")
}

func TestAFaultAtEachPoint(t *testing.T) {
	for n := 1; ; n++ {
		calls, point := 0, ""
		armed := false
		d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{Fault: func(p string) error {
			if calls++; armed && calls == n {
				point = p
				return errBoom
			}
			return nil
		}})
		calls, armed = 0, true
		err := d.Update(ctx, func(tx *db.WriteTx) error {
			for _, name := range []string{"a", "b"} {
				if _, err := tx.Exec("INSERT INTO item (name) VALUES (?)", name); err != nil {
					return err
				}
			}
			return nil
		})
		armed = false
		switch {
		case point == "":
			if err != nil {
				t.Fatal(err)
			}
			if n != 6 {
				t.Errorf("%d points were passed", n-1)
			}
			return
		case !errors.Is(err, errBoom):
			t.Errorf("%s: got %v", point, err)
		case point == "committed":
			wantNames(t, d, "a", "b")
		default:
			wantNames(t, d)
		}
		if err := add(d, "after"); err != nil {
			t.Errorf("after %s: %v", point, err)
		}
	}
}

func TestAFullDiskEndsTheTransaction(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{MaxPages: 20})
	err := d.Update(ctx, func(tx *db.WriteTx) error {
		if _, err := tx.Exec("INSERT INTO item (name) VALUES ('first')"); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO item (name) VALUES (?)", strings.Repeat("x", 1<<20)); !db.IsFull(err) {
			t.Errorf("got %v", err)
		}
		if _, err := tx.Exec("INSERT INTO item (name) VALUES ('second')"); !db.IsFull(err) {
			t.Errorf("the transaction goes on: %v", err)
		}
		if err := tx.QueryRow("SELECT 1").Scan(new(int)); !db.IsFull(err) {
			t.Errorf("the transaction goes on reading: %v", err)
		}
		return nil
	})
	if !db.IsFull(err) {
		t.Errorf("Update: %v", err)
	}
	wantNames(t, d)
	if err := add(d, "small"); err != nil {
		t.Fatal(err)
	}
	wantNames(t, d, "small")
}

func TestKindsOfErrors(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	err := add(d, "a")
	if !db.IsConstraint(err) || db.IsFull(err) || db.IsCorrupt(err) || db.IsBusy(err) {
		t.Errorf("got %v", err)
	}
	if db.IsConstraint(nil) || db.IsConstraint(errBoom) || db.IsFull(nil) || db.IsCorrupt(nil) {
		t.Error("an error of another kind")
	}
}

func TestViewIsASnapshot(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	count := func(tx *db.ReadTx) (n int) {
		if err := tx.QueryRow("SELECT count(*) FROM item").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	err := d.View(ctx, func(tx *db.ReadTx) error {
		before := count(tx)
		if err := add(d, "a"); err != nil {
			return err
		}
		if after := count(tx); after != before {
			t.Errorf("%d rows, then %d", before, after)
		}
		return d.View(ctx, func(inner *db.ReadTx) error {
			if n := count(inner); n != 1 {
				t.Errorf("a new View sees %d rows", n)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The same text is run again while its first result is still being read, and results are left
// open: neither may disturb the other, nor keep the transaction from ending.
func TestStatementsInUseTwice(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	for _, name := range []string{"a", "b", "c"} {
		if err := add(d, name); err != nil {
			t.Fatal(err)
		}
	}
	const q = "SELECT name FROM item WHERE name >= ? ORDER BY name"
	walk := func(tx *db.ReadTx) error {
		got := ""
		rows, err := tx.Query(q, "a")
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			var all []string
			if err := tx.Select(&all, q, name); err != nil {
				return err
			}
			got += name + strings.Join(all, "") + " "
		}
		if want := "aabc bbc cc "; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		left, err := tx.Query(q, "a")
		if err != nil {
			return err
		}
		left.Next()
		_ = tx.QueryRow(q, "b")
		return rows.Err()
	}
	for range 3 {
		if err := d.View(ctx, walk); err != nil {
			t.Fatal(err)
		}
		if err := d.Update(ctx, func(tx *db.WriteTx) error { return walk(&tx.ReadTx) }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyTextsOfStatements(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	err := d.View(ctx, func(tx *db.ReadTx) error {
		for i := range 1000 {
			var n int
			if err := tx.Get(&n, fmt.Sprintf("SELECT %d", i)); err != nil || n != i {
				return fmt.Errorf("%d: got %d, %w", i, n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestATransactionThatIsOver(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	var kept *db.WriteTx
	if err := d.Update(ctx, func(tx *db.WriteTx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	_, execErr := kept.Exec("DELETE FROM item")
	_, queryErr := kept.Query("SELECT 1")
	for _, err := range []error{
		execErr, queryErr, kept.Get(new(int), "SELECT 1"), kept.Select(&[]int{}, "SELECT 1"),
		kept.QueryRow("SELECT 1").Scan(new(int)),
	} {
		if !errors.Is(err, db.ErrTxDone) {
			t.Errorf("got %v", err)
		}
	}
}

func TestGetWithoutARow(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	err := d.View(ctx, func(tx *db.ReadTx) error { return tx.Get(new(int), "SELECT id FROM item") })
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("got %v", err)
	}
}

func TestALongStatementHonoursCtx(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "s.db"), db.Options{})
	const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err := d.Update(short, func(tx *db.WriteTx) error { return tx.Get(new(int), endless) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Update: %v", err)
	}
	short, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err = d.View(short, func(tx *db.ReadTx) error { return tx.Get(new(int), endless) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("View: %v", err)
	}
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	wantNames(t, d, "a")
}
