package blob_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"reasonix/blob"
	"reasonix/db"
)

// edited is b with a line put in, taken out or changed at a random place.
func edited(r *rand.Rand, b []byte) []byte {
	at := 0
	if len(b) > 0 {
		at = r.IntN(len(b))
	}
	line := fmt.Appendf(nil, "\tvalue%d := compute(%d)\n", r.IntN(1e6), r.IntN(1e6))
	switch end := min(len(b), at+r.IntN(60)); r.IntN(3) {
	case 0:
		return slices.Insert(bytes.Clone(b), at, line...)
	case 1:
		return slices.Delete(bytes.Clone(b), at, end)
	default:
		return slices.Replace(bytes.Clone(b), at, end, line...)
	}
}

func putAgainst(s *blob.Store, d *db.DB, b []byte, base blob.Hash) (id blob.ID, err error) {
	p, err := s.PrepareAgainst(ctx, bytes.NewReader(b), base)
	if err != nil {
		return 0, err
	}
	return id, d.Update(ctx, func(tx *db.WriteTx) error {
		id, err = s.Bind(tx, p)
		return err
	})
}

// history puts n versions, each against the one before, and returns them all.
func history(t testing.TB, s *blob.Store, d *db.DB, first []byte, n int) [][]byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	all := [][]byte{first}
	base := mustPut(t, s, d, first)
	for range n {
		next := edited(r, all[len(all)-1])
		if _, err := putAgainst(s, d, next, base); err != nil {
			t.Fatal(err)
		}
		all, base = append(all, next), blob.Sum(next)
	}
	return all
}

func TestVersionsAreStoredAsDifferences(t *testing.T) {
	for _, size := range []int{1000, 10_000, 200_000, blob.ChunkSize - 10_000} {
		s, d := newStore(t)
		all := history(t, s, d, text(1, size), 80)
		for _, b := range all {
			wantContent(t, s, d, b)
		}
		deltas := query(t, d, `SELECT count(*) FROM blob WHERE encoding = 2`)
		if deltas < 70 {
			t.Errorf("%d bytes: %d deltas", size, deltas)
		}
		if n := query(t, d, `SELECT max(depth) FROM blob`); n > 32 || n < 8 {
			t.Errorf("%d bytes: deltas lie %d deep", size, n)
		}
		if n := query(t, d, `SELECT count(*) FROM blob JOIN blob AS base ON base.id = blob.base_id WHERE blob.depth <> base.depth + 1`); n != 0 {
			t.Errorf("%d bytes: %d depths are wrong", size, n)
		}
		if n := query(t, d, `SELECT sum(length(data)) FROM blob WHERE encoding = 2`); n > deltas*300 {
			t.Errorf("%d bytes: %d deltas take %d bytes", size, deltas, n)
		}
	}
}

func TestWhatIsUnlikeItsBaseStandsByItself(t *testing.T) {
	for name, c := range map[string]struct{ base, content []byte }{
		"other text":      {text(1, 20_000), noise(2, 20_000)},
		"mostly other":    {noise(1, 20_000), append(noise(2, 15_000), noise(1, 20_000)[15_000:]...)},
		"compresses well": {text(1, 20_000), make([]byte, 20_000)},
		"tiny":            {text(1, 20_000), text(1, 63)},
		"empty":           {text(1, 20_000), nil},
		"empty base":      {nil, text(1, 20_000)},
		"long base":       {noise(1, 3<<20), noise(1, 20_000)},
	} {
		s, d := newStore(t)
		base := mustPut(t, s, d, c.base)
		if _, err := putAgainst(s, d, c.content, base); err != nil {
			t.Fatal(err)
		}
		wantContent(t, s, d, c.content)
		if n := query(t, d, `SELECT count(*) FROM blob WHERE base_id IS NOT NULL`); n != 0 && name != "compresses well" {
			t.Errorf("%s: stored against its base", name)
		}
	}
}

func TestABaseThatIsNotThere(t *testing.T) {
	base, content := noise(1, 20_000), append(noise(1, 19_000), "end"...)
	t.Run("never was", func(t *testing.T) {
		s, d := newStore(t)
		if _, err := putAgainst(s, d, content, blob.Sum(base)); err != nil {
			t.Fatal(err)
		}
		wantContent(t, s, d, content)
	})
	t.Run("is the content itself", func(t *testing.T) {
		s, d := newStore(t)
		if _, err := putAgainst(s, d, content, blob.Sum(content)); err != nil {
			t.Fatal(err)
		}
		wantContent(t, s, d, content)
	})
	for name, remove := range map[string]func(tx *db.WriteTx, s *blob.Store, id blob.ID) error{
		"deleted": func(tx *db.WriteTx, s *blob.Store, id blob.ID) error { return s.Delete(tx, id) },
		"expired": func(tx *db.WriteTx, s *blob.Store, id blob.ID) error { return s.Expire(tx, blob.Purged, id) },
		"too deep": func(tx *db.WriteTx, s *blob.Store, id blob.ID) error {
			_, err := tx.Exec(`UPDATE blob SET depth = 32 WHERE id = ?`, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, many := range []int{1, 600} { // the second makes memory scarce
				s, d := newStore(t)
				_, id, err := put(s, d, bytes.NewReader(base))
				if err != nil {
					t.Fatal(err)
				}
				var all []*blob.Prepared
				for i := range many {
					p, err := s.PrepareAgainst(ctx, bytes.NewReader(fmt.Append(content, i)), blob.Sum(base))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, p)
				}
				err = d.Update(ctx, func(tx *db.WriteTx) error {
					if err := remove(tx, s, id); err != nil {
						return err
					}
					for _, p := range all {
						if _, err := s.Bind(tx, p); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := range many {
					wantContent(t, s, d, fmt.Append(bytes.Clone(content), i))
				}
				if n := query(t, d, `SELECT count(*) FROM blob WHERE base_id IS NOT NULL`); n != 0 {
					t.Errorf("%d deltas", n)
				}
			}
		})
	}
}

// TestHistoriesComeBack plays random edits of files that know of each other, in a store that is
// closed and opened meanwhile, while contents are dropped, rewritten and stored again.
func TestHistoriesComeBack(t *testing.T) {
	for seed := range uint64(4) {
		path := filepath.Join(t.TempDir(), "s.db")
		open := func() (*db.DB, *blob.Store) {
			d, err := db.Open(ctx, path, db.Options{Migrations: migrations()})
			if err != nil {
				t.Fatal(err)
			}
			return d, blob.New(d, nil)
		}
		d, s := open()
		r := rand.New(rand.NewPCG(seed, 0))
		want, seen := map[blob.Hash][]byte{}, []blob.Hash(nil)
		files := [][]byte{text(1, 3000), noise(2, 700), text(3, 100_000), noise(4, blob.ChunkSize+300_000)}
		check := func() {
			hashes := make([]blob.Hash, 0, len(want))
			for h := range want {
				hashes = append(hashes, h)
			}
			r.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
			for _, h := range hashes {
				if b, err := s.Read(ctx, h, 0); err != nil || !bytes.Equal(b, want[h]) {
					t.Fatalf("content of %d bytes: %v", len(want[h]), err)
				}
			}
		}
		for range 60 {
			i := r.IntN(len(files))
			base := blob.Sum(files[i])
			if r.IntN(10) == 0 {
				base = blob.Sum(files[r.IntN(len(files))])
			}
			files[i] = edited(r, files[i])
			if _, err := putAgainst(s, d, files[i], base); err != nil {
				t.Fatal(err)
			}
			want[blob.Sum(files[i])] = files[i]
			seen = append(seen, blob.Sum(files[i]))
			if r.IntN(15) == 0 {
				all := slices.Clone(seen)
				slices.Reverse(all)
				if _, err := s.Repacker().Versions(ctx, all); err != nil {
					t.Fatal(err)
				}
				checkForms(t, d)
			}
			if r.IntN(20) == 0 {
				check()
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				d, s = open()
			}
		}
		check()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
