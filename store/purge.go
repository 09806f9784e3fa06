package store

import (
	"context"
	"fmt"
	"slices"

	"reasonix/blob"
)

// Purged says what a purge removed, or would remove.
type Purged struct {
	Paths    []Path // that were named and of which something is stored
	Contents int    // whose bytes went
	Bytes    int64  // that they took in the store
	Also     []Path // others that had the same bytes, or a large part of them
	Detached int    // contents that were stored against one of them and were rewritten
	Turns    []TurnRef
	hashes   []blob.Hash
}

// PlanPurge says what Purge would remove.
func (s *Store) PlanPurge(ctx context.Context, paths []Path) (p Purged, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		set, err := tx.purgeSet(paths)
		if err == nil {
			p, err = tx.tellPurge(paths, set)
		}
		return err
	})
	return p, err
}

// Purge drops every content that one of paths, or what lies below it, ever had, wherever else it is
// used, in one transaction; the stat index goes with it, since it takes them for stored. Rows and
// turns stay. The bytes are then in no row any more, and may still lie in free parts of the file until
// Erase. A content that is recorded again afterwards is stored again.
func (s *Store) Purge(ctx context.Context, paths []Path) (p Purged, err error) {
	err = s.Update(ctx, func(tx *WriteTx) error {
		set, err := tx.purgeSet(paths)
		if err != nil {
			return err
		}
		if p, err = tx.tellPurge(paths, set); err != nil {
			return err
		}
		if err := s.blobs.Detach(tx.w, set.dependents...); err != nil {
			return err
		}
		if err := s.blobs.Expire(tx.w, blob.Purged, set.contents...); err != nil {
			return err
		}
		_, err = tx.exec(`DELETE FROM scan_part`)
		return err
	})
	if err != nil {
		return Purged{}, fmt.Errorf("purge: %w", err)
	}
	return p, nil
}

// Erase overwrites what was dropped (db.DB.Erase).
func (s *Store) Erase(ctx context.Context) (clean bool, err error) { return s.db.Erase(ctx) }

// purgeSet is what a purge is about.
type purgeSet struct {
	contents   []blob.ID // in the order in which they can go: what is stored against others first
	in         bits
	dependents []blob.ID // that stay, and are stored against one of them
	stored     int64
}

// purgeSet closes the contents of paths under sharing: their chunks, and what has one of those too.
func (t *Tx) purgeSet(paths []Path) (*purgeSet, error) {
	set := &purgeSet{}
	for _, p := range paths {
		ids, err := collect(t, func(row scanner) (id uint32, err error) { return id, row.Scan(&id) }, `
			WITH named AS (SELECT id FROM path WHERE path = ?1 OR substr(path, 1, length(?1) + 1) = CAST(?1 || '/' AS BLOB))
			SELECT before_blob FROM change WHERE path_id IN named AND before_blob IS NOT NULL
			UNION
			SELECT after_blob FROM change WHERE path_id IN named AND after_blob IS NOT NULL
			UNION
			SELECT from_blob FROM operation_path WHERE path_id IN named AND from_blob IS NOT NULL
			UNION
			SELECT to_blob FROM operation_path WHERE path_id IN named AND to_blob IS NOT NULL`, []byte(p))
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			set.in.add(id)
		}
	}
	return set, t.closePurge(set)
}

func (t *Tx) closePurge(set *purgeSet) error {
	for grown := true; grown; {
		grown = false
		err := t.each(func(of int64, chunk uint32) {
			switch {
			case set.in.has(uint32(of)):
				grown = set.in.add(chunk) || grown
			case set.in.has(chunk):
				grown = set.in.add(uint32(of)) || grown
			}
		}, `SELECT blob_id, chunk_id FROM blob_chunk`)
		if err != nil {
			return err
		}
	}
	all, err := t.storedBlobs()
	if err != nil {
		return err
	}
	for _, b := range byDepth(all) {
		switch {
		case set.in.has(b.id) && b.encoding == blob.Raw && b.stored == 0: // gone already, or no bytes
		case set.in.has(b.id):
			set.contents = append(set.contents, blob.ID(b.id))
			set.stored += b.stored
		case b.base != 0 && set.in.has(b.base):
			set.dependents = append(set.dependents, blob.ID(b.id))
		}
	}
	return nil
}

func (t *Tx) tellPurge(paths []Path, set *purgeSet) (Purged, error) {
	p := Purged{Contents: len(set.contents), Bytes: set.stored, Detached: len(set.dependents)}
	for _, id := range set.contents {
		h, err := blob.HashOf(t.r, id)
		if err != nil {
			return p, err
		}
		p.hashes = append(p.hashes, h)
		named, err := collect(t, func(row scanner) (Path, error) {
			var b []byte
			err := row.Scan(&b)
			return Path(b), err
		}, `
			SELECT path FROM path WHERE id IN (
			  SELECT path_id FROM change WHERE before_blob = ?1 OR after_blob = ?1
			  UNION
			  SELECT path_id FROM operation_path WHERE from_blob = ?1 OR to_blob = ?1)`, id)
		if err != nil {
			return p, err
		}
		for _, n := range named {
			if slices.ContainsFunc(paths, func(q Path) bool { return n == q || n.Below(q) }) {
				p.Paths = append(p.Paths, n)
			} else {
				p.Also = append(p.Also, n)
			}
		}
	}
	for _, list := range []*[]Path{&p.Paths, &p.Also} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	tr, err := t.tree()
	if err != nil {
		return p, err
	}
	for i := range tr.stays {
		tr.stays[i] = true
	}
	p.Turns, err = t.turnRefs(tr.losing(set.in))
	return p, err
}

// Hashes name the contents.
func (p Purged) Hashes() []blob.Hash { return p.hashes }

// MessageBlobs are the contents that messages lie in, and their chunks.
func (t *Tx) MessageBlobs() (map[blob.Hash]bool, error) {
	hashes, err := collect(t, func(row scanner) (h blob.Hash, err error) {
		var b []byte
		if err = row.Scan(&b); err == nil {
			h, err = blob.FromBytes(b)
		}
		return h, err
	}, `
		WITH large AS (
		  SELECT blob_id AS id FROM message WHERE blob_id IS NOT NULL
		  UNION
		  SELECT blob_id FROM compaction_message WHERE blob_id IS NOT NULL)
		SELECT hash FROM blob WHERE id IN (SELECT id FROM large UNION SELECT chunk_id FROM blob_chunk WHERE blob_id IN (SELECT id FROM large))`)
	if err != nil {
		return nil, err
	}
	all := make(map[blob.Hash]bool, len(hashes))
	for _, h := range hashes {
		all[h] = true
	}
	return all, nil
}
