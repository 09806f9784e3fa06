package blob

import (
	"context"
	"errors"
	"fmt"

	"reasonix/db"
)

const (
	// nearVersions is how many versions before it a content is compared with.
	nearVersions = 4

	// maxPlan bounds the frames of a plan, in bytes: longer histories are taken in parts.
	maxPlan = 16 << 20
)

// anchors are depths: the last version that lies no deeper than one of them is another base to try.
// Without them a long history would need a whole frame after each maxDepth versions.
var anchors = [...]int{4, 8, 16}

// Repacker stores contents that are there already in less space: with more effort than a capture has
// time for, and the other way round, old versions against newer ones, which are the ones that
// are read. It holds a few contents in memory, and is for one goroutine; others may read and
// write meanwhile, and a crash at any moment leaves every content as it was or as it was to be.
type Repacker struct {
	s    *Store
	done map[Hash]bool
}

// Repacker returns one, which treats each content once.
func (s *Store) Repacker() *Repacker { return &Repacker{s: s, done: map[Hash]bool{}} }

// Repacked says what a Repacker did.
type Repacked struct {
	Contents int   // that were stored anew
	Saved    int64 // bytes
}

// plan is how some versions of one thing are going to be stored.
type plan struct {
	all    []planned
	before int64
	after  int64
}

type planned struct {
	hash Hash
	base Hash // zero for none
	enc  Encoding
	data []byte
}

// placed is a version that later ones can be stored against.
type placed struct {
	hash  Hash
	raw   []byte
	depth int
}

// Versions stores contents anew that are versions of one thing, newest first, when that takes less
// space. Those that are not there, damaged, dropped, or of more than ChunkSize stay as they are.
func (r *Repacker) Versions(ctx context.Context, versions []Hash) (sum Repacked, err error) {
	var (
		near []placed
		far  [len(anchors)]placed
		p    plan
	)
	flush := func() error {
		done, err := r.carryOut(ctx, p)
		sum.Contents, sum.Saved = sum.Contents+done.Contents, sum.Saved+done.Saved
		p = plan{}
		return err
	}
	for _, h := range versions {
		raw, length, depth, err := r.read(ctx, h)
		if err != nil {
			return sum, err
		}
		if len(raw) < minFrame {
			continue
		}
		now := placed{h, raw, depth}
		if !r.done[h] {
			r.done[h] = true
			one, on := choose(now, near, far[:])
			now.depth = on
			p.all = append(p.all, one)
			p.before += length
			p.after += int64(len(one.data))
		}
		if near = append(near, now); len(near) > nearVersions {
			near = near[1:]
		}
		for i, most := range anchors {
			if now.depth <= most {
				far[i] = now
			}
		}
		if p.after > maxPlan {
			if err := flush(); err != nil {
				return sum, err
			}
			near, far = nil, [len(anchors)]placed{}
		}
	}
	return sum, flush()
}

// read returns a content and how it is stored. nil is one that is left alone.
func (r *Repacker) read(ctx context.Context, h Hash) (raw []byte, length int64, depth int, err error) {
	err = r.s.db.View(ctx, func(tx *db.ReadTx) error {
		row, err := load(tx, h)
		if err == nil && Encoding(row.Encoding) != Chunked {
			length = row.Length
			raw, err = content(tx, h, row)
		}
		if err != nil {
			return err
		}
		return tx.Get(&depth, `SELECT depth FROM blob WHERE hash = ?`, h[:])
	})
	if damage := (*DamagedError)(nil); errors.As(err, &damage) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExpired) {
		return nil, 0, 0, nil
	}
	if err != nil {
		err = fmt.Errorf("repack content %s: %w", h.Short(), err)
	}
	return raw, length, depth, err
}

// choose finds the shortest form of a content, and how deep it lies then.
func choose(now placed, near, far []placed) (one planned, depth int) {
	one = planned{hash: now.hash}
	most := depthFor(int64(len(now.raw)))
	limit := len(now.raw) / deltaPart
	var base placed
	tried := map[Hash]bool{now.hash: true, {}: true}
	for _, list := range [][]placed{near, far} {
		for i := len(list) - 1; i >= 0; i-- {
			c := list[i]
			if tried[c.hash] || c.depth >= most {
				continue
			}
			tried[c.hash] = true
			if d := encodeDelta(quickDeltas, now.raw, c.raw, limit); d != nil {
				one.enc, one.base, one.data, base = ZstdDelta, c.hash, d, c
				limit = len(d) - 1
			}
		}
	}
	if one.base.IsZero() {
		one.enc, one.data = encodeWith(bestFrames, now.raw)
		return one, 0
	}
	if d := encodeDelta(bestDeltas, now.raw, base.raw, limit); d != nil {
		one.data = d
	}
	return one, base.depth + 1
}

// carryOut does what a plan says, if it saves anything.
func (r *Repacker) carryOut(ctx context.Context, p plan) (sum Repacked, err error) {
	if p.after >= p.before {
		return sum, nil
	}
	for len(p.all) > 0 {
		n, bytes := 0, 0
		for n < len(p.all) && n < 256 && bytes < batchSize {
			bytes += len(p.all[n].data)
			n++
		}
		var done Repacked
		err := r.s.db.Update(ctx, func(tx *db.WriteTx) error {
			done = Repacked{}
			for _, one := range p.all[:n] {
				saved, ok, err := one.store(tx)
				if err != nil {
					return err
				}
				if ok {
					done.Contents++
					done.Saved += saved
				}
			}
			return nil
		})
		if err != nil {
			return sum, fmt.Errorf("repack: %w", err)
		}
		sum.Contents, sum.Saved = sum.Contents+done.Contents, sum.Saved+done.Saved
		p.all = p.all[n:]
	}
	return sum, nil
}

// store gives a content its new form, unless it or its base went meanwhile or was stored otherwise so
// that the form would not do: deltas must not go in a circle, nor lie too deep.
func (one planned) store(tx *db.WriteTx) (saved int64, ok bool, err error) {
	id, there, err := Lookup(&tx.ReadTx, one.hash)
	if err != nil || !there {
		return 0, false, err
	}
	f := form{encoding: one.enc, data: one.data}
	if one.enc == ZstdDelta {
		base, depth, usable, err := lookupBase(&tx.ReadTx, one.base, 1)
		if err != nil || !usable {
			return 0, false, err
		}
		if on, err := hangsOn(tx, base, id); on || err != nil {
			return 0, false, err
		}
		f.base, f.depth = base, depth+1
	}
	var was struct {
		Length   int64 `db:"length"`
		Encoding int64 `db:"encoding"`
	}
	if err := tx.Get(&was, `SELECT length(data) AS length, encoding FROM blob WHERE id = ?`, id); err != nil {
		return 0, false, err
	}
	if Encoding(was.Encoding) == Chunked {
		return 0, false, nil
	}
	if ok, err := sink(tx, id, f.depth); !ok || err != nil {
		return 0, false, err
	}
	if err := f.update(tx, id); err != nil {
		return 0, false, fmt.Errorf("store content %s anew: %w", one.hash.Short(), err)
	}
	return was.Length - int64(len(one.data)), true, nil
}

// hangsOn reports whether row id is row on, or is stored against it, directly or not.
func hangsOn(tx *db.WriteTx, id, on ID) (bool, error) {
	for range maxDepth + 2 {
		if id == on {
			return true, nil
		}
		var base *ID
		if err := tx.Get(&base, `SELECT base_id FROM blob WHERE id = ?`, id); err != nil {
			return false, fmt.Errorf("follow the bases of row %d: %w", id, err)
		}
		if base == nil {
			return false, nil
		}
		id = *base
	}
	return true, nil
}

// below are the rows that hang on a row, with how many deltas lie between.
const below = `
	WITH RECURSIVE below (id, level) AS (
	  SELECT ?1, 0
	  UNION ALL
	  SELECT b.id, below.level + 1
	  FROM below
	  JOIN blob b ON b.base_id = below.id
	  WHERE below.level <= 32
	) `

// sink sets the depths of what hangs on row id for when that lies at depth. ok is false, and nothing
// is set, when something would lie too deep.
func sink(tx *db.WriteTx, id ID, depth int) (ok bool, err error) {
	var level int
	if err := tx.Get(&level, below+`SELECT max(level) FROM below`, id); err != nil {
		return false, fmt.Errorf("follow what hangs on row %d: %w", id, err)
	}
	if depth+level > maxDepth {
		return false, nil
	}
	if level == 0 {
		return true, nil
	}
	_, err = tx.Exec(below+`
		UPDATE blob
		SET depth = ?2 + (SELECT max(level) FROM below WHERE below.id = blob.id)
		WHERE id IN (SELECT id FROM below WHERE level > 0)`, id, depth)
	return err == nil, err
}
