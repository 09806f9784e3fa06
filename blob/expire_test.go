package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"reasonix/blob"
	"reasonix/db"
)

func expire(d *db.DB, s *blob.Store, ids ...blob.ID) error {
	return d.Update(ctx, func(tx *db.WriteTx) error { return s.Expire(tx, blob.Retention, ids...) })
}

func TestExpiredContentIsGoneAndComesBack(t *testing.T) {
	s, d := newStore(t)
	for name, content := range map[string][]byte{"small": text(1, 5000), "chunked": noise(2, 3<<20)} {
		p, id, err := put(s, d, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if err := expire(d, s, id); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(ctx, p.Hash(), 0); !errors.Is(err, blob.ErrExpired) {
			t.Errorf("%s: read of an expired content: %v", name, err)
		}
		if err := s.Verify(ctx, p.Hash()); !errors.Is(err, blob.ErrExpired) {
			t.Errorf("%s: verify of an expired content: %v", name, err)
		}
		if in, err := s.Stat(ctx, p.Hash()); err != nil || !in.Expired || in.Size != int64(len(content)) || in.Stored != 0 {
			t.Errorf("%s: stat of an expired content: %+v, %v", name, in, err)
		}
		if _, again, err := put(s, d, bytes.NewReader(content)); err != nil || again != id {
			t.Fatalf("%s: stored again in row %d, %v; the first was %d", name, again, err, id)
		}
		if b, err := s.Read(ctx, p.Hash(), 0); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%s: read of a content that came back: %v", name, err)
		}
		if n := query(t, d, `SELECT count(*) FROM blob_expired`); n != 0 {
			t.Errorf("%s: %d contents count as expired", name, n)
		}
	}
}

func TestExpireLeavesNoBytesAndDeleteNoRow(t *testing.T) {
	s, d := newStore(t)
	none, noneID, err := put(s, d, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, id, err := put(s, d, bytes.NewReader(text(3, 5000)))
	if err != nil {
		t.Fatal(err)
	}
	if err := expire(d, s, noneID, id, id); err != nil {
		t.Fatal(err)
	}
	if n := query(t, d, `SELECT coalesce(sum(length(data)), 0) FROM blob`); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
	if b, err := s.Read(ctx, none.Hash(), 0); err != nil || len(b) != 0 {
		t.Errorf("the content of no bytes: %q, %v", b, err)
	}
	if err := d.Update(ctx, func(tx *db.WriteTx) error { return s.Delete(tx, id, noneID) }); err != nil {
		t.Fatal(err)
	}
	if n := query(t, d, `SELECT count(*) FROM blob`) + query(t, d, `SELECT count(*) FROM blob_expired`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestNothingIsDroppedThatAnotherNeeds(t *testing.T) {
	s, d := newStore(t)
	content := noise(4, 3<<20)
	p, _, err := put(s, d, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	chunk := blob.ID(query(t, d, `SELECT min(chunk_id) FROM blob_chunk`))
	if err := expire(d, s, chunk); !errors.Is(err, blob.ErrNeeded) {
		t.Errorf("expire a chunk: %v", err)
	}
	err = d.Update(ctx, func(tx *db.WriteTx) error { return s.Delete(tx, chunk) })
	if !errors.Is(err, blob.ErrNeeded) {
		t.Errorf("delete a chunk: %v", err)
	}
	if err := s.Verify(ctx, p.Hash()); err != nil {
		t.Error(err)
	}
}
