package store

import (
	"database/sql"
	"slices"
)

// What a person is shown needs a few more questions about a line than recording and moving do.
// Each is one look-up for each segment, like its neighbours. Along a line turns go up with
// depth; ordering by turn first lets the index node_turn give the order, and only the page.

// TurnGaps are the gaps of turn n on the line of head and of what follows it up to the next
// turn, oldest first.
func (t *Tx) TurnGaps(head NodeID, n int) ([]Gap, error) { return t.GapsBetween(head, n, n) }

// GapsBetween are the gaps of the turns lo to hi, both included, oldest first.
func (t *Tx) GapsBetween(head NodeID, lo, hi int) ([]Gap, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	return along(t, slices.Backward(line), scanGap, `
		SELECT n.turn, g.reason, g.path, g.tool, g.detail
		FROM node n
		CROSS JOIN gap g ON g.node_id = n.id
		WHERE n.segment = ? AND n.turn BETWEEN ? AND ? AND n.depth BETWEEN ? AND ?
		ORDER BY n.turn, n.depth, g.id`,
		func(s span) []any { return []any{s.segment, lo, hi, s.low, s.high} })
}

func scanGap(row scanner) (g Gap, err error) {
	var path []byte
	err = row.Scan(&g.Turn, &g.Reason, &path, &g.Tool, &g.Detail)
	g.Path = Path(path)
	return g, err
}

// ChangesBetween are the rows of the turns lo to hi, both included, and of what follows each
// up to the next turn, oldest first.
func (t *Tx) ChangesBetween(head NodeID, lo, hi int) ([]Placed, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	return along(t, slices.Backward(line), scanRow, `
		SELECT `+changeColumns+`, c.seq, `+nodeColumns+`
		FROM node n
		CROSS JOIN change c ON c.segment = n.segment AND c.depth = n.depth `+changeJoins+`
		WHERE n.segment = ? AND n.turn BETWEEN ? AND ? AND n.depth BETWEEN ? AND ?
		ORDER BY n.turn, n.depth, c.seq`,
		func(s span) []any { return []any{s.segment, lo, hi, s.low, s.high} })
}

// AgentTouched reports whether the agent has a row about p on the line of head in turn from or
// a later one.
func (t *Tx) AgentTouched(head NodeID, p Path, from int) (bool, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return false, err
	}
	id, err := t.pathID(p)
	if err != nil || id == 0 {
		return false, err
	}
	for _, s := range line {
		var found bool
		err := t.r.QueryRow(`
			SELECT EXISTS (
			  SELECT 1
			  FROM change c
			  CROSS JOIN node n ON n.segment = c.segment AND n.depth = c.depth
			  WHERE c.path_id = ? AND c.segment = ? AND c.depth BETWEEN ? AND ? AND c.origin = 1 AND n.turn >= ?
			)`, id, s.segment, s.low, s.high, from).Scan(&found)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// States are what the line that ends at node knows of every path, through all sessions above
// it: the after-state of each path's newest row there.
func (t *Tx) States(node NodeID) (map[Path]State, error) {
	line, err := t.spans(node, true)
	if err != nil {
		return nil, err
	}
	all, err := t.ends(line)
	if err != nil {
		return nil, err
	}
	states := make(map[Path]State, len(all))
	for p, e := range all {
		states[p] = e.after
	}
	return states, nil
}

// Forked are the sessions in the order in which they were made, so that a parent comes before
// its forks.
func (t *Tx) Forked() ([]Session, error) {
	return t.sessions(`WHERE s.deleted_ms IS NULL ORDER BY s.id`)
}

// LastAgentTurn is the number of the newest turn of the line of head that holds, or is
// followed by, a row of the agent's; -1 when none does.
func (t *Tx) LastAgentTurn(head NodeID) (int, error) {
	line, err := t.spans(head, false)
	if err != nil {
		return -1, err
	}
	for _, s := range line {
		turn := -1
		err := t.r.QueryRow(`
			SELECT n.turn
			FROM change c
			CROSS JOIN node n ON n.segment = c.segment AND n.depth = c.depth
			WHERE c.segment = ? AND c.depth BETWEEN ? AND ? AND c.origin = 1
			ORDER BY c.depth DESC
			LIMIT 1`, s.segment, s.low, s.high).Scan(&turn)
		if err == nil {
			return turn, nil
		}
		if err := noRows(err, nil); err != nil {
			return -1, err
		}
	}
	return -1, nil
}

// ExpiredTurns are those of the turns lo to hi of a line to which the files cannot be taken back
// whole any more, since collection dropped a content.
func (t *Tx) ExpiredTurns(head NodeID, lo, hi int) (map[int]bool, error) {
	var some bool
	if err := t.r.Get(&some, `SELECT EXISTS (SELECT 1 FROM blob_expired)`); err != nil || !some {
		return nil, err
	}
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	// The turn that a path's row is wanted for lies after the path's row before it.
	rows, err := along(t, slices.All(line), func(row scanner) (e expiredRow, err error) {
		return e, row.Scan(&e.path, &e.depth, &e.turn)
	}, `
		SELECT c.path_id, c.depth, n.turn
		FROM node n
		CROSS JOIN change c ON c.segment = n.segment AND c.depth = n.depth
		JOIN blob_expired e ON e.blob_id = c.before_blob
		WHERE n.segment = ? AND n.depth BETWEEN ? AND ? AND n.turn >= ?
		ORDER BY c.depth, c.seq`,
		func(s span) []any { return []any{s.segment, s.low, s.high, lo} })
	if err != nil {
		return nil, err
	}
	expired := map[int]bool{}
	for _, r := range rows {
		from, err := t.turnAfter(line, r)
		if err != nil {
			return nil, err
		}
		for n := max(from, lo); n <= min(r.turn, hi); n++ {
			expired[n] = true
		}
	}
	return expired, nil
}

type expiredRow struct {
	path, depth int64
	turn        int
}

// turnAfter is the first turn whose beginning comes after the row of the same path before r.
func (t *Tx) turnAfter(line []span, r expiredRow) (int, error) {
	for _, s := range line {
		if s.low >= r.depth {
			continue
		}
		var turn sql.NullInt64
		err := t.r.Get(&turn, `
			SELECT n.turn
			FROM change c
			JOIN node n ON n.segment = c.segment AND n.depth = c.depth
			WHERE c.path_id = ? AND c.segment = ? AND c.depth BETWEEN ? AND ?
			ORDER BY c.depth DESC
			LIMIT 1`, r.path, s.segment, s.low, min(s.high, r.depth-1))
		if err := noRows(err, nil); err != nil {
			return 0, err
		}
		if turn.Valid {
			return int(turn.Int64) + 1, nil
		}
	}
	return 0, nil
}
