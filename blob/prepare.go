package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/zeebo/blake3"

	"reasonix/db"
)

const (
	// maxLong contents of more than a chunk are prepared at a time: their transactions wait for
	// each other anyway, and each holds a batch.
	maxLong = 2

	// lookFirst is the length, in bytes, from which asking the store for a content costs
	// less than compressing it: a look-up may have to open a connection first.
	lookFirst = 32 << 10

	// batchSize bounds what one transaction of Prepare writes, in bytes, give or take a
	// chunk. It is also what each Prepare holds in memory, and it keeps other writers waiting.
	batchSize = 4 * ChunkSize

	// maxHeld bounds what all contents of at least lookFirst bytes that wait for their Bind
	// hold in memory, in bytes: an event may be about thousands of files. Shorter ones are
	// always kept, since a transaction for each would cost more than they do.
	maxHeld = 4 * ChunkSize

	// leaseTime is how long chunks outlive the process that wrote them and was killed. It is
	// renewed after half of it.
	leaseTime = 10 * time.Minute

	// firstRead is the buffer for a content of unknown length, in bytes.
	firstRead = 16 << 10
)

// Prepared is a content on its way into the store. It belongs to the Store that made it and to
// one goroutine. It must be given to Bind or to Discard; one that is forgotten only delays the
// sweep by the time of its lease.
type Prepared struct {
	hash Hash
	size int64

	// Up to ChunkSize: the content as it will be stored, or, when packed is false, raw,
	// because the store seemed to have it. data is nil when the content is in the store and
	// too much was held in memory.
	packed   bool
	encoding Encoding
	data     []byte
	held     int64 // bytes counted by the Store

	// Above: the chunks, which are committed, and the lease that protects them.
	chunks  []Hash
	lease   int64 // 0 means none
	expires time.Time

	digest bool // made by Digest: there is nothing to bind
}

// Hash is the name of the content.
func (p *Prepared) Hash() Hash { return p.hash }

// Size is the length of the content in bytes.
func (p *Prepared) Size() int64 { return p.size }

// PrepareBytes is Prepare for a content in memory. b must not change until Bind.
func (s *Store) PrepareBytes(ctx context.Context, b []byte) (*Prepared, error) {
	if len(b) > ChunkSize {
		return s.Prepare(ctx, bytes.NewReader(b))
	}
	return s.prepareSmall(ctx, b)
}

// Prepare reads r to its end, hashes and compresses, outside any transaction. A content of at
// most ChunkSize stays in memory, unless too much is held there already: then it is committed
// under a lease. Of a longer one, chunks are committed in transactions of about 4 MiB under one, so that memory is bounded whatever the length; after an error or a
// crash they are swept once the lease has expired. Errors of r are returned wrapped.
func (s *Store) Prepare(ctx context.Context, r io.Reader) (*Prepared, error) {
	buf, err := readFirst(r)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	if len(buf) <= ChunkSize {
		return s.prepareSmall(ctx, buf)
	}
	select {
	case s.long <- struct{}{}:
		defer func() { <-s.long }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p := &Prepared{}
	if err := s.prepareChunks(ctx, p, r, buf); err != nil {
		s.giveUp(ctx, p)
		return nil, err
	}
	return p, nil
}

// giveUp discards p after an error. A caller whose deadline has passed is not kept waiting: the
// lease runs out by itself.
func (s *Store) giveUp(ctx context.Context, p *Prepared) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 50*time.Millisecond)
	defer cancel()
	_ = s.Discard(ctx, p)
}

func (s *Store) prepareSmall(ctx context.Context, raw []byte) (*Prepared, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Prepared{hash: Sum(raw), size: int64(len(raw)), data: raw}
	if len(raw) < lookFirst {
		p.packed = true
		p.encoding, p.data = encode(raw)
		return p, nil
	}
	known, err := s.has(ctx, p.hash)
	if err != nil {
		return nil, err
	}
	if !known {
		p.packed = true
		p.encoding, p.data = encode(raw)
	}
	if s.hold(p) {
		return p, nil
	}
	if !known {
		if err := s.commit(ctx, p, []row{{p.hash, len(raw), p.encoding, p.data}}); err != nil {
			return nil, err
		}
	}
	p.data = nil
	return p, nil
}

// hold counts what p keeps in memory; it reports false when that is too much.
func (s *Store) hold(p *Prepared) bool {
	n := int64(cap(p.data))
	if s.held.Add(n) > maxHeld {
		s.held.Add(-n)
		return false
	}
	p.held = n
	return true
}

// release is the end of hold. It may be called twice.
func (s *Store) release(p *Prepared) {
	s.held.Add(-p.held)
	p.held = 0
}

func (s *Store) has(ctx context.Context, h Hash) (known bool, err error) {
	err = s.db.View(ctx, func(tx *db.ReadTx) error {
		_, known, err = Lookup(tx, h)
		return err
	})
	return known, err
}

// readFirst reads up to one byte more than a chunk, which tells whether there is more.
func readFirst(r io.Reader) ([]byte, error) {
	const limit = ChunkSize + 1
	buf := make([]byte, 0, min(sizeHint(r), limit))
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(2*cap(buf), limit))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// sizeHint guesses how much r will give, and a byte more, so that the end is met without
// growing the buffer. It is only a guess: a file can change.
func sizeHint(r io.Reader) int {
	switch r := r.(type) {
	case interface{ Len() int }:
		return r.Len() + 1
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return int(min(info.Size(), ChunkSize)) + 1
		}
	}
	return firstRead
}

// row is a content that is to be inserted.
type row struct {
	hash     Hash
	size     int
	encoding Encoding
	data     []byte
}

// prepareChunks commits the chunks of first and the rest of r. first is a chunk and the byte
// after it.
func (s *Store) prepareChunks(ctx context.Context, p *Prepared, r io.Reader, first []byte) error {
	// The lease comes before the first look-up: what is found under it stays.
	if err := s.commit(ctx, p, nil); err != nil {
		return err
	}
	var (
		whole   = blake3.New()
		pending []row
		held    int      // bytes in pending
		free    [][]byte // buffers that were in pending
		seen    = make(map[Hash]bool)
	)
	for buf := first; len(buf) > 0; {
		chunk := buf[:min(len(buf), ChunkSize)]
		_, _ = whole.Write(chunk) // never fails
		h := Sum(chunk)
		p.chunks = append(p.chunks, h)
		p.size += int64(len(chunk))
		known := seen[h]
		if !known {
			var err error
			if known, err = s.has(ctx, h); err != nil {
				return err
			}
		}
		after := buf[len(chunk):] // the byte after the chunk, if any
		next := buf[:cap(buf)]
		if !known {
			enc, data := encode(chunk)
			if enc == Raw { // data is buf's memory
				next, free = another(free)
			}
			pending = append(pending, row{h, len(chunk), enc, data})
			held += len(data)
			seen[h] = true
		}
		n := copy(next, after)
		if n > 0 {
			m, err := io.ReadFull(r, next[n:ChunkSize+1])
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("read the content: %w", err)
			}
			n += m
		}
		buf = next[:n]

		if held >= batchSize || p.expires.Sub(s.now()) < leaseTime/2 {
			if err := s.commit(ctx, p, pending); err != nil {
				return err
			}
			clear(seen)
			for _, r := range pending {
				if r.encoding == Raw {
					free = append(free, r.data)
				}
			}
			pending, held = pending[:0], 0
		}
	}
	if len(pending) > 0 {
		if err := s.commit(ctx, p, pending); err != nil {
			return err
		}
	}
	whole.Sum(p.hash[:0])
	return nil
}

// another takes a buffer for a chunk and a byte more, one of free if it can: a long content would
// otherwise leave as much garbage as it is long.
func another(free [][]byte) (buf []byte, rest [][]byte) {
	last := len(free) - 1
	if last >= 0 && cap(free[last]) > ChunkSize {
		return free[last][:ChunkSize+1], free[:last]
	}
	return make([]byte, ChunkSize+1), free
}

// commit renews the lease of p and writes rows, in one transaction.
func (s *Store) commit(ctx context.Context, p *Prepared, rows []row) error {
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
		for _, r := range rows {
			gone, known, err := Lookup(&tx.ReadTx, r.hash)
			if err != nil {
				return err
			} else if known {
				continue
			}
			if _, err := insert(tx, gone, r.hash, int64(r.size), r.encoding, r.data); err != nil {
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
