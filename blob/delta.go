package blob

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"reasonix/db"
)

// MaxUnbound is the length, in bytes, up to which a content that was prepared, and is not bound yet,
// can be the base of the next one.
const MaxUnbound = 256 << 10

const (
	// A delta is worth it up to this part of the content: what hangs on another row costs more to
	// read, and keeps that row.
	deltaPart = 4

	// Under this part, no frame that stands by itself would be smaller, and none is made to compare.
	surePart = 16

	// Deltas lie on each other at most so many times that reading one decodes about this many bytes,
	// and never more than maxDepth times; minDepth always.
	maxChain = 8 * ChunkSize
	minDepth = 8

	// maxRecent bounds the contents that are kept in memory as bases of what comes next, in bytes.
	maxRecent = 2 * ChunkSize
)

// depthFor is how many deltas may lie below a content of size bytes, counting its own.
func depthFor(size int64) int {
	return int(min(maxDepth, max(minDepth, maxChain/max(size, 1))))
}

// against looks for p in the store; when it is not there it makes its delta against base, where
// that is clearly smaller. Nothing about base is an error but the surroundings.
func (s *Store) against(ctx context.Context, p *piece, base Hash) (known bool, err error) {
	if p.size > smallWindow/2 {
		select {
		case s.wide <- struct{}{}:
			defer func() { <-s.wide }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	content := s.recent.get(base)
	err = s.db.View(ctx, func(tx *db.ReadTx) error {
		if _, known, err = Lookup(tx, p.hash); known || err != nil {
			return err
		}
		id, _, usable, err := lookupBase(tx, base, p.size)
		switch {
		case err != nil:
			return err
		case id == 0: // it may be bound just before p
		case !usable:
			content = nil
		case content == nil:
			content, err = readBase(tx, base)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read what content %s is like: %w", p.hash.Short(), err)
	}
	if content != nil && !known {
		p.delta, p.base = deltaOf(p, content), base
	}
	return known, nil
}

// readBase reads a content to store another against. One that is damaged, or that hangs on so many
// others that no more may hang on it, is nil.
func readBase(tx *db.ReadTx, h Hash) ([]byte, error) {
	r, err := load(tx, h)
	if err == nil {
		var deltas []stored
		if deltas, _, err = chain(tx, h, r); err == nil && len(deltas) < maxDepth {
			var b []byte
			if b, err = content(tx, h, r); err == nil {
				return b, nil
			}
		}
	}
	if damage := (*DamagedError)(nil); errors.As(err, &damage) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExpired) {
		return nil, nil
	}
	return nil, err
}

// deltaOf is the delta of p, which is not packed, against the content base, or nil.
func deltaOf(p *piece, base []byte) []byte {
	d := encodeDelta(quickDeltas, p.data, base, len(p.data)/deltaPart)
	if len(d) > len(p.data)/surePart {
		if p.pack(); len(d) >= len(p.data) {
			return nil
		}
	}
	return d
}

// recent keeps the last contents that were prepared: the next version of each is likely to be stored against it, and reading it from the store can mean decoding many. Contents
// are shared, not copied: who adds one does not change it.
type recent struct {
	mu    sync.Mutex // guards what follows
	all   map[Hash][]byte
	order []Hash // oldest first
	bytes int
}

// get returns nil when h is not there.
func (r *recent) get(h Hash) []byte {
	r.mu.Lock()
	b := r.all[h]
	r.mu.Unlock()
	if b != nil && Sum(b) != h { // a wrong base would be the end of what is stored against it
		return nil
	}
	return b
}

func (r *recent) add(h Hash, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[h]; ok || len(b) == 0 || len(b) > MaxUnbound {
		return
	}
	if r.all == nil {
		r.all = map[Hash][]byte{}
	}
	r.all[h] = b
	r.order = append(r.order, h)
	for r.bytes += cap(b); r.bytes > maxRecent; r.order = r.order[1:] {
		r.bytes -= cap(r.all[r.order[0]])
		delete(r.all, r.order[0])
	}
}
