package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"reasonix/db"
)

// pathID returns the number of p, or 0 when no row was ever about it.
func (t *Tx) pathID(p Path) (int64, error) {
	if id, ok := t.paths[p]; ok {
		return id, nil
	}
	var id int64
	err := t.r.QueryRow(`SELECT id FROM path WHERE path = ?`, []byte(p)).Scan(&id)
	if err := noRows(err, nil); err != nil {
		return 0, err
	}
	t.paths[p] = id // 0 too: only this transaction could add it meanwhile
	return id, nil
}

func (w *WriteTx) addPath(p Path) (int64, error) {
	id, err := w.pathID(p)
	if err != nil || id != 0 {
		return id, err
	}
	id, err = w.insert(`INSERT INTO path (path) VALUES (?)`, []byte(p))
	if err != nil {
		return 0, fmt.Errorf("add path %q: %w", p, err)
	}
	w.paths[p] = id
	return id, nil
}

// content is the hash of s's content, nil when it has none.
func content(s State) any {
	if !s.HasContent() {
		return nil
	}
	return s.Blob[:]
}

func checkState(s State) error {
	ok := s.Kind >= Absent && s.Kind <= Uncaptured && s.Mode <= 0o777 && s.Size >= 0
	if s.HasContent() == s.Blob.IsZero() || !ok {
		return fmt.Errorf("state %v: %w", s, ErrInvalid)
	}
	return nil
}

// AppendChange adds a row at the end of a node. The contents it refers to must be bound in
// this transaction or before. Only AddNode's caller, before anything points to the node, and
// the open turn of a session may do this (I3).
func (w *WriteTx) AppendChange(n Node, c Change) error {
	if err := checkState(c.Before); err != nil {
		return err
	}
	if err := checkState(c.After); err != nil {
		return err
	}
	id, err := w.addPath(c.Path)
	if err != nil {
		return err
	}
	_, err = w.exec(`
		INSERT INTO change (segment, depth, seq, path_id, source, origin,
		                    before_kind, before_mode, before_blob, after_kind, after_mode, after_blob)
		VALUES (?1, ?2, (SELECT coalesce(max(seq), -1) + 1 FROM change WHERE segment = ?1 AND depth = ?2), ?3, ?4, ?5,
		        ?6, ?7, (SELECT id FROM blob WHERE hash = ?8), ?9, ?10, (SELECT id FROM blob WHERE hash = ?11))`,
		n.Segment, n.Depth, id, c.Source, c.Origin,
		c.Before.Kind, c.Before.Mode, content(c.Before), c.After.Kind, c.After.Mode, content(c.After))
	switch {
	case db.IsConstraint(err):
		return fmt.Errorf("add change of %q, whose content must be stored: %w: %w", c.Path, ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("add change of %q: %w", c.Path, err)
	}
	return nil
}

// SetAfter moves the after-state of the last row of a path in a node that is still open.
func (w *WriteTx) SetAfter(n Node, p Path, after State) error {
	if err := checkState(after); err != nil {
		return err
	}
	id, err := w.pathID(p)
	if err != nil {
		return err
	}
	changed, err := w.exec(`
		UPDATE change SET after_kind = ?, after_mode = ?, after_blob = (SELECT id FROM blob WHERE hash = ?)
		WHERE segment = ? AND depth = ?
		  AND seq = (SELECT max(seq) FROM change WHERE path_id = ? AND segment = ? AND depth = ?)
		  AND EXISTS (SELECT 1 FROM session WHERE open_id = ?)`,
		after.Kind, after.Mode, content(after), n.Segment, n.Depth, id, n.Segment, n.Depth, n.ID)
	if err != nil {
		return fmt.Errorf("set state of %q: %w", p, err)
	}
	if changed != 1 {
		return fmt.Errorf("set state of %q: %w", p, ErrSealed)
	}
	return nil
}

// changeColumns and changeJoins select rows with the contents that they refer to.
const changeColumns = `
	p.path, c.source, c.origin,
	c.before_kind, c.before_mode, bb.hash, coalesce(bb.size, 0),
	c.after_kind, c.after_mode, ab.hash, coalesce(ab.size, 0)`

const changeJoins = `
	JOIN path p ON p.id = c.path_id
	LEFT JOIN blob bb ON bb.id = c.before_blob
	LEFT JOIN blob ab ON ab.id = c.after_blob`

func scanChange(row scanner, more ...any) (Change, error) {
	var (
		c             Change
		path          []byte
		before, after []byte
	)
	dest := append([]any{
		&path, &c.Source, &c.Origin,
		&c.Before.Kind, &c.Before.Mode, &before, &c.Before.Size,
		&c.After.Kind, &c.After.Mode, &after, &c.After.Size,
	}, more...)
	if err := row.Scan(dest...); err != nil {
		return Change{}, err
	}
	c.Path = Path(path)
	copy(c.Before.Blob[:], before)
	copy(c.After.Blob[:], after)
	return c, nil
}

// NodeChanges are the rows of one node, in order.
func (t *Tx) NodeChanges(n Node) ([]Change, error) {
	scan := func(row scanner) (Change, error) { return scanChange(row) }
	return collect(t, scan, `
		SELECT `+changeColumns+`
		FROM change c `+changeJoins+`
		WHERE c.segment = ? AND c.depth = ?
		ORDER BY c.seq`, n.Segment, n.Depth)
}

// Placed is a row with the node that holds it.
type Placed struct {
	Change
	Node Node
	Seq  int
}

// Newest is the last row about p on the line of head, through all sessions above it; nil
// when the line knows nothing of p. Its After is the state known to the line.
func (t *Tx) Newest(head NodeID, p Path) (*Placed, error) {
	if id, err := t.pathID(p); err != nil || id == 0 {
		return nil, err
	}
	line, err := t.spans(head, true)
	if err != nil {
		return nil, err
	}
	return t.newestIn(line, p)
}

func (t *Tx) newestIn(line []span, p Path) (*Placed, error) {
	id, err := t.pathID(p)
	if err != nil || id == 0 {
		return nil, err
	}
	for _, s := range line {
		placed, err := scanPlaced(t.r.QueryRow(`
			SELECT `+changeColumns+`, c.seq, `+nodeColumns+`
			FROM change c `+changeJoins+`
			JOIN node n ON n.segment = c.segment AND n.depth = c.depth
			WHERE c.path_id = ? AND c.segment = ? AND c.depth BETWEEN ? AND ?
			ORDER BY c.depth DESC, c.seq DESC
			LIMIT 1`, id, s.segment, s.low, s.high))
		if err == nil {
			return placed, nil
		}
		if err := noRows(err, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func scanPlaced(row scanner, more ...any) (*Placed, error) {
	var (
		p       Placed
		created int64
	)
	n := &p.Node
	dest := []any{&p.Seq, &n.ID, &n.Parent, &n.Kind, &n.Segment, &n.Depth, &n.Turn, &n.MsgStart, &n.MsgCount, &created}
	c, err := scanChange(row, append(dest, more...)...)
	p.Change, n.Created = c, at(created)
	return &p, err
}

// fewPaths are those that are looked up faster one by one than it takes to prepare the statement
// for many.
const fewPaths = 8

func scanRow(row scanner) (Placed, error) {
	p, err := scanPlaced(row)
	return *p, err
}

// Known are the newest rows on the line of head for several paths; paths that the line knows
// nothing of are left out. It asks once for each segment, however many paths there are; few are
// asked one by one, by the statement that recording them prepares anyway.
func (t *Tx) Known(head NodeID, paths []Path) (map[Path]*Placed, error) {
	known := make(map[Path]*Placed, len(paths))
	ids := make([]int64, 0, len(paths))
	for _, p := range paths {
		id, err := t.pathID(p)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return known, nil
	}
	line, err := t.spans(head, true)
	if err != nil {
		return nil, err
	}
	if len(ids) <= fewPaths {
		for _, p := range paths {
			row, err := t.newestIn(line, p)
			if err != nil {
				return nil, err
			}
			if row != nil {
				known[p] = row
			}
		}
		return known, nil
	}
	for _, s := range line {
		if len(ids) == 0 {
			break
		}
		found, err := t.knownIn(s, ids, known)
		if err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(id int64) bool { return found[id] })
	}
	return known, nil
}

// knownIn adds the newest rows of a span for the paths of ids, and says which it found.
func (t *Tx) knownIn(s span, ids []int64, known map[Path]*Placed) (map[int64]bool, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := t.r.Query(`
		WITH g AS MATERIALIZED (
		  SELECT c.path_id, max(c.depth << 24 | c.seq) AS last
		  FROM json_each(?1) j
		  CROSS JOIN change c ON c.path_id = j.value AND c.segment = ?2 AND c.depth BETWEEN ?3 AND ?4
		  GROUP BY c.path_id
		)
		SELECT `+changeColumns+`, c.seq, `+nodeColumns+`, g.path_id
		FROM g
		CROSS JOIN change c ON c.segment = ?2 AND c.depth = g.last >> 24 AND c.seq = g.last & 16777215
		`+changeJoins+`
		JOIN node n ON n.segment = c.segment AND n.depth = c.depth`, string(list), s.segment, s.low, s.high)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[int64]bool, len(ids))
	for rows.Next() {
		var id int64
		p, err := scanPlaced(rows, &id)
		if err != nil {
			return nil, err
		}
		known[p.Path], found[id] = p, true
	}
	return found, rows.Err()
}

// History are all rows about p on the line of head, newest first.
func (t *Tx) History(head NodeID, p Path) ([]Placed, error) {
	line, err := t.spans(head, true)
	if err != nil {
		return nil, err
	}
	id, err := t.pathID(p)
	if err != nil || id == 0 {
		return nil, err
	}
	return along(t, slices.All(line), scanRow, `
		SELECT `+changeColumns+`, c.seq, `+nodeColumns+`
		FROM change c `+changeJoins+`
		JOIN node n ON n.segment = c.segment AND n.depth = c.depth
		WHERE c.path_id = ? AND c.segment = ? AND c.depth BETWEEN ? AND ?
		ORDER BY c.depth DESC, c.seq DESC`,
		func(s span) []any { return []any{id, s.segment, s.low, s.high} })
}

// WriterOf finds, on any line of the store, the newest agent's row that left p in state s and
// lies in a node after since; nil when none did. Only contents tell a writer: all folders are
// alike, and so are all absences.
func (t *Tx) WriterOf(p Path, s State, since NodeID) (*Placed, error) {
	if !s.HasContent() {
		return nil, nil
	}
	id, err := t.pathID(p)
	if err != nil || id == 0 {
		return nil, err
	}
	row, err := scanPlaced(t.r.QueryRow(`
		SELECT `+changeColumns+`, c.seq, `+nodeColumns+`
		FROM change c `+changeJoins+`
		JOIN node n ON n.segment = c.segment AND n.depth = c.depth
		WHERE c.path_id = ? AND c.origin = 1 AND n.id > ?
		  AND c.after_kind = ? AND c.after_mode = ? AND c.after_blob IS (SELECT id FROM blob WHERE hash = ?)
		ORDER BY n.id DESC, c.seq DESC
		LIMIT 1`, id, since, s.Kind, s.Mode, content(s)))
	if err != nil {
		return nil, noRows(err, nil)
	}
	return row, nil
}

// RecordedBy is the session whose events made a node; "" when no turn tells it.
func (t *Tx) RecordedBy(n Node) (SessionID, error) {
	line, err := t.spans(n.ID, false)
	if err != nil {
		return "", err
	}
	root := line[len(line)-1].segment
	var id SessionID
	err = t.r.QueryRow(`
		SELECT s.sid
		FROM session s
		WHERE s.root_id = ?
		ORDER BY s.id
		LIMIT 1`, root).Scan(&id)
	if n.Turn < 0 || noRows(err, nil) != nil {
		return id, noRows(err, nil)
	}
	turn, err := t.Turn(n.ID, n.Turn)
	if err != nil {
		return id, err
	}
	err = t.r.QueryRow(`
		SELECT s.sid
		FROM turn t
		JOIN session s ON s.id = t.session_id
		WHERE t.node_id = ?`, turn.Node.ID).Scan(&id)
	return id, noRows(err, nil)
}
