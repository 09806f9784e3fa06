package store

import "iter"

// tree is the history as collection sees it. Nodes are numbered by their place in nodes, which
// has parents before their children.
type tree struct {
	nodes []treeNode
	place map[NodeID]int
	rows  []treeRow // by node
	// Of each node, by its place.
	kids   [][]int32
	stays  []bool // a line that stays goes through it
	fresh  []bool // the contents of its rows stay
	stands []bool // the state at its end stays restorable
}

type treeNode struct {
	id       NodeID
	parent   int // -1 at the top
	kind     NodeKind
	segment  NodeID
	depth    int64
	created  int64 // unix milliseconds
	messages int64
	from, to int // its rows
}

// treeRow is a row of contents: 0 is none. A path's rows are what the states of it hang on.
type treeRow struct {
	path, before, after uint32
}

func (t *Tx) tree() (*tree, error) {
	tr := &tree{place: map[NodeID]int{}}
	rows, err := t.r.Query(`
		SELECT id, coalesce(parent_id, 0), kind, segment, depth, created_ms, msg_count
		FROM node
		ORDER BY id`)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var (
			n      treeNode
			parent NodeID
		)
		if err := rows.Scan(&n.id, &parent, &n.kind, &n.segment, &n.depth, &n.created, &n.messages); err != nil {
			return nil, closing(rows, err)
		}
		n.parent = -1
		if parent != 0 {
			p, ok := tr.place[parent]
			if !ok {
				return nil, closing(rows, ErrCorrupt)
			}
			n.parent = p
		}
		tr.place[n.id] = len(tr.nodes)
		tr.nodes = append(tr.nodes, n)
	}
	if err := closing(rows, rows.Err()); err != nil {
		return nil, err
	}
	n := len(tr.nodes)
	tr.kids, tr.stays, tr.fresh, tr.stands = make([][]int32, n), make([]bool, n), make([]bool, n), make([]bool, n)
	for i, one := range tr.nodes {
		if one.parent >= 0 {
			tr.kids[one.parent] = append(tr.kids[one.parent], int32(i))
		}
	}
	return tr, tr.readRows(t)
}

func (tr *tree) readRows(t *Tx) error {
	at := map[[2]int64]int{}
	for i, n := range tr.nodes {
		at[[2]int64{int64(n.segment), n.depth}] = i
	}
	rows, err := t.r.Query(`
		SELECT segment, depth, path_id, coalesce(before_blob, 0), coalesce(after_blob, 0)
		FROM change
		ORDER BY segment, depth, seq`)
	if err != nil {
		return err
	}
	last := [2]int64{-1, -1}
	place := 0
	for rows.Next() {
		var (
			where [2]int64
			r     treeRow
		)
		if err := rows.Scan(&where[0], &where[1], &r.path, &r.before, &r.after); err != nil {
			return closing(rows, err)
		}
		if where != last {
			i, ok := at[where]
			if !ok {
				return closing(rows, ErrCorrupt)
			}
			place, last = i, where
			tr.nodes[i].from = len(tr.rows)
		}
		tr.rows = append(tr.rows, r)
		tr.nodes[place].to = len(tr.rows)
	}
	return closing(rows, rows.Err())
}

func (tr *tree) rowsOf(i int) []treeRow { return tr.rows[tr.nodes[i].from:tr.nodes[i].to] }

// conversation is the line of a node up to its session's root, newest first, by place.
func (tr *tree) conversation(id NodeID) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, ok := tr.place[id]; ok && i >= 0 && yield(i) && tr.nodes[i].kind != RootNode; {
			i = tr.nodes[i].parent
		}
	}
}

// keepLine lets the nodes from id to the top stay.
func (tr *tree) keepLine(id NodeID) {
	i, ok := tr.place[id]
	for ok && i >= 0 && !tr.stays[i] {
		tr.stays[i] = true
		i = tr.nodes[i].parent
	}
}

// keepState lets the state at the end of a node stay restorable, from wherever the disk stands.
func (tr *tree) keepState(id NodeID) {
	if i, ok := tr.place[id]; ok {
		tr.stands[i] = true
		tr.keepLine(id)
	}
}

// keepTurn lets the state at the start of a turn stay restorable.
func (tr *tree) keepTurn(id NodeID) {
	i, ok := tr.place[id]
	if !ok {
		return
	}
	tr.keepLine(id)
	if p := tr.nodes[i].parent; p >= 0 {
		tr.keepState(tr.nodes[p].id)
	}
}
