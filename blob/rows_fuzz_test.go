package blob_test

import (
	"errors"
	"testing"

	"reasonix/blob"
)

// FuzzRows reads contents from rows that say anything of themselves and of each other: circles, depths
// and sizes that are not so, chunks of chunks. Each read gives the content or names it as damaged,
// and so does storing another one against it.
func FuzzRows(f *testing.F) {
	f.Add([]byte{2, 1, 0, 2, 0, 1, 2, 1, 5}, int64(300), []byte{1, 4, 4, 'x'})
	f.Add([]byte{3, 0, 0, 3, 0, 0, 3, 1, 2}, int64(1)<<40, []byte{})
	f.Add([]byte{0, 0, 9, 2, 0, 200, 2, 1, 40}, int64(4), []byte("text"))
	f.Add([]byte{1, 2, 0, 2, 2, 1, 2, 0, 2}, int64(-5), []byte{4, 0, 0, 9, 0x28, 0xb5, 0x2f, 0xfd})
	f.Fuzz(func(t *testing.T, shape []byte, size int64, data []byte) {
		s, d := looseStore(t)
		hashes := make([]blob.Hash, 0, 3)
		for i := 0; i+3 <= len(shape) && i < 9; i += 3 {
			h := blob.Sum([]byte{byte(i)})
			hashes = append(hashes, h)
			exec(t, d, `INSERT INTO blob (id, hash, size, encoding, base_id, depth, data) VALUES (?, ?, ?, ?, ?, ?, ?)`,
				i/3+1, h[:], size, shape[i]%5, int(shape[i+1])%4+1, shape[i+2], data)
			exec(t, d, `INSERT INTO blob_chunk (blob_id, seq, chunk_id) VALUES (?, 0, ?)`, i/3+1, int(shape[i+1])%4+1)
		}
		for _, h := range hashes {
			var damaged *blob.DamagedError
			if _, err := s.Read(ctx, h, 0); !errors.As(err, &damaged) && !errors.Is(err, blob.ErrExpired) {
				t.Errorf("read: %v", err)
			}
			if err := s.Verify(ctx, h); !errors.As(err, &damaged) && !errors.Is(err, blob.ErrExpired) {
				t.Errorf("verify: %v", err)
			}
			content := text(uint64(size), 2000)
			if _, err := putAgainst(s, d, content, h); err != nil {
				t.Fatalf("put against it: %v", err)
			}
			wantContent(t, s, d, content)
			if _, err := s.Repacker().Versions(ctx, append(hashes, blob.Sum(content))); err != nil {
				t.Errorf("repack: %v", err)
			}
		}
	})
}
