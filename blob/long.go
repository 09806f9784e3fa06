package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/blake3"

	"reasonix/db"
)

// maxMisses is how many chunks in a row may be unlike those of the earlier version before no more
// are compared.
const maxMisses = 8

// chunking is a content of more than ChunkSize on its way into chunks.
type chunking struct {
	s       *Store
	p       *Prepared
	whole   *blake3.Hasher
	was     lineage
	pending []piece
	held    int      // bytes that pending keeps
	used    [][]byte // buffers that pending keeps
	free    [][]byte
	seen    map[Hash]bool // in pending
}

// prepareChunks commits the chunks of first and the rest of r. first is a chunk and the byte after
// it; base is as for PrepareAgainst.
func (s *Store) prepareChunks(ctx context.Context, p *Prepared, r io.Reader, first []byte, base Hash) error {
	// The lease comes before the first look-up: what is found under it stays.
	if err := s.commit(ctx, p, nil); err != nil {
		return err
	}
	c := &chunking{s: s, p: p, whole: blake3.New(), seen: map[Hash]bool{}}
	if err := c.was.load(ctx, s, base); err != nil {
		return err
	}
	for buf := first; len(buf) > 0; {
		n := cut(buf)
		kept, err := c.take(ctx, buf[:n])
		if err != nil {
			return err
		}
		next := buf[:cap(buf)]
		if kept {
			c.used = append(c.used, buf)
			next = c.buffer()
		}
		rest := copy(next, buf[n:])
		more, err := io.ReadFull(r, next[rest:ChunkSize+1])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read the content: %w", err)
		}
		buf = next[:rest+more]
		if c.held >= batchSize || p.expires.Sub(s.now()) < leaseTime/2 {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
	}
	if len(c.pending) > 0 {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	c.whole.Sum(p.hash[:0])
	return nil
}

// take adds the next chunk. kept means that its memory is needed until flush.
func (c *chunking) take(ctx context.Context, chunk []byte) (kept bool, err error) {
	_, _ = c.whole.Write(chunk) // never fails
	one := piece{hash: Sum(chunk), size: int64(len(chunk)), data: chunk}
	c.p.chunks = append(c.p.chunks, one.hash)
	c.p.size += one.size
	known := c.was.met(one.hash) || c.seen[one.hash]
	if !known {
		if base := c.was.base(); base.IsZero() {
			known, err = c.s.has(ctx, one.hash)
		} else {
			known, err = c.s.against(ctx, &one, base)
			c.was.tried(known || one.delta != nil)
		}
	}
	if known || err != nil {
		return false, err
	}
	if one.delta == nil {
		one.pack()
	}
	c.pending = append(c.pending, one)
	c.seen[one.hash] = true
	c.held += int(one.memory())
	return !one.packed || one.encoding == Raw, nil
}

// flush commits what is pending.
func (c *chunking) flush(ctx context.Context) error {
	if err := c.s.commit(ctx, c.p, c.pending); err != nil {
		return err
	}
	clear(c.seen)
	clear(c.pending)
	c.pending, c.held = c.pending[:0], 0
	c.free, c.used = append(c.free, c.used...), c.used[:0]
	return nil
}

// buffer takes a buffer for a chunk and a byte more, one that was used before if it can: a long
// content would otherwise leave as much garbage as it is long.
func (c *chunking) buffer() []byte {
	last := len(c.free) - 1
	if last >= 0 && cap(c.free[last]) > ChunkSize {
		b := c.free[last][:ChunkSize+1]
		c.free = c.free[:last]
		return b
	}
	return make([]byte, ChunkSize+1)
}

// lineage are the chunks of an earlier version. One that is not found again is likely to have
// become the chunk that stands in its place.
type lineage struct {
	chunks []Hash
	place  map[Hash]int
	next   int // the one after the last that was found again, or that another was compared with
	misses int
}

// load reads the chunks of base. A content that has none is its own only chunk.
func (l *lineage) load(ctx context.Context, s *Store, base Hash) error {
	if base.IsZero() {
		return nil
	}
	var all [][]byte
	err := s.db.View(ctx, func(tx *db.ReadTx) error {
		return tx.Select(&all, `
			SELECT c.hash
			FROM blob AS b
			JOIN blob_chunk AS k ON k.blob_id = b.id
			JOIN blob AS c ON c.id = k.chunk_id
			WHERE b.hash = ?
			ORDER BY k.seq`, base[:])
	})
	if err != nil {
		return fmt.Errorf("read the chunks of %s: %w", base.Short(), err)
	}
	if len(all) == 0 {
		l.chunks = []Hash{base}
	}
	l.place = make(map[Hash]int, len(all))
	for _, b := range all {
		h, err := FromBytes(b)
		if err != nil {
			continue // a damaged row is no use as a base
		}
		l.place[h] = len(l.chunks)
		l.chunks = append(l.chunks, h)
	}
	return nil
}

// met reports whether h is one of the chunks.
func (l *lineage) met(h Hash) bool {
	i, ok := l.place[h]
	if ok {
		l.next, l.misses = i+1, 0
	}
	return ok
}

// base is the chunk to compare the next one with, zero for none. After the last it is the last one
// again: that may have been cut in two.
func (l *lineage) base() Hash {
	if len(l.chunks) == 0 || l.misses >= maxMisses {
		return Hash{}
	}
	l.next = min(l.next+1, len(l.chunks))
	return l.chunks[l.next-1]
}

// tried tells what came of it.
func (l *lineage) tried(alike bool) {
	if alike {
		l.misses = 0
	} else {
		l.misses++
	}
}

// commit renews the lease of p and writes pieces, in one transaction.
func (s *Store) commit(ctx context.Context, p *Prepared, pieces []piece) error {
	expires := s.now().Add(leaseTime)
	lease := p.lease
	err := s.db.Update(ctx, func(tx *db.WriteTx) error {
		const renew = `
			INSERT INTO blob_lease (id, expires_ms) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET expires_ms = excluded.expires_ms`
		var id any
		if lease != 0 {
			id = lease
		}
		res, err := tx.Exec(renew, id, expires.UnixMilli())
		if err != nil {
			return err
		}
		if lease == 0 {
			if lease, err = res.LastInsertId(); err != nil {
				return err
			}
		}
		for _, r := range pieces {
			gone, known, err := Lookup(&tx.ReadTx, r.hash)
			if err != nil {
				return err
			} else if known {
				continue
			}
			if _, err := r.insert(tx, gone); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write chunks: %w", err)
	}
	p.lease, p.expires = lease, expires
	return nil
}
