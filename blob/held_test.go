package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"reasonix/blob"
	"reasonix/db"
)

// TestManyContentsWaitForBind: what many contents hold in memory while they wait is bounded. The
// others are in the store before, under a lease, and are bound all the same, in any order, also
// after a transaction that was rolled back; binding makes room for the next.
func TestManyContentsWaitForBind(t *testing.T) {
	const many, size = 12, blob.ChunkSize
	s, d := newStore(t)
	known := noise(99, size)
	mustPut(t, s, d, known)
	for round := range 2 {
		var all []*blob.Prepared
		for i := range many {
			b := noise(uint64(round*many+i+1), size)
			if i%3 == 0 {
				b = known
			}
			p, err := s.Prepare(ctx, bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		before := 1 + round*many*2/3
		early := query(t, d, "SELECT count(*) FROM blob") - int64(before)
		if leases := query(t, d, "SELECT count(*) FROM blob_lease"); early != leases || early < many/3 || early >= many*2/3 {
			t.Fatalf("round %d: %d contents are in the store early, under %d leases", round, early, leases)
		}
		no := errors.New("rolled back")
		bind := func(end error) error {
			return d.Update(ctx, func(tx *db.WriteTx) error {
				for i := range all {
					if _, err := s.Bind(tx, all[many-1-i]); err != nil {
						return err
					}
				}
				return end
			})
		}
		if err := bind(no); !errors.Is(err, no) {
			t.Fatal(err)
		}
		if err := bind(nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := query(t, d, "SELECT count(*) FROM blob_lease"); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	if n := verifyAll(t, s); n != 1+2*many*2/3 {
		t.Errorf("%d contents are there", n)
	}
}
