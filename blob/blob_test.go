package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/db"
)

var ctx = context.Background()

const schema = `
CREATE TABLE blob (
  id       INTEGER PRIMARY KEY,
  hash     BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
  size     INTEGER NOT NULL CHECK (size >= 0),
  encoding INTEGER NOT NULL CHECK (encoding IN (0, 1, 2, 3)),
  base_id  INTEGER REFERENCES blob (id),
  depth    INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
  data     BLOB    NOT NULL
) STRICT;
CREATE INDEX blob_base ON blob (base_id) WHERE base_id IS NOT NULL;
CREATE TABLE blob_chunk (
  blob_id  INTEGER NOT NULL REFERENCES blob (id),
  seq      INTEGER NOT NULL,
  chunk_id INTEGER NOT NULL REFERENCES blob (id),
  PRIMARY KEY (blob_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_chunk_chunk ON blob_chunk (chunk_id);
CREATE TABLE blob_lease (
  id         INTEGER PRIMARY KEY,
  expires_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE blob_expired (
  blob_id    INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
  reason     INTEGER NOT NULL,
  expired_ms INTEGER NOT NULL
) STRICT;`

func migrations() fs.FS {
	return fstest.MapFS{"0001_blob.sql": &fstest.MapFile{Data: []byte(schema)}}
}

func openDB(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	o.Migrations = migrations()
	d, err := db.Open(ctx, filepath.Join(t.TempDir(), "s.db"), o)
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

func newStore(t testing.TB) (*blob.Store, *db.DB) {
	d := openDB(t, db.Options{})
	return blob.New(d, nil), d
}

// text is n bytes that compress, noise n bytes that don't; both are the same for a seed.
func text(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "line %d of a file that looks like source\n", r.IntN(1000))
	}
	return b.Bytes()[:n]
}

func noise(seed uint64, n int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func put(s *blob.Store, d *db.DB, r io.Reader) (p *blob.Prepared, id blob.ID, err error) {
	if p, err = s.Prepare(ctx, r); err != nil {
		return nil, 0, err
	}
	return p, id, d.Update(ctx, func(tx *db.WriteTx) error {
		id, err = s.Bind(tx, p)
		return err
	})
}

func mustPut(t testing.TB, s *blob.Store, d *db.DB, b []byte) blob.Hash {
	t.Helper()
	p, _, err := put(s, d, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return p.Hash()
}

func query(t testing.TB, d *db.DB, q string, args ...any) (n int64) {
	t.Helper()
	if err := d.View(ctx, func(tx *db.ReadTx) error { return tx.Get(&n, q, args...) }); err != nil {
		t.Fatal(err)
	}
	return n
}

func exec(t testing.TB, d *db.DB, q string, args ...any) {
	t.Helper()
	err := d.Update(ctx, func(tx *db.WriteTx) error {
		_, err := tx.Exec(q, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// verifyAll reads every content back.
func verifyAll(t testing.TB, s *blob.Store) (n int) {
	t.Helper()
	for in, err := range s.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(ctx, in.Hash); err != nil {
			t.Error(err)
		}
		n++
	}
	return n
}

func wantContent(t testing.TB, s *blob.Store, d *db.DB, want []byte) {
	t.Helper()
	h := blob.Sum(want)
	r, err := s.Open(ctx, h)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	read, err := s.Read(ctx, h, int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	var inTx []byte
	err = d.View(ctx, func(tx *db.ReadTx) error {
		inTx, err = blob.ReadTx(tx, h, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"Open": streamed, "Read": read, "ReadTx": inTx} {
		if !bytes.Equal(got, want) {
			t.Errorf("%s gives %d bytes that differ from the %d written", name, len(got), len(want))
		}
	}
}

func TestContentsComeBack(t *testing.T) {
	const c = blob.ChunkSize
	for name, tc := range map[string]struct {
		content  []byte
		encoding blob.Encoding
		rows     int
	}{
		"empty":            {nil, blob.Raw, 1},
		"one byte":         {[]byte{0}, blob.Raw, 1},
		"short text":       {text(1, 63), blob.Raw, 1},
		"text":             {text(1, 10_000), blob.Zstd, 1},
		"noise":            {noise(1, 10_000), blob.Raw, 1},
		"zeros":            {make([]byte, 200_000), blob.Zstd, 1},
		"under a chunk":    {text(1, c-1), blob.Zstd, 1},
		"a chunk":          {text(1, c), blob.Zstd, 1},
		"a chunk of noise": {noise(1, c), blob.Raw, 1},
		"over a chunk":     {text(1, c+1), blob.Chunked, 0},
		"two chunks":       {noise(1, 2*c), blob.Chunked, 0},
		"over two chunks":  {noise(1, 2*c+1), blob.Chunked, 0},
		"the same chunks":  {make([]byte, 5*c), blob.Chunked, 0},
		"many chunks":      {noise(2, 9*c+7), blob.Chunked, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := newStore(t)
			p, id, err := put(s, d, bytes.NewReader(tc.content))
			if err != nil {
				t.Fatal(err)
			}
			h := blob.Sum(tc.content)
			if p.Hash() != h || p.Size() != int64(len(tc.content)) {
				t.Errorf("prepared as %s, %d bytes", p.Hash(), p.Size())
			}
			wantContent(t, s, d, tc.content)
			if tc.encoding == blob.Chunked {
				chunks := int(query(t, d, "SELECT count(*) FROM blob_chunk"))
				if chunks < len(tc.content)/c || chunks > 2*len(tc.content)/c+1 {
					t.Errorf("%d chunks", chunks)
				}
				tc.rows = 1 + int(query(t, d, "SELECT count(DISTINCT chunk_id) FROM blob_chunk"))
			}
			in, err := s.Stat(ctx, h)
			if err != nil {
				t.Fatal(err)
			}
			if in.Stored <= 0 && len(tc.content) > 0 || in.Stored > in.Size {
				t.Errorf("%d bytes are stored for %d", in.Stored, in.Size)
			}
			want := blob.Info{Hash: h, Size: int64(len(tc.content)), Stored: in.Stored, Encoding: tc.encoding}
			if diff := cmp.Diff(want, in); diff != "" {
				t.Errorf("Stat (-want +got):\n%s", diff)
			}
			if n := verifyAll(t, s); n != tc.rows {
				t.Errorf("%d rows, want %d", n, tc.rows)
			}

			// Again, by way of a reader that tells nothing of its length.
			_, again, err := put(s, d, iotest.OneByteReader(iotest.DataErrReader(bytes.NewReader(tc.content))))
			if len(tc.content) > 2*c {
				_, again, err = put(s, d, iotest.HalfReader(bytes.NewReader(tc.content)))
			}
			if err != nil || again != id {
				t.Errorf("the second time: row %d, then %d, %v", id, again, err)
			}
			if n := query(t, d, "SELECT count(*) FROM blob"); n != int64(tc.rows) {
				t.Errorf("%d rows after the second time, want %d", n, tc.rows)
			}
			if n := query(t, d, "SELECT count(*) FROM blob_lease"); n != 0 {
				t.Errorf("%d leases are left", n)
			}
			var got blob.Hash
			err = d.View(ctx, func(tx *db.ReadTx) error { got, err = blob.HashOf(tx, id); return err })
			if err != nil || got != h {
				t.Errorf("HashOf: %s, %v", got, err)
			}
		})
	}
}

func TestPrepareBytes(t *testing.T) {
	s, d := newStore(t)
	for _, b := range [][]byte{nil, text(1, 100), noise(1, blob.ChunkSize+5)} {
		p, err := s.PrepareBytes(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // binding is idempotent
			if err := d.Update(ctx, func(tx *db.WriteTx) error { _, err := s.Bind(tx, p); return err }); err != nil {
				t.Fatal(err)
			}
		}
		wantContent(t, s, d, b)
	}
}

func TestNotFoundAndTooLarge(t *testing.T) {
	s, d := newStore(t)
	h := mustPut(t, s, d, text(1, 1000))
	for name, f := range map[string]func() error{
		"Open":   func() error { _, err := s.Open(ctx, blob.Hash{}); return err },
		"Read":   func() error { _, err := s.Read(ctx, blob.Sum([]byte("x")), 0); return err },
		"Stat":   func() error { _, err := s.Stat(ctx, blob.Hash{1}); return err },
		"Verify": func() error { return s.Verify(ctx, blob.Hash{2}) },
		"HashOf": func() error {
			return d.View(ctx, func(tx *db.ReadTx) error { _, err := blob.HashOf(tx, 99); return err })
		},
	} {
		if err := f(); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Read(ctx, h, 999); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestAReaderThatFails(t *testing.T) {
	s, d := newStore(t)
	boom := errors.New("boom")
	for _, n := range []int{0, 100, blob.ChunkSize + 1, 12 * blob.ChunkSize} {
		r := io.MultiReader(bytes.NewReader(noise(1, n)), iotest.ErrReader(boom))
		if _, err := s.Prepare(ctx, r); !errors.Is(err, boom) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	if n := query(t, d, "SELECT count(*) FROM blob_lease"); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	if n := query(t, d, "SELECT count(*) FROM blob WHERE encoding = 3"); n != 0 {
		t.Errorf("%d contents came of it", n)
	}
}

func TestWhatPrepareSawIsSweptBeforeBind(t *testing.T) {
	s, d := newStore(t)
	bind := func(p *blob.Prepared) error {
		return d.Update(ctx, func(tx *db.WriteTx) error { _, err := s.Bind(tx, p); return err })
	}
	small, large := text(1, 100_000), noise(1, 3*blob.ChunkSize)
	mustPut(t, s, d, small)
	p, err := s.PrepareBytes(ctx, small)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, d, "DELETE FROM blob")
	if err := bind(p); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, d, small)

	if p, err = s.PrepareBytes(ctx, large); err != nil {
		t.Fatal(err)
	}
	exec(t, d, "DELETE FROM blob")
	if err := bind(p); !errors.Is(err, blob.ErrGone) {
		t.Errorf("got %v", err)
	}
	if n := query(t, d, "SELECT count(*) FROM blob"); n != 0 {
		t.Errorf("%d rows of a content that is gone", n)
	}
	if err := s.Discard(ctx, p); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, d, large)
	wantContent(t, s, d, large)
}

func TestLeases(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	d := openDB(t, db.Options{})
	s := blob.New(d, func() time.Time { now = now.Add(time.Minute); return now })
	p, err := s.Prepare(ctx, bytes.NewReader(noise(1, 20*blob.ChunkSize)))
	if err != nil {
		t.Fatal(err)
	}
	if n := query(t, d, "SELECT expires_ms FROM blob_lease"); n < now.Add(4*time.Minute).UnixMilli() {
		t.Errorf("the lease expires at %d, it is %d", n, now.UnixMilli())
	}
	boom := errors.New("boom")
	err = d.Update(ctx, func(tx *db.WriteTx) error { _, err := s.Bind(tx, p); return errors.Join(err, boom) })
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if n := query(t, d, "SELECT count(*) FROM blob_lease"); n != 1 {
		t.Error("the lease ended with a transaction that was rolled back")
	}
	for range 2 {
		if err := s.Discard(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	if n := query(t, d, "SELECT count(*) FROM blob_lease"); n != 0 {
		t.Error("the lease is left")
	}
	if err := s.Discard(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestTheSameContentsAtOnce(t *testing.T) {
	s, d := newStore(t)
	contents := [][]byte{text(1, 500), text(2, 100_000), noise(3, 2*blob.ChunkSize+9)}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for _, b := range contents {
				if _, _, err := put(s, d, bytes.NewReader(b)); err != nil {
					t.Error(err)
				}
				if got, err := s.Read(ctx, blob.Sum(b), 0); err != nil || !bytes.Equal(got, b) {
					t.Errorf("read back: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := verifyAll(t, s); n != 3+int(query(t, d, "SELECT count(*) FROM blob_chunk")) {
		t.Errorf("%d rows", n)
	}
}

func TestHashText(t *testing.T) {
	h := blob.Sum([]byte("abc"))
	const want = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
	if h.String() != want || h.Short() != want[:8] {
		t.Errorf("got %s, %s", h, h.Short())
	}
	if got, err := blob.ParseHash(want); err != nil || got != h {
		t.Errorf("ParseHash: %s, %v", got, err)
	}
	for _, bad := range []string{"", want[:63], want + "0", "g" + want[1:]} {
		if _, err := blob.ParseHash(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if got, err := blob.FromBytes(h[:]); err != nil || got != h {
		t.Errorf("FromBytes: %s, %v", got, err)
	}
	if _, err := blob.FromBytes(h[:31]); err == nil {
		t.Error("31 bytes made a hash")
	}
	if h.IsZero() || !(blob.Hash{}).IsZero() {
		t.Error("IsZero")
	}
}
