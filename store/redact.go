package store

import (
	"bytes"
	"context"
	"fmt"

	"reasonix/blob"
)

// Text is a text of a conversation: a message, or the prompt of a turn.
type Text struct {
	Session SessionID // that recorded it, or began the line it is on
	Turn    int       // that it belongs to or follows; -1 before turn 0
	Prompt  bool      // the prompt of the turn
	Size    int       // in bytes
}

// rewritten is a text with what takes its place.
type rewritten struct {
	Text
	table string // that it lies in
	id    int64  // of its row
	now   []byte
	large *blob.Prepared
}

// Redact rewrites texts of all conversations, deleted ones among them: replace gives what takes the
// place of a text, and whether that is another one; prompt says that it is plain text, else it is a
// JSON object, of which it must stay one. With dry nothing is written. All changes are made in one
// transaction. A message that is rewritten is then no longer the one that the model saw. What large
// messages were before is dropped with them.
func (s *Store) Redact(ctx context.Context, dry bool, replace func(text []byte, prompt bool) ([]byte, bool)) ([]Text, error) {
	var all []rewritten
	err := s.View(ctx, func(tx *Tx) error {
		var err error
		all, err = tx.texts(replace)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look through the conversations: %w", err)
	}
	found := make([]Text, 0, len(all))
	for i := range all {
		found = append(found, all[i].Text)
		if !dry && len(all[i].now) > inlineMessage && !all[i].Prompt {
			if all[i].large, err = s.blobs.Prepare(ctx, bytes.NewReader(all[i].now)); err != nil {
				return nil, fmt.Errorf("redact: %w", err)
			}
		}
	}
	if dry || len(all) == 0 {
		return found, nil
	}
	err = s.Update(ctx, func(tx *WriteTx) error {
		for _, r := range all {
			if err := tx.rewrite(r); err != nil {
				return fmt.Errorf("redact: %w", err)
			}
		}
		return nil
	})
	return found, err
}

func (t *Tx) texts(replace func([]byte, bool) ([]byte, bool)) (all []rewritten, err error) {
	for _, q := range []struct{ table, query string }{
		{"turn", `
			SELECT t.node_id, t.prompt, NULL, s.sid, n.turn
			FROM turn t
			JOIN node n ON n.id = t.node_id
			JOIN session s ON s.id = t.session_id
			ORDER BY t.node_id`},
		{"message", `
			SELECT m.id, m.json, b.hash, coalesce(s.sid, ''), n.turn
			FROM message m
			JOIN node n ON n.id = m.id >> 32
			LEFT JOIN blob b ON b.id = m.blob_id
			LEFT JOIN turn t ON t.node_id = n.id
			LEFT JOIN session s ON s.id = t.session_id
			ORDER BY m.id`},
		{"compaction_message", `
			SELECT m.id, m.json, b.hash, coalesce(s.sid, ''), n.turn
			FROM compaction_message m
			JOIN compaction c ON c.id = m.id >> 32
			JOIN node n ON n.id = c.node_id
			LEFT JOIN blob b ON b.id = m.blob_id
			LEFT JOIN turn t ON t.node_id = n.id
			LEFT JOIN session s ON s.id = t.session_id
			ORDER BY m.id`},
	} {
		rows, err := t.r.Query(q.query)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			r := rewritten{table: q.table}
			var text, hash []byte
			if err := rows.Scan(&r.id, &text, &hash, &r.Session, &r.Turn); err != nil {
				return nil, closing(rows, err)
			}
			if hash != nil {
				h, err := blob.FromBytes(hash)
				if err == nil {
					text, err = blob.ReadTx(t.r, h, maxMessage)
				}
				if err != nil {
					return nil, closing(rows, err)
				}
			}
			r.Prompt, r.Size = q.table == "turn", len(text)
			if now, changed := replace(text, r.Prompt); changed {
				r.now = now
				all = append(all, r)
			}
		}
		if err := closing(rows, rows.Err()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (w *WriteTx) rewrite(r rewritten) error {
	if r.Prompt {
		_, err := w.exec(`UPDATE turn SET prompt = ? WHERE node_id = ?`, string(r.now), r.id)
		return err
	}
	var (
		text, content any
		was           blob.ID
	)
	err := noRows(w.r.QueryRow(`SELECT coalesce(blob_id, 0) FROM `+r.table+` WHERE id = ?`, r.id).Scan(&was), ErrCorrupt)
	if err != nil {
		return err
	}
	if r.large == nil {
		text = string(r.now)
	} else {
		id, err := w.s.blobs.Bind(w.w, r.large)
		if err != nil {
			return err
		}
		content = int64(id)
	}
	_, err = w.exec(`UPDATE `+r.table+` SET json = ?, blob_id = ?, sum = ? WHERE id = ?`, text, content, sumOf(r.now), r.id)
	if err != nil || was == 0 {
		return err
	}
	return w.dropUnused(was)
}

// dropUnused drops a content of a message, unless something else needs it.
func (w *WriteTx) dropUnused(id blob.ID) error {
	var used bool
	err := w.r.Get(&used, `
		SELECT EXISTS (SELECT 1 FROM message WHERE blob_id = ?1)
		    OR EXISTS (SELECT 1 FROM compaction_message WHERE blob_id = ?1)
		    OR EXISTS (SELECT 1 FROM change WHERE before_blob = ?1 OR after_blob = ?1)
		    OR EXISTS (SELECT 1 FROM operation_path WHERE from_blob = ?1 OR to_blob = ?1)
		    OR EXISTS (SELECT 1 FROM blob_chunk WHERE chunk_id = ?1)`, id)
	if err != nil || used {
		return err
	}
	dependents, err := collect(&w.Tx, func(row scanner) (d blob.ID, err error) { return d, row.Scan(&d) },
		`SELECT id FROM blob WHERE base_id = ? ORDER BY id`, id)
	if err != nil {
		return err
	}
	if err := w.s.blobs.Detach(w.w, dependents...); err != nil {
		return err
	}
	chunks, err := collect(&w.Tx, func(row scanner) (d blob.ID, err error) { return d, row.Scan(&d) },
		`SELECT DISTINCT chunk_id FROM blob_chunk WHERE blob_id = ? ORDER BY chunk_id`, id)
	if err != nil {
		return err
	}
	if err := w.s.blobs.Delete(w.w, id); err != nil {
		return err
	}
	for _, c := range chunks {
		if err := w.dropUnused(c); err != nil {
			return err
		}
	}
	return nil
}
