package store

import (
	"database/sql"
	"errors"
	"fmt"

	"reasonix/blob"
)

// lastBlob finds the newest row of a path that has a content, among the last few of any line.
const lastBlob = `
	SELECT b.hash
	FROM (
	  SELECT coalesce(c.after_blob, c.before_blob) AS id, c.segment, c.depth, c.seq
	  FROM path p
	  JOIN change c ON c.path_id = p.id
	  WHERE p.path = ?
	  ORDER BY c.segment DESC, c.depth DESC, c.seq DESC
	  LIMIT 4
	) AS last
	JOIN blob b ON b.id = last.id
	ORDER BY last.segment DESC, last.depth DESC, last.seq DESC
	LIMIT 1`

// LastBlobs are contents that paths had lately, on whichever line, to store what they have now
// against (blob.PrepareAgainst); zero for a path of which none is known.
func (t *Tx) LastBlobs(paths []Path) ([]blob.Hash, error) {
	all := make([]blob.Hash, len(paths))
	for i, p := range paths {
		var b []byte
		err := t.r.Get(&b, lastBlob, []byte(p))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up the last content of %q: %w", p, err)
		}
		if h, err := blob.FromBytes(b); err == nil { // a damaged row is no use
			all[i] = h
		}
	}
	return all, nil
}

// lastLarge finds the newest large message of a role among the last nodes of a session.
const lastLarge = `
	SELECT b.hash
	FROM session s
	JOIN node h ON h.id = s.head_id
	JOIN node n ON n.segment = h.segment AND n.depth BETWEEN h.depth - 31 AND h.depth AND n.msg_count > 0
	JOIN message m ON m.id >= n.id << 32 AND m.id < (n.id + 1) << 32
	JOIN blob b ON b.id = m.blob_id
	WHERE s.sid = ? AND m.role = ?
	ORDER BY n.depth DESC, m.id DESC
	LIMIT 1`

// lastLarge is the content of the last large message of a role, zero for none.
func (t *Tx) lastLarge(id SessionID, role string) (h blob.Hash, err error) {
	var b []byte
	err = t.r.Get(&b, lastLarge, id, role)
	if errors.Is(err, sql.ErrNoRows) {
		return blob.Hash{}, nil
	}
	if err != nil {
		return blob.Hash{}, fmt.Errorf("look up the last large message: %w", err)
	}
	if h, err = blob.FromBytes(b); err != nil {
		return blob.Hash{}, nil // a damaged row is no use
	}
	return h, nil
}
