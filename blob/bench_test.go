package blob_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reasonix/blob"
	"reasonix/db"
)

func BenchmarkPrepareBind10KB(b *testing.B) {
	s, d := newStore(b)
	content := text(1, 10_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(content)))
	for n := uint64(0); b.Loop(); n++ {
		binary.LittleEndian.PutUint64(content, n)
		if _, _, err := put(s, d, bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrepare10KB(b *testing.B) {
	s, _ := newStore(b)
	content := text(1, 10_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := s.PrepareBytes(ctx, content); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead10KB(b *testing.B) {
	s, d := newStore(b)
	h := mustPut(b, s, d, text(1, 10_000))
	b.ReportAllocs()
	b.SetBytes(10_000)
	for b.Loop() {
		if _, err := s.Read(ctx, h, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// chained is a content of about size bytes below which 32 deltas lie.
func chained(b *testing.B, s *blob.Store, d *db.DB, size int) (h blob.Hash) {
	history(b, s, d, text(1, size), 50)
	var name []byte
	err := d.View(ctx, func(tx *db.ReadTx) error { return tx.Get(&name, `SELECT hash FROM blob WHERE depth = 32`) })
	if err != nil {
		b.Fatal(err)
	}
	copy(h[:], name)
	return h
}

// BenchmarkReadDelta32 has a target: p99 below 0.5 ms for a source of 10 KB.
func BenchmarkReadDelta32(b *testing.B) {
	s, d := newStore(b)
	h := chained(b, s, d, 10_000)
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		if _, err := s.Read(ctx, h, 0); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// BenchmarkPutEdit puts one edit after another of a source, each against the one before: with the
// base at hand, as a process that goes on has it, and read from the store, as a short one has to.
func BenchmarkPutEdit(b *testing.B) {
	for _, size := range []int{10_000, 300_000, 3 << 20} {
		for _, mode := range []string{"whole", "against", "against cold"} {
			b.Run(fmt.Sprintf("%d/%s", size, mode), func(b *testing.B) {
				s, d := newStore(b)
				r := rand.New(rand.NewPCG(1, 1))
				content := text(1, size)
				base := mustPut(b, s, d, content)
				b.ReportAllocs()
				b.ResetTimer()
				for b.Loop() {
					b.StopTimer()
					content = edited(r, content)
					if mode == "against cold" {
						s = blob.New(d, nil)
					}
					b.StartTimer()
					if mode == "whole" {
						base = blob.Hash{}
					}
					if _, err := putAgainst(s, d, content, base); err != nil {
						b.Fatal(err)
					}
					base = blob.Sum(content)
				}
				b.ReportMetric(float64(storedBytes(b, d))/float64(b.N), "stored-B/op")
			})
		}
	}
}

// BenchmarkAppendToLog captures a log of 256 MiB of which every chunk but the last is known.
func BenchmarkAppendToLog(b *testing.B) {
	s, d := newStore(b)
	p, _, err := put(s, d, &stream{n: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	before := storedBytes(b, d)
	base, n := p.Hash(), 0
	b.SetBytes(256 << 20)
	b.ReportAllocs()
	for b.Loop() {
		n++
		p, err := s.PrepareAgainst(ctx, io.MultiReader(&stream{n: 256 << 20}, bytes.NewReader(noise(1, n*1000))), base)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Update(ctx, func(tx *db.WriteTx) error { _, err := s.Bind(tx, p); return err }); err != nil {
			b.Fatal(err)
		}
		base = p.Hash()
	}
	b.ReportMetric(float64(storedBytes(b, d)-before)/float64(n), "new-B/op")
	b.ReportMetric(float64(query(b, d, `SELECT count(*) FROM blob_chunk`))/float64(n+1), "chunks/op")
}

func BenchmarkPrepareBind10MiB(b *testing.B) {
	s, d := newStore(b)
	content := noise(1, 10<<20)
	b.ReportAllocs()
	b.SetBytes(int64(len(content)))
	for n := uint64(0); b.Loop(); n++ {
		for at := 0; at < len(content); at += blob.ChunkSize {
			binary.LittleEndian.PutUint64(content[at:], n)
		}
		if _, _, err := put(s, d, bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
}
