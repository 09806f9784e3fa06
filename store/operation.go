package store

import (
	"database/sql"
	"fmt"
)

const operationColumns = `
	o.id, s.sid, o.kind, o.scope, o.turn, o.state, coalesce(o.of_id, 0), coalesce(o.undone_by, 0),
	o.head_from, coalesce(o.head_to, 0), o.written, o.deleted, o.created_ms`

const operationFrom = `
	FROM operation o
	JOIN session s ON s.id = o.session_id`

// Operation reads one operation.
func (t *Tx) Operation(id OpID) (Operation, error) {
	ops, err := t.operations(`WHERE o.id = ?`, id)
	if err == nil && len(ops) == 0 {
		err = fmt.Errorf("operation %d: %w", id, ErrNoOperation)
	}
	if err != nil {
		return Operation{}, err
	}
	return ops[0], nil
}

// Operations are the log, newest first: of one session, or of all when id is "".
func (t *Tx) Operations(id SessionID) ([]Operation, error) {
	return t.operations(`WHERE ? IN ('', s.sid) ORDER BY o.id DESC`, id)
}

// NewestStanding is the newest applied operation of a session that stands and is of one of
// kinds; ErrNoOperation when there is none.
func (t *Tx) NewestStanding(id SessionID, kinds ...OpKind) (Operation, error) {
	mask := 0
	for _, k := range kinds {
		mask |= 1 << k
	}
	ops, err := t.operations(`
		WHERE o.session_id = (SELECT id FROM session WHERE sid = ?)
		  AND o.state = 2 AND o.undone_by IS NULL AND (? >> o.kind) & 1
		ORDER BY o.id DESC
		LIMIT 1`, id, mask)
	if err == nil && len(ops) == 0 {
		err = ErrNoOperation
	}
	if err != nil {
		return Operation{}, err
	}
	return ops[0], nil
}

// OperationsAfter are the operations of all sessions that are later than one, oldest first.
func (t *Tx) OperationsAfter(id OpID) ([]Operation, error) {
	return t.operations(`WHERE o.id > ? ORDER BY o.id`, id)
}

// Unfinished are the operations whose files may be in either state: recovery's work.
func (t *Tx) Unfinished() ([]Operation, error) {
	return t.operations(`WHERE o.state = 1 ORDER BY o.id`)
}

func (t *Tx) operations(where string, args ...any) ([]Operation, error) {
	return collect(t, scanOperation, `SELECT `+operationColumns+operationFrom+` `+where, args...)
}

func scanOperation(row scanner) (o Operation, err error) {
	var created int64
	err = row.Scan(&o.ID, &o.Session, &o.Kind, &o.Scope, &o.Turn, &o.State, &o.Of, &o.UndoneBy,
		&o.HeadFrom, &o.HeadTo, &o.Written, &o.Deleted, &created)
	o.Created = at(created)
	return o, err
}

// OperationPaths are the paths of an operation with their states before and after, by path.
func (t *Tx) OperationPaths(id OpID) ([]OpPath, error) {
	return collect(t, scanOpPath, `
		SELECT p.path, op.left_alone, op.from_kind, op.from_mode, fb.hash, coalesce(fb.size, 0),
		       op.to_kind, op.to_mode, tb.hash, coalesce(tb.size, 0)
		FROM operation_path op
		JOIN path p ON p.id = op.path_id
		LEFT JOIN blob fb ON fb.id = op.from_blob
		LEFT JOIN blob tb ON tb.id = op.to_blob
		WHERE op.operation_id = ?
		ORDER BY p.path`, id)
}

func scanOpPath(row scanner) (o OpPath, err error) {
	var path, from, to []byte
	err = row.Scan(&path, &o.Left, &o.From.Kind, &o.From.Mode, &from, &o.From.Size,
		&o.To.Kind, &o.To.Mode, &to, &o.To.Size)
	o.Path = Path(path)
	copy(o.From.Blob[:], from)
	copy(o.To.Blob[:], to)
	return o, err
}

// AddOperation puts an operation into the log; its heads are sealed by that. Contents of its
// paths must be bound already.
func (w *WriteTx) AddOperation(o Operation, paths []OpPath) (OpID, error) {
	row, err := w.rowOf(o.Session)
	if err != nil {
		return 0, err
	}
	if err := w.seal(o.HeadFrom); err != nil {
		return 0, err
	}
	var of, to any
	if o.Of != 0 {
		of = o.Of
	}
	if o.HeadTo != 0 {
		to = o.HeadTo
	}
	id, err := w.insert(`
		INSERT INTO operation (session_id, kind, scope, turn, state, of_id, head_from, head_to, written, deleted, created_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		row, o.Kind, o.Scope, o.Turn, o.State, of, o.HeadFrom, to, o.Written, o.Deleted, ms(w.s.now()))
	if err != nil {
		return 0, fmt.Errorf("log operation: %w", err)
	}
	for _, p := range paths {
		if err := w.addOperationPath(OpID(id), p); err != nil {
			return 0, fmt.Errorf("log operation on %q: %w", p.Path, err)
		}
	}
	if o.ID = OpID(id); o.State == Applied {
		err = w.settle(o)
	}
	return o.ID, err
}

func (w *WriteTx) addOperationPath(id OpID, p OpPath) error {
	if err := checkState(p.From); err != nil {
		return err
	}
	if err := checkState(p.To); err != nil {
		return err
	}
	path, err := w.addPath(p.Path)
	if err != nil {
		return err
	}
	_, err = w.exec(`
		INSERT INTO operation_path (operation_id, path_id, left_alone, from_kind, from_mode, from_blob, to_kind, to_mode, to_blob)
		VALUES (?, ?, ?, ?, ?, (SELECT id FROM blob WHERE hash = ?), ?, ?, (SELECT id FROM blob WHERE hash = ?))`,
		id, path, p.Left, p.From.Kind, p.From.Mode, content(p.From), p.To.Kind, p.To.Mode, content(p.To))
	return err
}

// KeepPath corrects, before an operation is finished, a path that it left as it was after all.
func (w *WriteTx) KeepPath(id OpID, p Path) error {
	path, err := w.pathID(p)
	if err != nil {
		return err
	}
	_, err = w.exec(`
		UPDATE operation_path SET left_alone = 1, to_kind = from_kind, to_mode = from_mode, to_blob = from_blob
		WHERE operation_id = ? AND path_id = ?`, id, path)
	return err
}

// FinishOperation marks an operation applied or rolled back. Its HeadFrom may have become a
// node below the one that was known when it began: what was looked at is recorded with it.
func (w *WriteTx) FinishOperation(o Operation) error {
	var to any
	if o.HeadTo != 0 {
		to = o.HeadTo
	}
	n, err := w.exec(`
		UPDATE operation SET state = ?, head_from = ?, head_to = ?, written = ?, deleted = ?, ended_ms = ?
		WHERE id = ? AND state = 1`, o.State, o.HeadFrom, to, o.Written, o.Deleted, ms(w.s.now()), o.ID)
	if err != nil {
		return fmt.Errorf("finish operation %d: %w", o.ID, err)
	}
	if n != 1 {
		return fmt.Errorf("finish operation %d: it is finished already: %w", o.ID, ErrInvalid)
	}
	if o.State != Applied {
		return nil
	}
	return w.settle(o)
}

// settle works out which operations of a session stand once o is applied. An undo or redo
// covers those from the one it names up to itself; an operation stands when no standing later
// one covers it.
func (w *WriteTx) settle(o Operation) error {
	if o.Of == 0 {
		return nil // it covers none, and nothing is later than it
	}
	row, err := w.rowOf(o.Session)
	if err != nil {
		return err
	}
	_, err = w.exec(`
		UPDATE operation SET undone_by = ?
		WHERE session_id = ? AND id >= ? AND id < ? AND state = 2 AND kind IN (1, 2, 3, 6, 9)`, o.ID, row, o.Of, o.ID)
	if err != nil {
		return err
	}
	// What was covered by one of those is not any more. No operation from o.Of on that stands
	// covers what is before it, so the ones before it decide among themselves.
	// Those among them that take back may cover still earlier ones again.
	low := o.Of
	for {
		var min sql.NullInt64
		err := w.r.Get(&min, `
			SELECT min(coalesce(min(of_id, id), id))
			FROM operation
			WHERE session_id = ? AND id < ? AND (undone_by >= ? OR id >= ?)`, row, o.Of, o.Of, low)
		if err != nil {
			return err
		}
		if !min.Valid || OpID(min.Int64) >= low {
			break
		}
		low = OpID(min.Int64)
	}
	ops, err := w.operations(`
		WHERE o.session_id = ? AND o.state = 2 AND o.id BETWEEN ? AND ?
		ORDER BY o.id DESC`, row, low, o.Of-1)
	if err != nil {
		return err
	}
	for _, o := range standing(ops) {
		var by any
		if o.UndoneBy != 0 {
			by = o.UndoneBy
		}
		if _, err := w.exec(`UPDATE operation SET undone_by = ? WHERE id = ? AND undone_by IS NOT ?`, by, o.ID, by); err != nil {
			return err
		}
	}
	return nil
}

// standing fills UndoneBy of operations that are given newest first.
func standing(ops []Operation) []Operation {
	low, by := OpID(0), OpID(0) // the earliest operation that a standing later one covers, and which one does
	for i := range ops {
		o := &ops[i]
		takesBack := o.Kind == OpUndo || o.Kind == OpRedo
		o.UndoneBy = 0
		if !takesBack && !o.Kind.Undoable() {
			continue
		}
		if by != 0 && o.ID >= low {
			o.UndoneBy = by
			continue
		}
		if takesBack && (by == 0 || o.Of < low) {
			low, by = o.Of, o.ID
		}
	}
	return ops
}
