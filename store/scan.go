package store

import "fmt"

// ScanIndex is the stored stat index: parts that internal/workspace made and understands, in
// order, and the newest path that they know of. It is a cache (docs/design.md).
type ScanIndex struct {
	Parts [][]byte
	mark  int64
}

// ScanIndex reads the stat index; one without parts when nothing was scanned yet.
func (t *Tx) ScanIndex() (ScanIndex, error) {
	rows, err := t.r.Query(`SELECT path_id, data FROM scan_part ORDER BY id`)
	if err != nil {
		return ScanIndex{}, err
	}
	defer rows.Close()
	var x ScanIndex
	for rows.Next() {
		var part []byte
		if err := rows.Scan(&x.mark, &part); err != nil {
			return ScanIndex{}, err
		}
		x.Parts = append(x.Parts, part)
	}
	return x, rows.Err()
}

// Scanned reports whether the workspace was ever scanned.
func (t *Tx) Scanned() (found bool, err error) {
	err = t.r.Get(&found, `SELECT EXISTS (SELECT 1 FROM scan_part)`)
	return found, err
}

// ScanMark stands for the paths that the history knows at one moment.
type ScanMark int64

// PathsSince are the paths that the history has come to know since x was made, and a mark for
// the next one.
func (t *Tx) PathsSince(x ScanIndex) ([]Path, ScanMark, error) {
	rows, err := t.r.Query(`SELECT id, path FROM path WHERE id > ? ORDER BY id`, x.mark)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	var all []Path
	mark := x.mark
	for rows.Next() {
		var p []byte
		if err := rows.Scan(&mark, &p); err != nil {
			return nil, 0, err
		}
		all = append(all, Path(p))
	}
	return all, ScanMark(mark), rows.Err()
}

// AddScanPart adds the next part of the stat index; full drops all earlier ones.
func (w *WriteTx) AddScanPart(part []byte, full bool, mark ScanMark) error {
	if full {
		if _, err := w.exec(`DELETE FROM scan_part`); err != nil {
			return err
		}
	}
	if _, err := w.exec(`INSERT INTO scan_part (path_id, data) VALUES (?, ?)`, int64(mark), part); err != nil {
		return fmt.Errorf("keep the stat index: %w", err)
	}
	return nil
}

// Running is a tool call of a session that has not ended, or whose effects no scan has reached.
type Running struct {
	Call
	Session SessionID
}

// Running are the calls of all sessions, oldest first.
func (t *Tx) Running() ([]Running, error) {
	var ids []SessionID
	err := t.r.Select(&ids, `
		SELECT s.sid
		FROM session s
		WHERE s.deleted_ms IS NULL AND s.id IN (SELECT session_id FROM call)
		ORDER BY s.id`)
	if err != nil {
		return nil, err
	}
	var all []Running
	for _, id := range ids {
		calls, err := t.Calls(id)
		if err != nil {
			return nil, err
		}
		for _, c := range calls {
			all = append(all, Running{Call: c, Session: id})
		}
	}
	return all, nil
}

// LeaveUnscanned notes that a command has ended before a scan could look at all that it did.
func (w *WriteTx) LeaveUnscanned(c Call) error {
	_, err := w.exec(`UPDATE call SET ended = 1 WHERE id = ?`, c.id)
	return err
}

// EndUnscanned closes the calls of commands that had ended before a scan that has now looked at
// everything.
func (w *WriteTx) EndUnscanned() error {
	_, err := w.exec(`DELETE FROM call WHERE ended = 1`)
	return err
}

// Overlapping are the paths of the nodes of from's line that to's line does not have which
// commands of several sessions may have written at once.
func (t *Tx) Overlapping(from, to NodeID) (map[Path]bool, error) {
	left, _, _, err := t.parted(from, to)
	if err != nil {
		return nil, err
	}
	found := map[Path]bool{}
	for _, s := range left {
		var paths [][]byte
		err := t.r.Select(&paths, `
			SELECT DISTINCT g.path
			FROM gap g
			CROSS JOIN node n ON n.id = g.node_id
			WHERE g.reason = 'overlapping_exec' AND n.segment = ? AND n.depth BETWEEN ? AND ?`, s.segment, s.low, s.high)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			found[Path(p)] = true
		}
	}
	return found, nil
}
