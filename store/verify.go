package store

import (
	"context"
	"errors"
	"fmt"

	"reasonix/blob"
)

// Problem is something in a store that contradicts the model, or content that is damaged.
type Problem struct {
	Code   string // one of the Problem… constants
	Detail string
	Path   Path      // a path that is affected; "" when none
	Blob   blob.Hash // damaged content; zero when none
	Turn   int       // a turn that needs it; -1 when none
}

// The codes of problems. They are part of the documented interface.
const (
	ProblemSQLite  = "sqlite"       // SQLite's own check
	ProblemForeign = "foreign_key"  // a row refers to one that is not there
	ProblemTree    = "tree"         // segments, depths, turns or message counts do not add up
	ProblemChain   = "chain"        // a row's before is not what the line knew
	ProblemSession = "session"      // a session's pointers contradict the tree
	ProblemMessage = "message"      // messages are damaged, are missing, or belong to no node
	ProblemBlob    = "damaged_blob" // content that does not have its hash
	ProblemOp      = "operation"    // an operation waits for recovery, or contradicts itself
)

// treeChecks are queries whose every row is a problem: its text, and where it has one a path.
var treeChecks = []struct{ code, query string }{
	{ProblemTree, `
		SELECT 'node ' || n.id || ' is not one below its parent', ''
		FROM node n JOIN node p ON p.id = n.parent_id
		WHERE n.depth <> p.depth + 1 OR n.id <= p.id
		ORDER BY n.id`},
	{ProblemTree, `
		SELECT 'node ' || n.id || ' does not begin or continue its segment', ''
		FROM node n LEFT JOIN node p ON p.id = n.parent_id
		WHERE n.segment <> n.id AND (p.id IS NULL OR n.segment <> p.segment OR n.kind = 1)
		ORDER BY n.id`},
	{ProblemTree, `
		SELECT 'node ' || n.id || ' has turn ' || n.turn || ' below turn ' || p.turn, ''
		FROM node n JOIN node p ON p.id = n.parent_id
		WHERE n.kind <> 1 AND n.turn <> p.turn + (n.kind = 2)
		ORDER BY n.id`},
	{ProblemTree, `
		SELECT 'node ' || n.id || ' begins at message ' || n.msg_start || ' of ' || (p.msg_start + p.msg_count), ''
		FROM node n JOIN node p ON p.id = n.parent_id
		WHERE n.kind <> 1 AND n.msg_start <> p.msg_start + p.msg_count
		ORDER BY n.id`},
	{ProblemTree, `
		SELECT 'turn node ' || n.id || ' has no turn', ''
		FROM node n LEFT JOIN turn t ON t.node_id = n.id
		WHERE (n.kind = 2) <> (t.node_id IS NOT NULL)
		ORDER BY n.id`},
	{ProblemMessage, `
		SELECT 'node ' || n.id || ' counts ' || n.msg_count || ' messages and has ' || count(m.id), ''
		FROM node n LEFT JOIN message m ON m.id >= n.id << 32 AND m.id < (n.id + 1) << 32
		GROUP BY n.id
		HAVING n.msg_count <> count(m.id) OR coalesce(max(m.id & 4294967295), -1) <> n.msg_count - 1
		ORDER BY n.id`},
	{ProblemMessage, `
		SELECT 'message ' || m.id || ' belongs to no node', ''
		FROM message m LEFT JOIN node n ON n.id = m.id >> 32
		WHERE n.id IS NULL
		ORDER BY m.id`},
	{ProblemSession, `
		SELECT 'session ' || s.sid || ' has a node open that is not its head', ''
		FROM session s
		WHERE s.open_id IS NOT NULL AND s.open_id <> s.head_id
		ORDER BY s.id`},
	{ProblemSession, `
		SELECT 'session ' || s.sid || ' has a node open that is sealed by a child', ''
		FROM session s
		WHERE s.open_id IS NOT NULL AND EXISTS (SELECT 1 FROM node n WHERE n.parent_id = s.open_id)
		ORDER BY s.id`},
	{ProblemSession, `
		SELECT 'session ' || s.sid || ' has a turn open that is marked as ended, or the reverse', ''
		FROM session s LEFT JOIN turn t ON t.node_id = s.open_turn_id
		WHERE s.open_turn_id IS NOT NULL AND t.status IS NOT 1
		UNION ALL
		SELECT 'turn of node ' || t.node_id || ' is open in no session', ''
		FROM turn t
		WHERE t.status = 1 AND NOT EXISTS (SELECT 1 FROM session s WHERE s.open_turn_id = t.node_id)
		ORDER BY 1`},
	{ProblemOp, `
		SELECT 'operation ' || o.id || ' was interrupted and waits for recovery', ''
		FROM operation o
		WHERE o.state = 1
		ORDER BY o.id`},
	{ProblemOp, `
		SELECT 'operation ' || o.id || ' is applied and leads nowhere', ''
		FROM operation o
		WHERE o.state = 2 AND o.head_to IS NULL
		ORDER BY o.id`},
	{ProblemBlob, `
		SELECT 'content ' || lower(hex(b.hash)) || ' has no bytes, and was never dropped', ''
		FROM blob b LEFT JOIN blob_expired e ON e.blob_id = b.id
		WHERE b.encoding = 0 AND length(b.data) = 0 AND b.size > 0 AND e.blob_id IS NULL
		UNION ALL
		SELECT 'content ' || lower(hex(b.hash)) || ' counts as dropped, and has bytes', ''
		FROM blob_expired e JOIN blob b ON b.id = e.blob_id
		WHERE b.encoding <> 0 OR length(b.data) > 0 OR b.size = 0
		ORDER BY 1`},
	// Within a segment each row's before is the after of the path's row before it (looking).
	{ProblemChain, `
		SELECT 'node depth ' || c.depth || ' of segment ' || c.segment || ' does not continue what was known', CAST(p.path AS TEXT)
		FROM (
		  SELECT segment, depth, seq, path_id, before_kind, before_mode, before_blob,
		         lag(after_kind) OVER w AS k, lag(after_mode) OVER w AS m, lag(after_blob) OVER w AS b
		  FROM change
		  WINDOW w AS (PARTITION BY path_id, segment ORDER BY depth, seq)
		) c
		JOIN path p ON p.id = c.path_id
		WHERE c.k IS NOT NULL AND (c.before_kind <> c.k OR c.before_mode <> c.m OR c.before_blob IS NOT c.b)
		ORDER BY c.segment, c.depth, c.seq`},
}

// Verify checks every invariant that the store alone can show and, when deep, every blob; it
// changes nothing and goes on after a problem. progress, which may be nil, is told of blobs
// done and of all. An error means that the check could not be made.
func (s *Store) Verify(ctx context.Context, deep bool, progress func(done, total int64)) ([]Problem, error) {
	var all []Problem
	err := s.View(ctx, func(tx *Tx) error {
		for _, step := range []func() ([]Problem, error){tx.checkSQLite, tx.checkForeignKeys, tx.checkTree} {
			found, err := step()
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	if err != nil || !deep {
		return all, err
	}
	err = s.View(ctx, func(tx *Tx) error {
		found, err := tx.checkMessages()
		all = append(all, found...)
		return err
	})
	if err != nil {
		return all, err
	}
	damaged, err := s.checkBlobs(ctx, progress)
	return append(all, damaged...), err
}

// checkMessages compares the messages that lie in rows with their sums.
func (t *Tx) checkMessages() ([]Problem, error) {
	rows, err := t.r.Query(`
		SELECT n.turn, m.id, m.json, m.sum
		FROM message m
		JOIN node n ON n.id = m.id >> 32
		WHERE m.json IS NOT NULL
		UNION ALL
		SELECT n.turn, m.id, m.json, m.sum
		FROM compaction_message m
		JOIN compaction c ON c.id = m.id >> 32
		JOIN node n ON n.id = c.node_id
		WHERE m.json IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Problem
	for rows.Next() && len(all) < 100 {
		var (
			turn    int
			id, sum int64
			text    []byte
		)
		if err := rows.Scan(&turn, &id, &text, &sum); err != nil {
			return nil, err
		}
		if sumOf(text) != sum {
			all = append(all, Problem{Code: ProblemMessage, Detail: fmt.Sprintf("message %d of step %d is damaged", id&0xffffffff, id>>32), Turn: turn})
		}
	}
	return all, rows.Err()
}

func (t *Tx) checkSQLite() ([]Problem, error) {
	var lines []string
	if err := t.r.Select(&lines, `PRAGMA integrity_check(20)`); err != nil {
		return nil, err
	}
	var all []Problem
	for _, l := range lines {
		if l != "ok" {
			all = append(all, Problem{Code: ProblemSQLite, Detail: l, Turn: -1})
		}
	}
	return all, nil
}

func (t *Tx) checkForeignKeys() ([]Problem, error) {
	rows, err := t.r.Query(`PRAGMA foreign_key_check`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Problem
	for rows.Next() && len(all) < 20 {
		var (
			table, parent string
			row, key      any
		)
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return nil, err
		}
		all = append(all, Problem{Code: ProblemForeign, Detail: fmt.Sprintf("a row of %s refers to a missing row of %s", table, parent), Turn: -1})
	}
	return all, rows.Err()
}

func (t *Tx) checkTree() ([]Problem, error) {
	var all []Problem
	for _, c := range treeChecks {
		rows, err := t.r.Query(c.query)
		if err != nil {
			return nil, err
		}
		for rows.Next() && len(all) < 100 {
			var detail, path string
			if err := rows.Scan(&detail, &path); err != nil {
				return nil, closing(rows, err)
			}
			all = append(all, Problem{Code: c.code, Detail: detail, Path: Path(path), Turn: -1})
		}
		if err := closing(rows, rows.Err()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) checkBlobs(ctx context.Context, progress func(done, total int64)) ([]Problem, error) {
	var hashes []blob.Hash
	for info, err := range s.blobs.All(ctx) {
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, info.Hash)
	}
	var all []Problem
	for i, h := range hashes {
		err := s.blobs.Verify(ctx, h)
		var damage *blob.DamagedError
		switch {
		case err == nil, errors.Is(err, blob.ErrExpired):
		case errors.As(err, &damage), errors.Is(err, blob.ErrNotFound):
			// Listed and not found: the table and its index of hashes disagree.
			needed, err := s.neededBy(ctx, h, err)
			if err != nil {
				return nil, err
			}
			all = append(all, needed...)
		default:
			return nil, err
		}
		if progress != nil {
			progress(int64(i+1), int64(len(hashes)))
		}
	}
	return all, nil
}

// neededBy names the paths and turns that a damaged blob takes with it.
func (s *Store) neededBy(ctx context.Context, h blob.Hash, damage error) ([]Problem, error) {
	var all []Problem
	err := s.View(ctx, func(tx *Tx) error {
		rows, err := tx.r.Query(`
			SELECT DISTINCT p.path, n.turn
			FROM blob b
			JOIN change c ON c.before_blob = b.id OR c.after_blob = b.id
			JOIN path p ON p.id = c.path_id
			JOIN node n ON n.segment = c.segment AND n.depth = c.depth
			WHERE b.hash = ?
			ORDER BY n.turn, p.path
			LIMIT 50`, h[:])
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var (
				path []byte
				turn int
			)
			if err := rows.Scan(&path, &turn); err != nil {
				return err
			}
			all = append(all, Problem{Code: ProblemBlob, Detail: damage.Error(), Path: Path(path), Blob: h, Turn: turn})
		}
		return rows.Err()
	})
	if err == nil && len(all) == 0 {
		all = append(all, Problem{Code: ProblemBlob, Detail: damage.Error(), Blob: h, Turn: -1})
	}
	return all, err
}
