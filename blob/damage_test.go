package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"reasonix/blob"
	"reasonix/db"
)

// loose is the schema without its constraints: what a damaged or hostile file can hold.
const loose = `
CREATE TABLE blob (id INTEGER PRIMARY KEY, hash, size, encoding, base_id, depth DEFAULT 0, data);
CREATE INDEX blob_hash ON blob (hash);
CREATE TABLE blob_chunk (blob_id, seq, chunk_id);
CREATE TABLE blob_lease (id INTEGER PRIMARY KEY, expires_ms);`

func looseStore(t testing.TB) (*blob.Store, *db.DB) {
	t.Helper()
	d, err := db.Open(ctx, filepath.Join(t.TempDir(), "s.db"), db.Options{
		Migrations: fstest.MapFS{"0001_loose.sql": &fstest.MapFile{Data: []byte(loose)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return blob.New(d, nil), d
}

func delta(t testing.TB, content, base []byte) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(1, base), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.EncodeAll(content, nil)
}

// versions are n contents, each a small edit of the one before.
func versions(n, size int) [][]byte {
	all := [][]byte{noise(5, size)}
	for i := 1; i < n; i++ {
		next := bytes.Clone(all[i-1])
		copy(next[size*i/(n+1):], fmt.Sprintf("version %d", i))
		all = append(all, next)
	}
	return all
}

func TestDeltasAreRead(t *testing.T) {
	for _, size := range []int{300, 20_000, blob.ChunkSize} {
		s, d := newStore(t)
		all := versions(33, size)
		mustPut(t, s, d, all[0])
		for i, b := range all[1:] {
			h, frame := blob.Sum(b), delta(t, b, all[i])
			if size > 1000 && len(frame) > size/4 {
				t.Errorf("a delta of %d bytes for %d", len(frame), size)
			}
			exec(t, d, `INSERT INTO blob (hash, size, encoding, base_id, depth, data) VALUES (?, ?, 2, ?, ?, ?)`,
				h[:], len(b), i+1, i+1, frame)
		}
		wantContent(t, s, d, all[32])
		if n := verifyAll(t, s); n != 33 {
			t.Errorf("%d rows", n)
		}
		in, err := s.Stat(ctx, blob.Sum(all[9]))
		if err != nil || in.Base != blob.Sum(all[8]) || in.Encoding != blob.ZstdDelta {
			t.Errorf("Stat: %+v, %v", in, err)
		}

		// One more would be too deep.
		h := blob.Sum([]byte("deep"))
		exec(t, d, `INSERT INTO blob (hash, size, encoding, base_id, depth, data) VALUES (?, 4, 2, 33, 33, ?)`,
			h[:], delta(t, []byte("deep"), all[32]))
		wantDamaged(t, "too deep", s, d, h)
	}
}

func wantDamaged(t testing.TB, name string, s *blob.Store, d *db.DB, h blob.Hash) {
	t.Helper()
	_, readErr := s.Read(ctx, h, 0)
	for what, err := range map[string]error{
		"Read":   readErr,
		"Verify": s.Verify(ctx, h),
		"ReadTx": d.View(ctx, func(tx *db.ReadTx) error { _, err := blob.ReadTx(tx, h, 0); return err }),
	} {
		var damaged *blob.DamagedError
		if !errors.As(err, &damaged) || damaged.Hash != h {
			t.Errorf("%s: %s: got %v", name, what, err)
		}
	}
}

func TestDamage(t *testing.T) {
	content := text(7, 50_000)
	h := blob.Sum(content)
	other := text(8, 50_000)
	oh := blob.Sum(other)
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	frame := e.EncodeAll(content, nil)
	flipped := bytes.Clone(frame)
	flipped[len(flipped)/2] ^= 0x10
	bomb := e.EncodeAll(make([]byte, 64<<20), nil)
	const row = `INSERT INTO blob (id, hash, size, encoding, base_id, data) VALUES (?, ?, ?, ?, ?, ?)`
	type args = []any
	for name, rows := range map[string][]args{
		"raw too short":          {{1, h[:], 50_000, 0, nil, content[1:]}},
		"raw too long":           {{1, h[:], 49_999, 0, nil, content}},
		"other raw bytes":        {{1, h[:], 50_000, 0, nil, other}},
		"other frame":            {{1, h[:], 50_000, 1, nil, e.EncodeAll(other, nil)}},
		"flipped bit":            {{1, h[:], 50_000, 1, nil, flipped}},
		"cut frame":              {{1, h[:], 50_000, 1, nil, frame[:len(frame)-3]}},
		"no frame":               {{1, h[:], 50_000, 1, nil, []byte{}}},
		"null":                   {{1, h[:], 50_000, 1, nil, nil}},
		"text for bytes":         {{1, h[:], "many", 1, nil, frame}},
		"size too small":         {{1, h[:], 49_999, 1, nil, frame}},
		"size too large":         {{1, h[:], 50_001, 1, nil, frame}},
		"size zero":              {{1, h[:], 0, 1, nil, frame}},
		"size negative":          {{1, h[:], -1, 0, nil, content}},
		"size huge":              {{1, h[:], int64(1) << 62, 1, nil, frame}},
		"bomb":                   {{1, h[:], 50_000, 1, nil, bomb}},
		"long row":               {{1, h[:], 50_000, 0, nil, make([]byte, 3<<20)}},
		"unknown encoding":       {{1, h[:], 50_000, 9, nil, content}},
		"negative encoding":      {{1, h[:], 50_000, -256, nil, content}},
		"delta without base":     {{1, h[:], 50_000, 2, nil, frame}},
		"delta base is missing":  {{1, h[:], 50_000, 2, 7, frame}},
		"delta on itself":        {{1, h[:], 50_000, 2, 1, frame}},
		"delta in a ring":        {{1, h[:], 50_000, 2, 2, frame}, {2, oh[:], 50_000, 2, 1, frame}},
		"delta on another base":  {{1, h[:], 50_000, 2, 2, delta(t, content, content)}, {2, oh[:], 50_000, 0, nil, other}},
		"delta on a damaged row": {{1, h[:], 50_000, 2, 2, delta(t, content, other)}, {2, oh[:], 50_000, 1, nil, other}},
		"delta on chunks":        {{1, h[:], 50_000, 2, 2, frame}, {2, oh[:], 50_000, 3, nil, []byte{}}},
		"chunked without chunks": {{1, h[:], 50_000, 3, nil, []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := looseStore(t)
			for _, r := range rows {
				exec(t, d, row, r...)
			}
			good := mustPut(t, s, d, []byte("the rest stays usable"))
			wantDamaged(t, name, s, d, h)
			if err := s.Verify(ctx, good); err != nil {
				t.Errorf("another content: %v", err)
			}
		})
	}
}

func TestDamagedChunks(t *testing.T) {
	content := noise(1, 3*blob.ChunkSize+5)
	h := blob.Sum(content)
	short := []byte("hash")
	const last = `(SELECT chunk_id FROM blob_chunk ORDER BY seq DESC LIMIT 1)`
	for name, q := range map[string]string{
		"row missing":     `DELETE FROM blob WHERE id = ` + last,
		"entry missing":   `DELETE FROM blob_chunk WHERE seq = 1`,
		"last missing":    `DELETE FROM blob_chunk WHERE chunk_id = ` + last,
		"first missing":   `DELETE FROM blob_chunk WHERE seq = 0`,
		"one more":        `INSERT INTO blob_chunk SELECT blob_id, (SELECT max(seq) + 1 FROM blob_chunk), chunk_id FROM blob_chunk WHERE seq = 0`,
		"exchanged":       `UPDATE blob_chunk SET seq = 1 - seq WHERE seq < 2`,
		"size too small":  `UPDATE blob SET size = 5 WHERE encoding = 3`,
		"size too large":  `UPDATE blob SET size = 1 << 60 WHERE encoding = 3`,
		"size negative":   `UPDATE blob SET size = -1 WHERE encoding = 3`,
		"itself":          `UPDATE blob_chunk SET chunk_id = blob_id WHERE seq = 2`,
		"another content": `UPDATE blob SET data = zeroblob(size) WHERE id = ` + last,
		"another hash":    `UPDATE blob SET data = zeroblob(size), hash = zeroblob(32) WHERE id = ` + last,
		"hash too short":  `UPDATE blob SET hash = x'00' WHERE id = ` + last,
		"empty chunk":     `UPDATE blob SET data = x'', size = 0, hash = x'` + blob.Sum(nil).String() + `' WHERE id = ` + last,
	} {
		t.Run(name, func(t *testing.T) {
			s, d := looseStore(t)
			mustPut(t, s, d, content)
			exec(t, d, q)
			wantDamaged(t, name, s, d, h)

			// What comes before the damage is right, and the end is never told.
			r, err := s.Open(ctx, h)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(r)
			if err == nil || !bytes.HasPrefix(content, got) && name != "exchanged" && name != "one more" &&
				name != "entry missing" && name != "another hash" {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}

	s, d := looseStore(t)
	exec(t, d, `INSERT INTO blob (hash, size, encoding, data) VALUES (?, 4, 0, ?)`, short, short)
	mustPut(t, s, d, []byte("good"))
	var good, bad int
	for _, err := range s.All(ctx) {
		var damaged *blob.DamagedError
		switch {
		case err == nil:
			good++
		case errors.As(err, &damaged):
			bad++
		default:
			t.Error(err)
		}
	}
	if good != 1 || bad != 1 {
		t.Errorf("All: %d good, %d damaged", good, bad)
	}
}
