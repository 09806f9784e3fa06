package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Collected says what collection dropped, or would drop.
type Collected struct {
	Contents   int   // contents whose bytes went
	Bytes      int64 // that they took in the store
	Postponed  int   // contents that go another time: they may be parts of one that is being written
	Nodes      int   // steps of the history that nothing leads to any more
	Messages   int   // of lines that nothing leads to any more
	Operations int   // entries of the log about such steps
	Sessions   int   // deleted sessions that can not be brought back any more
	// Turns can not be restored whole any more. Only Plan fills it.
	Turns []TurnRef
}

// TurnRef names a turn by the session that recorded it.
type TurnRef struct {
	Session SessionID
	Turn    int
}

// Add adds what one more step did.
func (c *Collected) Add(d Collected) {
	c.Contents += d.Contents
	c.Bytes += d.Bytes
	c.Postponed += d.Postponed
	c.Nodes += d.Nodes
	c.Messages += d.Messages
	c.Operations += d.Operations
	c.Sessions += d.Sessions
}

// Collector drops what a Keep lets go, in steps that are each one short transaction. It may be
// left after any step, and killed in any: the next one begins with what is left. Others may record
// meanwhile; what they wrote since the last step is looked at before anything goes.
type Collector struct {
	s       *Store
	keep    func(*Tx) (Keep, error)
	version int64 // of the data that left was made from, as other connections count
	began   int64 // the same as this one counts: the transaction of the last step
	left    *reach
	target  bits // contents that may go: those of the first look
}

// Collector returns one; keep is asked again whenever somebody else wrote.
func (s *Store) Collector(keep func(*Tx) (Keep, error)) *Collector {
	return &Collector{s: s, keep: keep}
}

// PlanCollection says what would go now, for each of several Keeps, and drops nothing.
func (s *Store) PlanCollection(ctx context.Context, keep func(*Tx) ([]Keep, error)) (all []Collected, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		keeps, err := keep(tx)
		if err != nil {
			return err
		}
		survey, err := tx.survey()
		if err != nil {
			return fmt.Errorf("survey the history: %w", err)
		}
		for _, k := range keeps {
			r, err := tx.reach(survey, k)
			if err != nil {
				return err
			}
			c, err := tx.tell(r)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		return nil
	})
	return all, err
}

// tell counts what a reach lets go.
func (t *Tx) tell(r *reach) (Collected, error) {
	c := Collected{Contents: len(r.blobs), Bytes: r.bytes, Nodes: len(r.nodes), Operations: len(r.ops), Sessions: len(r.sessions)}
	for _, nodes := range [][]NodeID{r.nodes, r.silent} {
		for _, n := range nodes {
			var count int
			if err := t.r.Get(&count, `SELECT count(*) FROM message WHERE id >= ?1 << 32 AND id < (?1 + 1) << 32 AND json IS NOT 'null'`, n); err != nil {
				return c, err
			}
			c.Messages += count
		}
	}
	var err error
	c.Turns, err = t.turnRefs(r.turns)
	return c, err
}

// turnRefs names turns by their nodes.
func (t *Tx) turnRefs(nodes []NodeID) (all []TurnRef, err error) {
	for _, n := range nodes {
		var ref TurnRef
		err := t.r.QueryRow(`
			SELECT s.sid, n.turn
			FROM node n
			JOIN turn t ON t.node_id = n.id
			JOIN session s ON s.id = t.session_id
			WHERE n.id = ?`, n).Scan(&ref.Session, &ref.Turn)
		if err != nil {
			return nil, noRows(err, ErrCorrupt)
		}
		all = append(all, ref)
	}
	return all, nil
}

// Step drops a little. more says whether there is anything left to do. An error, also that of ctx,
// leaves the steps before it done.
func (c *Collector) Step(ctx context.Context) (done Collected, more bool, err error) {
	var left reach
	err = c.s.Update(ctx, func(tx *WriteTx) error {
		done = Collected{}
		if err := c.look(tx); err != nil {
			return err
		}
		left, more = *c.left, true
		for _, part := range []func(*reach, *Collected) (bool, error){
			tx.dropOps, tx.unhook, tx.dropNodes, tx.silence, tx.dropSessions, tx.dropBlobs, tx.giveBack,
		} {
			if worked, err := part(&left, &done); worked || err != nil {
				return err
			}
		}
		more = false
		return nil
	})
	if err != nil {
		return Collected{}, false, fmt.Errorf("collect: %w", err)
	}
	c.left = &left
	return done, more, nil
}

// look works out anew what may go when anybody else has written: another process, or another part of
// this one, which shares the connection.
func (c *Collector) look(tx *WriteTx) error {
	var version int64
	if err := tx.r.Get(&version, `PRAGMA data_version`); err != nil {
		return err
	}
	alone := c.s.began.Load() == c.began+1
	c.began = c.s.began.Load()
	if c.left != nil && c.version == version && alone {
		return nil
	}
	k, err := c.keep(&tx.Tx)
	if err != nil {
		return err
	}
	s, err := tx.survey()
	if err != nil {
		return fmt.Errorf("survey the history: %w", err)
	}
	now, err := tx.reach(s, k)
	if err != nil {
		return err
	}
	if c.left == nil {
		for _, b := range now.blobs {
			c.target.add(uint32(b.id))
		}
	} else {
		// Others go on recording: what they let go since then is the next collection's, or this one
		// would never end.
		now.later = c.left.later
		now.blobs = slices.DeleteFunc(now.blobs, func(b droppable) bool {
			return !c.target.has(uint32(b.id)) || now.later.has(uint32(b.id))
		})
	}
	c.left, c.version = now, version
	return nil
}

// Size is how large the store is, in bytes, and how much of that is free for reuse.
func (t *Tx) Size() (all, free int64, err error) { return t.r.Size() }

// TurnTimes are the moments at which the turns were last active, oldest first, each once.
func (t *Tx) TurnTimes() ([]time.Time, error) {
	return collect(t, func(row scanner) (time.Time, error) {
		var active int64
		err := row.Scan(&active)
		return at(active), err
	}, `SELECT DISTINCT coalesce(ended_ms, started_ms) AS active FROM turn ORDER BY active`)
}

// Due says when collection by itself comes next; zero when it never ran.
func (t *Tx) Due() (due time.Time, err error) {
	var when int64
	err = noRows(t.r.QueryRow(`SELECT due_ms FROM collection WHERE id = 1`).Scan(&when), nil)
	return at(when), err
}

// SetDue says when collection by itself comes next.
func (w *WriteTx) SetDue(due time.Time) error {
	_, err := w.exec(`
		INSERT INTO collection (id, due_ms) VALUES (1, ?)
		ON CONFLICT (id) DO UPDATE SET due_ms = excluded.due_ms`, ms(due))
	return err
}

// Checkpoint gives the space of what was dropped back to the system (db.DB.Checkpoint).
func (s *Store) Checkpoint(ctx context.Context) error {
	_, err := s.db.Checkpoint(ctx)
	return err
}
