package store

import (
	"cmp"
	"maps"
	"slices"

	"reasonix/blob"
)

// reach is what a Keep lets go.
type reach struct {
	nodes    []NodeID    // children before parents
	silent   []NodeID    // nodes that stay for the files alone: their messages go
	ops      []OpID      // newest first
	sessions []int64     // rows of deleted sessions that nothing needs
	anchor   NodeID      // a node that stays, for those of them whose row has to
	blobs    []droppable // in the order in which they can go
	turns    []NodeID    // that can not be restored any more and that could be before
	later    bits        // contents that were postponed
	bytes    int64       // that the contents hold now
}

// droppable is a content that nothing kept consists of.
type droppable struct {
	id     blob.ID
	named  bool // something that stays refers to it: its row stays
	chunk  bool // it may be a part of a content that is being written
	stored int64
}

// reach works out what k lets go. It asks the store only for what hangs on what stays.
func (t *Tx) reach(s *survey, k Keep) (*reach, error) {
	tr := s.tree
	clear(tr.stays)
	clear(tr.fresh)
	clear(tr.stands)
	r := &reach{}
	ops := s.keptOps(k)
	live := s.keptSessions(ops)
	for _, one := range s.sessions {
		if live[one.id] {
			tr.keepState(one.head)
			tr.keepLine(one.root)
		}
	}
	for _, n := range s.pins {
		tr.keepTurn(n)
	}
	for _, o := range s.ops {
		if !ops[o.id] {
			continue
		}
		for _, n := range []NodeID{o.from, o.to} {
			if o.kind.Undoable() || o.kind == OpUndo || o.state == Applying {
				tr.keepState(n)
			} else {
				tr.keepLine(n)
			}
		}
	}
	s.keepTurns(k, live)
	if n := len(tr.nodes); n > 0 {
		r.anchor = tr.nodes[n-1].id // which must not be given to another node
		tr.keepLine(r.anchor)
	}
	for i := len(tr.nodes) - 1; i >= 0; i-- {
		if !tr.stays[i] {
			r.nodes = append(r.nodes, tr.nodes[i].id)
		}
	}
	r.ops = s.lostOps(ops)
	talk := make([]bool, len(tr.nodes))
	speak := func(n NodeID) {
		for i := range tr.conversation(n) {
			talk[i] = true
		}
	}
	for _, one := range s.sessions {
		if live[one.id] {
			speak(one.head)
		} else if one.deleted {
			r.sessions = append(r.sessions, one.id)
		}
	}
	for _, n := range s.pins {
		speak(n)
	}
	for _, o := range s.ops {
		if ops[o.id] {
			speak(o.from)
			speak(o.to)
		}
	}
	for i, n := range tr.nodes {
		if tr.stays[i] && !talk[i] && n.messages > 0 {
			r.silent = append(r.silent, n.id)
		}
	}
	return r, t.reachBlobs(s, k, r, ops, talk)
}

// keptOps are the operations inside the window, and those that one of them names.
func (s *survey) keptOps(k Keep) map[OpID]bool {
	byID := map[OpID]keptOp{}
	for _, o := range s.ops {
		byID[o.id] = o
	}
	kept := map[OpID]bool{}
	var keep func(id OpID)
	keep = func(id OpID) {
		if o, ok := byID[id]; ok && !kept[id] {
			kept[id] = true
			keep(o.of)
			keep(o.by)
		}
	}
	for _, o := range s.ops {
		if o.state == Applying || o.created >= ms(k.Since) {
			keep(o.id)
		}
	}
	return kept
}

// keptSessions are those that there are, those that are being imported, and deleted ones that undo
// can bring back.
func (s *survey) keptSessions(ops map[OpID]bool) map[int64]bool {
	live := map[int64]bool{}
	for _, one := range s.sessions {
		live[one.id] = !one.deleted || one.importing
	}
	for _, o := range s.ops {
		if ops[o.id] && (o.kind == OpDelete || o.state == Applying) {
			live[o.session] = true
		}
	}
	return live
}

// lostOps are the operations, newest first, that led from or to a node that goes, and those that
// name one of them or are named by it. All others stay in the log.
func (s *survey) lostOps(kept map[OpID]bool) []OpID {
	lost := map[OpID]bool{}
	for _, o := range s.ops {
		for _, n := range []NodeID{o.from, o.to} {
			if i, ok := s.tree.place[n]; ok && !s.tree.stays[i] && !kept[o.id] {
				lost[o.id] = true
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for _, o := range s.ops {
			if !lost[o.id] && (lost[o.of] || lost[o.by]) {
				lost[o.id], grown = true, true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(lost), func(a, b OpID) int { return int(b - a) })
}

// keepTurns decides about each turn of a line that stays.
func (s *survey) keepTurns(k Keep, live map[int64]bool) {
	tr := s.tree
	newest, within := map[int]bool{}, map[int]bool{}
	only := int64(0)
	for _, one := range s.sessions {
		if one.sid == k.Session {
			only = one.id
		}
		if !live[one.id] {
			continue
		}
		n := 0
		for i := range tr.conversation(one.head) {
			// What came after the last turn is needed to go back to its end.
			tr.fresh[i] = tr.fresh[i] || n == 0
			if tr.nodes[i].kind == TurnNode {
				newest[i], within[i] = newest[i] || n == 0, true
				if n++; n >= max(k.Turns, 1) {
					break
				}
			}
		}
	}
	pinned := map[NodeID]bool{}
	for _, n := range s.pins {
		pinned[n] = true
	}
	kept := make([]bool, len(tr.nodes))
	for _, t := range s.turns {
		i, ok := tr.place[t.node]
		if !ok || !tr.stays[i] {
			continue
		}
		recent := t.active >= ms(k.Since) && (k.Turns == 0 || within[i])
		if kept[i] = t.open || newest[i] || recent || only != 0 && t.session != only; kept[i] || pinned[t.node] {
			tr.keepTurn(t.node)
		}
	}
	for i, n := range tr.nodes {
		switch {
		case !tr.stays[i]:
		case n.kind == TurnNode:
			tr.fresh[i] = tr.fresh[i] || kept[i]
		case n.kind == RootNode:
			tr.fresh[i] = tr.fresh[i] || n.created >= ms(k.Since)
		default:
			tr.fresh[i] = tr.fresh[i] || tr.fresh[n.parent]
		}
	}
}

// reachBlobs finds the contents that nothing kept consists of.
func (t *Tx) reachBlobs(s *survey, k Keep, r *reach, ops map[OpID]bool, talk []bool) error {
	need := s.tree.needed()
	var named bits
	for i, n := range s.tree.nodes {
		if s.tree.stays[i] {
			for _, row := range s.tree.rows[n.from:n.to] {
				named.add(row.before)
				named.add(row.after)
			}
		}
	}
	lost := map[OpID]bool{}
	for _, id := range r.ops {
		lost[id] = true
	}
	err := t.each(func(op int64, content uint32) {
		if lost[OpID(op)] {
			return
		}
		named.add(content)
		if ops[OpID(op)] {
			need.add(content)
		}
	}, `
		SELECT operation_id, from_blob FROM operation_path WHERE from_blob IS NOT NULL
		UNION ALL
		SELECT operation_id, to_blob FROM operation_path WHERE to_blob IS NOT NULL`)
	if err != nil {
		return err
	}
	err = t.each(func(node int64, content uint32) {
		if i, ok := s.tree.place[NodeID(node)]; ok && s.tree.stays[i] && talk[i] {
			need.add(content)
			named.add(content)
		}
	}, `
		SELECT id >> 32, blob_id FROM message WHERE blob_id IS NOT NULL
		UNION ALL
		SELECT c.node_id, m.blob_id
		FROM compaction_message m
		JOIN compaction c ON c.id = m.id >> 32
		WHERE m.blob_id IS NOT NULL`)
	if err != nil {
		return err
	}
	if err := t.needHashes(k, &need); err != nil {
		return err
	}
	if err := t.needParts(s, &need); err != nil {
		return err
	}
	return t.droppable(s, r, need, named)
}

// each asks for pairs of an owner and a content.
func (t *Tx) each(do func(owner int64, content uint32), query string) error {
	rows, err := t.r.Query(query)
	if err != nil {
		return err
	}
	for rows.Next() {
		var (
			owner   int64
			content uint32
		)
		if err := rows.Scan(&owner, &content); err != nil {
			return closing(rows, err)
		}
		do(owner, content)
	}
	return closing(rows, rows.Err())
}

func (t *Tx) needHashes(k Keep, need *bits) error {
	if k.Hashes == nil {
		return nil
	}
	wanted := map[blob.Hash]struct{}{}
	for h := range k.Hashes {
		wanted[h] = struct{}{}
	}
	if len(wanted) == 0 {
		return nil
	}
	rows, err := t.r.Query(`SELECT id, hash FROM blob`)
	if err != nil {
		return err
	}
	for rows.Next() {
		var (
			id   uint32
			hash []byte
			h    blob.Hash
		)
		if err := rows.Scan(&id, &hash); err != nil {
			return closing(rows, err)
		}
		copy(h[:], hash)
		if _, ok := wanted[h]; ok {
			need.add(id)
		}
	}
	return closing(rows, rows.Err())
}

// needParts adds what needed contents are stored against, and their chunks.
func (t *Tx) needParts(s *survey, need *bits) error {
	err := t.each(func(of int64, chunk uint32) {
		if need.has(uint32(of)) {
			need.add(chunk)
		}
	}, `SELECT blob_id, chunk_id FROM blob_chunk`)
	if err != nil {
		return err
	}
	for _, b := range byDepth(s.blobs) {
		if b.base != 0 && need.has(b.id) {
			need.add(b.base)
		}
	}
	return nil
}

// byDepth sorts contents so that those come first that are stored against others.
func byDepth(all []keptBlob) []keptBlob {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b keptBlob) int {
		if c := cmp.Compare(b.encoding/blob.Chunked, a.encoding/blob.Chunked); c != 0 {
			return c
		}
		return cmp.Compare(b.depth, a.depth)
	})
	return all
}

// droppable lists what goes, and the turns that lose something by it.
func (t *Tx) droppable(s *survey, r *reach, need, named bits) error {
	var parts, gone bits
	err := t.each(func(_ int64, chunk uint32) { parts.add(chunk) }, `SELECT blob_id, chunk_id FROM blob_chunk`)
	if err != nil {
		return err
	}
	for _, b := range byDepth(s.blobs) {
		d := droppable{id: blob.ID(b.id), named: named.has(b.id), stored: b.stored}
		d.chunk = parts.has(b.id) || !d.named
		empty := b.expired || b.encoding == blob.Raw && b.stored == 0
		if need.has(b.id) || d.named && empty {
			continue
		}
		r.blobs = append(r.blobs, d)
		r.bytes += d.stored
		gone.add(b.id)
	}
	r.turns = s.tree.losing(gone)
	return nil
}
