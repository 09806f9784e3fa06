package store

import (
	"errors"
	"fmt"

	"reasonix/blob"
)

// How much one step of collection does: what other writers have to wait for.
const (
	stepRows  = 400
	stepBytes = 8 << 20
	stepPages = 1024 // given back to the system
)

// few cuts what one step does off a list.
func few[T any](list *[]T) []T {
	n := min(len(*list), stepRows)
	part := (*list)[:n]
	*list = (*list)[n:]
	return part
}

// all runs statements that each take an id.
func (w *WriteTx) all(id int64, queries ...string) error {
	for _, q := range queries {
		if _, err := w.exec(q, id); err != nil {
			return err
		}
	}
	return nil
}

func (w *WriteTx) dropOps(r *reach, done *Collected) (bool, error) {
	// They name each other, and go in one step.
	ops := r.ops
	r.ops = nil
	for _, o := range ops {
		if err := w.all(int64(o),
			`DELETE FROM operation_path WHERE operation_id = ?`,
			`UPDATE operation SET undone_by = NULL WHERE undone_by = ?`,
		); err != nil {
			return false, fmt.Errorf("forget operation %d: %w", o, err)
		}
	}
	for _, o := range ops { // newest first: only a later one is of another
		if err := w.all(int64(o), `DELETE FROM operation WHERE id = ?`); err != nil {
			return false, fmt.Errorf("forget operation %d: %w", o, err)
		}
	}
	done.Operations += len(ops)
	return len(ops) > 0, nil
}

// unhook takes deleted sessions off nodes that go.
func (w *WriteTx) unhook(r *reach, _ *Collected) (bool, error) {
	worked := false
	for _, id := range r.sessions {
		n, err := w.exec(`
			UPDATE session SET head_id = ?2, root_id = ?2, open_id = NULL, open_turn_id = NULL
			WHERE id = ?1 AND (head_id <> ?2 OR root_id <> ?2)`, id, r.anchor)
		if err != nil {
			return false, fmt.Errorf("forget a deleted session: %w", err)
		}
		worked = worked || n > 0
	}
	return worked, nil
}

func (w *WriteTx) dropNodes(r *reach, done *Collected) (bool, error) {
	nodes := few(&r.nodes)
	for _, n := range nodes {
		messages, err := w.exec(`DELETE FROM message WHERE id >= ?1 << 32 AND id < (?1 + 1) << 32`, n)
		if err == nil {
			err = w.all(int64(n),
				`DELETE FROM compaction_message
				 WHERE id IN (SELECT m.id FROM compaction c JOIN compaction_message m ON m.id >= c.id << 32 AND m.id < (c.id + 1) << 32 WHERE c.node_id = ?)`,
				`DELETE FROM compaction WHERE node_id = ?`,
				`DELETE FROM gap WHERE node_id = ?`,
				`DELETE FROM call WHERE node_id = ?`,
				`DELETE FROM turn WHERE node_id = ?`,
				`DELETE FROM change WHERE (segment, depth) = (SELECT segment, depth FROM node WHERE id = ?)`,
				`DELETE FROM node WHERE id = ?`)
		}
		if err != nil {
			return false, fmt.Errorf("forget node %d: %w", n, err)
		}
		done.Messages += int(messages)
	}
	done.Nodes += len(nodes)
	return len(nodes) > 0, nil
}

// silence drops the messages of nodes that stay for the sake of the files. The messages are still
// counted: what is below them on other lines does not move.
func (w *WriteTx) silence(r *reach, done *Collected) (bool, error) {
	worked := false
	for _, n := range few(&r.silent) {
		messages, err := w.exec(`
			UPDATE message SET role = '', json = 'null', blob_id = NULL, sum = ?2
			WHERE id >= ?1 << 32 AND id < (?1 + 1) << 32 AND json IS NOT 'null'`, n, sumOf([]byte("null")))
		if err == nil {
			_, err = w.exec(`
				UPDATE compaction_message SET role = '', json = 'null', blob_id = NULL, sum = ?2
				WHERE json IS NOT 'null'
				  AND id >> 32 IN (SELECT id FROM compaction WHERE node_id = ?1)`, n, sumOf([]byte("null")))
		}
		if err != nil {
			return false, fmt.Errorf("forget messages of node %d: %w", n, err)
		}
		done.Messages += int(messages)
		worked = worked || messages > 0
	}
	return worked, nil
}

// dropSessions removes deleted sessions. One that recorded turns of a line that stays keeps its row.
func (w *WriteTx) dropSessions(r *reach, done *Collected) (bool, error) {
	worked := false
	for _, id := range r.sessions {
		n, err := w.exec(`
			DELETE FROM session
			WHERE id = ?1
			  AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_id = ?1)
			  AND NOT EXISTS (SELECT 1 FROM session c WHERE c.parent_id = ?1)
			  AND NOT EXISTS (SELECT 1 FROM operation o WHERE o.session_id = ?1)
			  AND NOT EXISTS (SELECT 1 FROM pin p WHERE p.session_id = ?1)
			  AND NOT EXISTS (SELECT 1 FROM call l WHERE l.session_id = ?1)
			  AND NOT EXISTS (SELECT 1 FROM workspace v WHERE v.current_id = ?1 OR v.previous_id = ?1)`, id)
		if err != nil {
			return false, fmt.Errorf("forget a deleted session: %w", err)
		}
		done.Sessions += int(n)
		worked = worked || n > 0
	}
	r.sessions = nil
	return worked, nil
}

func (w *WriteTx) dropBlobs(r *reach, done *Collected) (bool, error) {
	if len(r.blobs) == 0 {
		return false, nil
	}
	var writing bool
	if _, err := w.exec(`DELETE FROM blob_lease WHERE expires_ms <= ?`, ms(w.s.now())); err != nil {
		return false, err
	}
	err := w.r.Get(&writing, `SELECT EXISTS (SELECT 1 FROM blob_lease)`)
	if err != nil {
		return false, err
	}
	bytes, rows := int64(0), 0
	for len(r.blobs) > 0 && rows < stepRows && bytes < stepBytes {
		b := r.blobs[0]
		r.blobs = r.blobs[1:]
		rows++
		switch {
		case writing && b.chunk:
			r.later.add(uint32(b.id))
			done.Postponed++
			continue
		case b.named:
			err = w.s.blobs.Expire(w.w, blob.Retention, b.id)
		default:
			err = w.s.blobs.Delete(w.w, b.id)
		}
		if errors.Is(err, blob.ErrNeeded) { // since the first look, by what goes another time
			r.later.add(uint32(b.id))
			done.Postponed++
			continue
		}
		if err != nil {
			return false, err
		}
		bytes += b.stored
		done.Contents++
	}
	done.Bytes += bytes
	return true, nil
}

// giveBack returns free pages to the system.
func (w *WriteTx) giveBack(*reach, *Collected) (bool, error) {
	var free int64
	if err := w.r.Get(&free, `PRAGMA freelist_count`); err != nil || free == 0 {
		return false, err
	}
	// Each row that it answers stands for a page: it works only as long as it is read.
	rows, err := w.r.Query(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, stepPages))
	if err != nil {
		return false, err
	}
	for rows.Next() {
	}
	if err := closing(rows, rows.Err()); err != nil {
		return false, err
	}
	var now int64
	err = w.r.Get(&now, `PRAGMA freelist_count`)
	return now < free, err
}
