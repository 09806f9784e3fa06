package blob_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"reasonix/blob"
	"reasonix/db"
)

// checkForms looks at what no reader would tell: depths that are wrong, and circles.
func checkForms(t testing.TB, d *db.DB) {
	t.Helper()
	for what, q := range map[string]string{
		"depths are too small": `SELECT count(*) FROM blob b JOIN blob base ON base.id = b.base_id WHERE b.depth <= base.depth`,
		"depths are too large": `SELECT count(*) FROM blob WHERE depth NOT BETWEEN 0 AND 32`,
		"rows have half a base": `SELECT count(*) FROM blob WHERE (encoding = 2) <> (base_id IS NOT NULL)
		                         OR encoding <> 2 AND depth <> 0`,
		"deltas hang on chunks or on nothing": `SELECT count(*) FROM blob b JOIN blob base ON base.id = b.base_id
		                                        WHERE base.encoding = 3 OR length(base.data) = 0`,
	} {
		if n := query(t, d, q); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}

func reversed(all [][]byte) (hashes []blob.Hash) {
	for _, b := range slices.Backward(all) {
		hashes = append(hashes, blob.Sum(b))
	}
	return hashes
}

func TestRepack(t *testing.T) {
	s, d := newStore(t)
	all := history(t, s, d, text(1, 20_000), 100)
	long := history(t, s, d, noise(1, 400_000), 20)
	// Somebody else's content hangs on one in the middle, and something long is among the versions.
	other := append(bytes.Clone(all[50]), "another file"...)
	if _, err := putAgainst(s, d, other, blob.Sum(all[50])); err != nil {
		t.Fatal(err)
	}
	chunked := mustPut(t, s, d, noise(3, 3<<20))
	before := storedBytes(t, d)
	r := s.Repacker()
	var saved int64
	for _, versions := range [][]blob.Hash{append(reversed(all), chunked, blob.Sum([]byte("no such content"))), reversed(long), reversed(all)} {
		done, err := r.Versions(ctx, versions)
		if err != nil {
			t.Fatal(err)
		}
		saved += done.Saved
	}
	after := storedBytes(t, d)
	if before-after != saved || saved <= 0 {
		t.Errorf("%d bytes before, %d after, %d told", before, after, saved)
	}
	checkForms(t, d)
	for _, b := range append(append(all, long...), other) {
		wantContent(t, s, d, b)
	}
	verifyAll(t, s)
	if n := query(t, d, `SELECT depth FROM blob WHERE hash = ?`, hashOf(all[100])); n != 0 {
		t.Errorf("the newest version lies %d deep", n)
	}

	// Nothing is left to win.
	done, err := s.Repacker().Versions(ctx, reversed(all))
	if err != nil || done.Saved != 0 {
		t.Errorf("the second time: %+v, %v", done, err)
	}
}

func hashOf(b []byte) []byte { h := blob.Sum(b); return h[:] }

func TestRepackLeavesDamageAndWhatWasDropped(t *testing.T) {
	s, d := newStore(t)
	all := history(t, s, d, text(1, 20_000), 20)
	newest := blob.ID(query(t, d, `SELECT id FROM blob WHERE hash = ?`, hashOf(all[20])))
	if err := expire(d, s, newest); err != nil {
		t.Fatal(err)
	}
	exec(t, d, `UPDATE blob SET data = zeroblob(length(data)) WHERE hash = ?`, hashOf(all[19]))
	if _, err := s.Repacker().Versions(ctx, reversed(all)); err != nil {
		t.Fatal(err)
	}
	checkForms(t, d)
	for _, b := range all[:19] {
		wantContent(t, s, d, b)
	}
	if _, err := s.Read(ctx, blob.Sum(all[20]), 0); !errors.Is(err, blob.ErrExpired) {
		t.Errorf("the one that was dropped: %v", err)
	}
	wantDamaged(t, "damaged", s, d, blob.Sum(all[19]))
}

func TestAFaultAtEachStepOfRepack(t *testing.T) {
	boom := errors.New("boom")
	for n := int64(1); ; n++ {
		var calls atomic.Int64
		calls.Store(1 << 40)
		d := openDB(t, db.Options{Fault: func(string) error {
			if calls.Add(1) == n {
				return boom
			}
			return nil
		}})
		s := blob.New(d, nil)
		all := history(t, s, d, text(1, 40_000), 18)
		calls.Store(0)
		_, err := s.Repacker().Versions(ctx, reversed(all))
		passed := calls.Swap(1 << 40)
		checkForms(t, d)
		for _, b := range all {
			wantContent(t, s, d, b)
		}
		if passed < n {
			if err != nil || n < 3 {
				t.Errorf("after %d steps: %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, boom) {
			t.Fatalf("step %d: got %v", n, err)
		}
	}
}

// TestRepackBesideWritersAndCollection: contents are put, dropped and stored anew at once.
func TestRepackBesideWritersAndCollection(t *testing.T) {
	s, d := newStore(t)
	all := history(t, s, d, text(1, 5000), 60)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 4 {
			if _, err := s.Repacker().Versions(ctx, reversed(all)); err != nil {
				t.Error(err)
			}
		}
	})
	var more [][]byte
	wg.Go(func() {
		r := rand.New(rand.NewPCG(3, 3))
		for range 60 {
			base := all[r.IntN(len(all))]
			b := edited(r, base)
			if _, err := putAgainst(s, d, b, blob.Sum(base)); err != nil {
				t.Error(err)
			}
			more = append(more, b)
		}
	})
	wg.Go(func() {
		r := rand.New(rand.NewPCG(4, 4))
		for range 60 {
			b := all[r.IntN(len(all))]
			id := blob.ID(query(t, d, `SELECT id FROM blob WHERE hash = ?`, hashOf(b)))
			if err := expire(d, s, id); err != nil && !errors.Is(err, blob.ErrNeeded) {
				t.Error(err)
			}
			if err := d.Update(ctx, func(tx *db.WriteTx) error { return s.Detach(tx, blob.ID(1+r.IntN(60))) }); err != nil &&
				!errors.Is(err, blob.ErrExpired) {
				t.Error(err)
			}
			if err := mustBind(s, d, b); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	checkForms(t, d)
	for _, b := range append(all, more...) {
		wantContent(t, s, d, b)
	}
}

func mustBind(s *blob.Store, d *db.DB, b []byte) error {
	_, _, err := put(s, d, bytes.NewReader(b))
	return err
}
