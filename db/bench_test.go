package db_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reasonix/db"
)

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.db")
	o := db.Options{Migrations: migrations(schema1)}
	if err := open(b, path, o).Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := db.Open(ctx, path, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	d := open(b, filepath.Join(b.TempDir(), "s.db"), db.Options{})
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if err := add(d, fmt.Sprint(len(took))); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

func BenchmarkView(b *testing.B) {
	d := open(b, filepath.Join(b.TempDir(), "s.db"), db.Options{})
	if err := add(d, "a"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		err := d.View(ctx, func(tx *db.ReadTx) error { return tx.Get(new(int), "SELECT count(*) FROM item") })
		if err != nil {
			b.Fatal(err)
		}
	}
}
