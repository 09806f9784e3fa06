package store

import (
	"fmt"
	"slices"
	"strings"
)

// Move is what a transition between two nodes asks of one path.
type Move struct {
	Path   Path
	Expect State  // what the line that is left says of it
	Want   State  // what the line that is reached says of it
	Last   Origin // of the newest row on the side that is left; 0 when it has none there
	Agent  bool   // a row between the two nodes, on either side, is the agent's
	// A row on the side that is left is somebody else's: the move takes it back too.
	Foreign bool
}

// Transition gives, for every path with rows on either side of the lowest common ancestor of
// two nodes, the state expected and the state wanted (docs/design.md, moves), by path.
//
//	rows on the side left only:    expect its last after, want its first before
//	rows on the side reached only: expect its first before, want its last after
//	rows on both:                  expect the last after of one, want the last after of the other
func (t *Tx) Transition(from, to NodeID) ([]Move, error) {
	left, reached, shared, err := t.parted(from, to)
	if err != nil {
		return nil, err
	}
	if len(shared) == 0 {
		return nil, fmt.Errorf("nodes %d and %d have no common ancestor: %w", from, to, ErrCorrupt)
	}
	was, err := t.ends(left)
	if err != nil {
		return nil, err
	}
	will, err := t.ends(reached)
	if err != nil {
		return nil, err
	}
	moves := make([]Move, 0, len(was)+len(will))
	for p, e := range was {
		m := Move{Path: p, Expect: e.after, Want: e.before, Last: e.last, Agent: e.agent, Foreign: e.foreign}
		if r, ok := will[p]; ok {
			m.Want, m.Agent = r.after, m.Agent || r.agent
		}
		moves = append(moves, m)
	}
	for p, r := range will {
		if _, ok := was[p]; !ok {
			moves = append(moves, Move{Path: p, Expect: r.before, Want: r.after, Agent: r.agent})
		}
	}
	slices.SortFunc(moves, byPath)
	return moves, nil
}

func byPath(x, y Move) int { return strings.Compare(string(x.Path), string(y.Path)) }

// TipMoves are the moves of a rewind to where the last turn ended: what the agent's rows of
// restore and carry nodes after it did is taken back.
func (t *Tx) TipMoves(head NodeID) ([]Move, error) {
	h, err := t.Node(head)
	if err != nil {
		return nil, err
	}
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	rows, err := along(t, slices.Backward(line), scanKinded, `
		SELECT `+changeColumns+`, n.kind
		FROM node n
		JOIN change c ON c.segment = n.segment AND c.depth = n.depth `+changeJoins+`
		WHERE n.segment = ? AND n.turn = ? AND n.depth BETWEEN ? AND ?
		ORDER BY n.depth, c.seq`,
		func(s span) []any { return []any{s.segment, h.Turn, s.low, s.high} })
	if err != nil {
		return nil, err
	}
	found := map[Path]*Move{}
	for _, c := range rows { // oldest first
		m := found[c.Path]
		if m == nil {
			if c.Origin != Agent || (c.kind != RestoreNode && c.kind != CarryNode) {
				continue
			}
			m = &Move{Path: c.Path, Want: c.Before}
			found[c.Path] = m
		}
		m.Expect, m.Last = c.After, c.Origin
		m.Agent, m.Foreign = m.Agent || c.Origin == Agent, m.Foreign || c.Origin == External
	}
	moves := make([]Move, 0, len(found))
	for _, m := range found {
		moves = append(moves, *m)
	}
	slices.SortFunc(moves, byPath)
	return moves, nil
}

// kinded is a row with the kind of its node.
type kinded struct {
	Change
	kind NodeKind
}

func scanKinded(row scanner) (k kinded, err error) {
	k.Change, err = scanChange(row, &k.kind)
	return k, err
}

// end is what a side of a transition says of a path.
type end struct {
	before, after  State  // of its first and its last row there
	last           Origin // of its last row
	agent, foreign bool
}

// endsByRow groups the rows of a span. Its work is proportional to the rows.
const endsByRow = `
	WITH g AS MATERIALIZED (
	  SELECT path_id, min(depth << 24 | seq) AS first, max(depth << 24 | seq) AS last,
	         max(origin = 1) AS agent, max(origin = 2) AS foreign_
	  FROM change
	  WHERE segment = ?1 AND depth BETWEEN ?2 AND ?3
	  GROUP BY path_id
	)
	SELECT p.path, p.id, f.before_kind, f.before_mode, bb.hash, coalesce(bb.size, 0),
	       c.after_kind, c.after_mode, ab.hash, coalesce(ab.size, 0), c.origin, g.agent, g.foreign_
	FROM g
	JOIN path p ON p.id = g.path_id
	JOIN change f ON f.segment = ?1 AND f.depth = g.first >> 24 AND f.seq = g.first & 16777215
	JOIN change c ON c.segment = ?1 AND c.depth = g.last >> 24 AND c.seq = g.last & 16777215
	LEFT JOIN blob bb ON bb.id = f.before_blob
	LEFT JOIN blob ab ON ab.id = c.after_blob`

// endsByPath looks up the first and the last row of every path that there is. Only a path whose
// ends are both somebody else's needs a look at the rows between them.
const endsByPath = `
	WITH g AS MATERIALIZED (
	  SELECT p.id AS path_id, p.path AS path,
	         (SELECT a.depth << 24 | a.seq FROM change a
	          WHERE a.path_id = p.id AND a.segment = ?1 AND a.depth BETWEEN ?2 AND ?3
	          ORDER BY a.depth, a.seq LIMIT 1) AS first,
	         (SELECT z.depth << 24 | z.seq FROM change z
	          WHERE z.path_id = p.id AND z.segment = ?1 AND z.depth BETWEEN ?2 AND ?3
	          ORDER BY z.depth DESC, z.seq DESC LIMIT 1) AS last
	  FROM path p
	)
	SELECT g.path, g.path_id, f.before_kind, f.before_mode, bb.hash, coalesce(bb.size, 0),
	       c.after_kind, c.after_mode, ab.hash, coalesce(ab.size, 0), c.origin,
	       f.origin = 1 OR c.origin = 1 OR EXISTS (
	         SELECT 1 FROM change x
	         WHERE x.path_id = g.path_id AND x.segment = ?1 AND x.depth BETWEEN ?2 AND ?3 AND x.origin = 1),
	       EXISTS (
	         SELECT 1 FROM change y
	         WHERE y.segment = ?1 AND y.path_id = g.path_id AND y.depth BETWEEN ?2 AND ?3 AND y.origin = 2)
	FROM g
	CROSS JOIN change f ON f.segment = ?1 AND f.depth = g.first >> 24 AND f.seq = g.first & 16777215
	CROSS JOIN change c ON c.segment = ?1 AND c.depth = g.last >> 24 AND c.seq = g.last & 16777215
	LEFT JOIN blob bb ON bb.id = f.before_blob
	LEFT JOIN blob ab ON ab.id = c.after_blob
	WHERE g.first IS NOT NULL`

// endsQuery is the cheaper way to the ends of a span: many turns over few paths are asked path
// by path, few turns row by row. A path costs as much as some four nodes with their rows.
func (t *Tx) endsQuery(s span) (string, error) {
	var paths int64
	if err := t.r.Get(&paths, `SELECT coalesce(max(id), 0) FROM path`); err != nil {
		return "", err
	}
	if 4*paths < s.high-s.low {
		return endsByPath, nil
	}
	return endsByRow, nil
}

// ends reads the ends of every path in spans that are given newest first.
func (t *Tx) ends(side []span) (map[Path]end, error) {
	all := map[Path]end{}
	for _, s := range slices.Backward(side) {
		query, err := t.endsQuery(s)
		if err != nil {
			return nil, err
		}
		rows, err := t.r.Query(query, s.segment, s.low, s.high)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var (
				e                   end
				path, before, after []byte
				id                  int64
			)
			err := rows.Scan(&path, &id, &e.before.Kind, &e.before.Mode, &before, &e.before.Size,
				&e.after.Kind, &e.after.Mode, &after, &e.after.Size, &e.last, &e.agent, &e.foreign)
			if err != nil {
				return nil, closing(rows, err)
			}
			copy(e.before.Blob[:], before)
			copy(e.after.Blob[:], after)
			t.paths[Path(path)] = id
			if older, ok := all[Path(path)]; ok {
				e.before, e.agent, e.foreign = older.before, e.agent || older.agent, e.foreign || older.foreign
			}
			all[Path(path)] = e
		}
		if err := closing(rows, rows.Err()); err != nil {
			return nil, err
		}
	}
	return all, nil
}
