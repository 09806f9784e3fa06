package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

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
	maxHeld = 3 * ChunkSize

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
	piece       // of a content of up to ChunkSize; of a longer one only hash and size
	held  int64 // bytes counted by the Store

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
	return s.prepareSmall(ctx, b, Hash{})
}

// Prepare reads r to its end, hashes and compresses, outside any transaction. A content of at
// most ChunkSize stays in memory, unless too much is held there already: then it is committed
// under a lease. Of a longer one, chunks are committed in transactions of about 4 MiB under one, so that memory is bounded whatever the length; after an error or a
// crash they are swept once the lease has expired. Errors of r are returned wrapped.
func (s *Store) Prepare(ctx context.Context, r io.Reader) (*Prepared, error) {
	return s.PrepareAgainst(ctx, r, Hash{})
}

// PrepareAgainst is Prepare of a content that is likely to be much like that of base, an earlier
// version say: where it is, only the difference is stored. base is a hint and may be zero, or
// that of a content that is not there, nor whole, or goes before Bind.
func (s *Store) PrepareAgainst(ctx context.Context, r io.Reader, base Hash) (*Prepared, error) {
	buf, err := readFirst(r)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	if len(buf) <= ChunkSize {
		p, err := s.prepareSmall(ctx, buf, base)
		if err == nil {
			s.recent.add(p.hash, buf)
		}
		return p, err
	}
	select {
	case s.long <- struct{}{}:
		defer func() { <-s.long }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p := &Prepared{}
	if err := s.prepareChunks(ctx, p, r, buf, base); err != nil {
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

func (s *Store) prepareSmall(ctx context.Context, raw []byte, base Hash) (*Prepared, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Prepared{piece: piece{hash: Sum(raw), size: int64(len(raw)), data: raw}}
	if p.hash == base && s.hold(p) {
		return p, nil // it has not changed, so it is there
	}
	known, err := s.shrink(ctx, p, base)
	if err != nil || s.hold(p) {
		return p, err
	}
	if len(raw) < lookFirst {
		p.pack()
		return p, nil
	}
	if !known {
		if err := s.commit(ctx, p, []piece{p.piece}); err != nil {
			return nil, err
		}
	}
	p.data, p.delta = nil, nil
	return p, nil
}

// shrink makes the form in which p will be stored, unless the store has it already.
func (s *Store) shrink(ctx context.Context, p *Prepared, base Hash) (known bool, err error) {
	if !base.IsZero() {
		if known, err = s.against(ctx, &p.piece, base); known || p.delta != nil || err != nil {
			return known, err
		}
	} else if len(p.data) >= lookFirst {
		if known, err = s.has(ctx, p.hash); known || err != nil {
			return known, err
		}
	}
	p.pack()
	return false, nil
}

// hold counts what p keeps in memory; it reports false when that is too much. Short contents that
// are compressed do not count.
func (s *Store) hold(p *Prepared) bool {
	if p.packed && p.size < lookFirst {
		return true
	}
	n := p.memory()
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
