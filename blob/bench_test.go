package blob_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"reasonix/blob"
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

func BenchmarkReadDelta32(b *testing.B) {
	s, d := newStore(b)
	all := versions(33, 10_000)
	mustPut(b, s, d, all[0])
	var h blob.Hash
	for i, v := range all[1:] {
		h = blob.Sum(v)
		exec(b, d, `INSERT INTO blob (hash, size, encoding, base_id, depth, data) VALUES (?, ?, 2, ?, ?, ?)`,
			h[:], len(v), i+1, i+1, delta(b, v, all[i]))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Read(ctx, h, 0); err != nil {
			b.Fatal(err)
		}
	}
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
