package store

import (
	"context"
	"fmt"

	"reasonix/blob"
)

// versionsOf are the contents of a path, newest first, as far as rows tell.
const versionsOf = `
	SELECT a.hash, b.hash
	FROM change c
	LEFT JOIN blob a ON a.id = c.after_blob
	LEFT JOIN blob b ON b.id = c.before_blob
	WHERE c.path_id = ?
	ORDER BY c.segment DESC, c.depth DESC, c.seq DESC`

// Repack stores the versions of each path, and the large messages of each role, anew in less space
// (blob.Repacker). What can be read, and what is recorded, does not change. Others may work
// meanwhile; a kill leaves what was done by then. progress, if not nil, is told what is done and what
// there is, in paths.
func (s *Store) Repack(ctx context.Context, progress func(done, total int64)) (sum blob.Repacked, err error) {
	var paths []int64
	var roles []string
	err = s.View(ctx, func(tx *Tx) error {
		if err := tx.r.Select(&paths, `SELECT id FROM path ORDER BY id`); err != nil {
			return err
		}
		return tx.r.Select(&roles, `SELECT DISTINCT role FROM message WHERE blob_id IS NOT NULL ORDER BY role`)
	})
	if err != nil {
		return sum, fmt.Errorf("repack: %w", err)
	}
	packer := s.blobs.Repacker()
	total := int64(len(paths) + len(roles))
	for i := range total {
		var versions []blob.Hash
		err := s.View(ctx, func(tx *Tx) (err error) {
			if int(i) < len(paths) {
				versions, err = tx.hashes(versionsOf, paths[i])
			} else {
				versions, err = tx.hashes(`
					SELECT b.hash, NULL
					FROM message m
					JOIN blob b ON b.id = m.blob_id
					WHERE m.blob_id IS NOT NULL AND m.role = ?
					ORDER BY m.id DESC`, roles[int(i)-len(paths)])
			}
			return err
		})
		if err != nil {
			return sum, fmt.Errorf("repack: %w", err)
		}
		done, err := packer.Versions(ctx, versions)
		sum.Contents, sum.Saved = sum.Contents+done.Contents, sum.Saved+done.Saved
		if err != nil {
			return sum, err
		}
		if progress != nil {
			progress(i+1, total)
		}
	}
	return sum, nil
}

// hashes are the names in two columns, as they come, each once.
func (t *Tx) hashes(query string, args ...any) (all []blob.Hash, err error) {
	rows, err := t.r.Query(query, args...)
	if err != nil {
		return nil, err
	}
	seen := map[blob.Hash]bool{}
	for rows.Next() {
		var pair [2][]byte
		if err := rows.Scan(&pair[0], &pair[1]); err != nil {
			return nil, closing(rows, err)
		}
		for _, b := range pair {
			if h, err := blob.FromBytes(b); err == nil && !seen[h] { // a damaged row is left alone
				seen[h] = true
				all = append(all, h)
			}
		}
	}
	return all, closing(rows, rows.Err())
}
