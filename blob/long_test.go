package blob_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reasonix/blob"
)

// logOf is n lines of a log, each with something of its own.
func logOf(from, n int) []byte {
	var b bytes.Buffer
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, "2026-01-02T03:04:%02d.%03d level=info msg=%q id=%x\n", i/1000%60, i%1000, "request served", blob.Sum([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}
	return b.Bytes()
}

func TestALongContentCostsWhatIsNewInIt(t *testing.T) {
	log := logOf(0, 60_000)
	noisy := noise(1, 4<<20)
	for name, c := range map[string]struct {
		was, now []byte
		most     int64
	}{
		"appended":            {log, append(bytes.Clone(log), logOf(60_000, 100)...), 14_000},
		"a line":              {log, append(bytes.Clone(log), logOf(60_000, 1)...), 600},
		"inserted":            {noisy, slices.Insert(bytes.Clone(noisy), 1_000_000, noise(2, 5000)...), 6000},
		"put before":          {noisy, slices.Insert(bytes.Clone(noisy), 0, noise(2, 5000)...), 6000},
		"cut out":             {noisy, slices.Delete(bytes.Clone(noisy), 2_000_000, 2_100_000), 600},
		"changed in places":   {noisy, changed(noisy, 10, 2_500_000, 3_900_000), 1000},
		"grown over a chunk":  {noisy[:1_000_000], noisy[:1_100_000], 101_000},
		"the same":            {noisy, noisy, 0},
		"known from anywhere": {noisy, append(noise(5, 100), noisy[2<<20:]...), 2_500_000},
	} {
		for _, tell := range []bool{true, false} {
			s, d := newStore(t)
			base := mustPut(t, s, d, c.was)
			first := storedBytes(t, d)
			if !tell {
				base = blob.Hash{}
			}
			if _, err := putAgainst(s, d, c.now, base); err != nil {
				t.Fatal(err)
			}
			wantContent(t, s, d, c.now)
			verifyAll(t, s)
			more := storedBytes(t, d) - first
			t.Logf("%s: %d bytes more (base %v)", name, more, tell)
			// Without a base, chunks that are touched are stored again.
			if tell && more > c.most || !tell && more > 3<<20 {
				t.Errorf("%s: %d bytes more (base %v)", name, more, tell)
			}
		}
	}
}

func changed(b []byte, places ...int) []byte {
	b = bytes.Clone(b)
	for _, at := range places {
		b[at] ^= 1
	}
	return b
}

// TestALogThatGrows is appended to more often than deltas may lie on each other.
func TestALogThatGrows(t *testing.T) {
	s, d := newStore(t)
	log := logOf(0, 12_000)
	base := mustPut(t, s, d, log)
	first := storedBytes(t, d)
	for i := range 70 {
		log = append(log, logOf(20_000+i*10, 10)...)
		if _, err := putAgainst(s, d, log, base); err != nil {
			t.Fatal(err)
		}
		base = blob.Sum(log)
	}
	wantContent(t, s, d, log)
	checkForms(t, d)
	if more := storedBytes(t, d) - first; more > 5*first {
		t.Errorf("70 times ten lines take %d bytes, the first part %d", more, first)
	}
}

// TestChunksOfEqualLength are those that stores have from before contents were cut by what is in
// them.
func TestChunksOfEqualLength(t *testing.T) {
	s, d := newStore(t)
	content := noise(1, 3<<20+99)
	var ids []blob.ID
	for part := range slices.Chunk(content, blob.ChunkSize) {
		_, id, err := put(s, d, bytes.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	h := blob.Sum(content)
	exec(t, d, `INSERT INTO blob (id, hash, size, encoding, data) VALUES (99, ?, ?, 3, x'')`, h[:], len(content))
	for seq, id := range ids {
		exec(t, d, `INSERT INTO blob_chunk (blob_id, seq, chunk_id) VALUES (99, ?, ?)`, seq, id)
	}
	wantContent(t, s, d, content)
	next := changed(content, 5)
	if _, err := putAgainst(s, d, next, h); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, d, next)
	wantContent(t, s, d, content)
}

// TestADamagedBase: everything that hangs on it is named, and nothing else.
func TestADamagedBase(t *testing.T) {
	s, d := newStore(t)
	all := history(t, s, d, text(1, 10_000), 10)
	other := mustPut(t, s, d, text(2, 10_000))
	const q = `UPDATE blob SET data = CAST(substr(data, 1, length(data) / 2 - 1) || x'a5' || substr(data, length(data) / 2 + 1) AS BLOB) WHERE hash = ?`
	exec(t, d, q, hashOf(all[4]))
	for i, b := range all {
		if i < 4 {
			wantContent(t, s, d, b)
			continue
		}
		wantDamaged(t, fmt.Sprint("version ", i), s, d, blob.Sum(b))
		err := s.Verify(ctx, blob.Sum(b))
		if err == nil || !strings.Contains(err.Error(), blob.Sum(b).String()) {
			t.Errorf("version %d is not named: %v", i, err)
		}
	}
	if err := s.Verify(ctx, other); err != nil {
		t.Error(err)
	}
	// The next version does not depend on the damage.
	next := append(bytes.Clone(all[10]), "more"...)
	if _, err := putAgainst(blob.New(d, nil), d, next, blob.Sum(all[10])); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, d, next)
}
