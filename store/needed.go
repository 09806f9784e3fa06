package store

import (
	"maps"
	"slices"
)

// bits is a set of small numbers.
type bits []uint64

func (b *bits) add(n uint32) bool {
	at := int(n >> 6)
	if at >= len(*b) {
		*b = append(*b, make([]uint64, max(at+1-len(*b), len(*b)))...)
	}
	was := (*b)[at]
	(*b)[at] = was | 1<<(n&63)
	return was != (*b)[at]
}

func (b bits) has(n uint32) bool { return int(n>>6) < len(b) && b[n>>6]>>(n&63)&1 == 1 }

// unseen is a path before its first rows.
type unseen struct {
	befores []uint32
	covered int // kept states whose line has a row of the path
}

// needed finds the contents that the kept states consist of (docs/design.md, collection). For a kept
// state these are, path by path, what the last row on its line says after; and where no row on its
// line is about a path, what the first rows elsewhere say before.
//
// A content counts when the state it belongs to is followed by another one, or its line ends, with a
// kept state in between.
func (tr *tree) needed() bits {
	var (
		need bits
		kept []int // kept states on the line in hand, as depths come
		done = make([]bool, len(tr.nodes))
	)
	below, total := tr.countKept()
	paths := map[uint32]*unseen{}
	t := traveller{tree: tr}
	t.row = func(i int, r treeRow, was held, had bool) {
		switch {
		case !had:
			u := paths[r.path]
			if u == nil {
				u = &unseen{}
				paths[r.path] = u
			}
			u.befores = append(u.befores, r.before)
			u.covered += below[i]
		case len(kept) > 0 && tr.nodes[kept[len(kept)-1]].depth >= was.depth:
			need.add(was.blob)
			need.add(r.before)
		}
	}
	t.enter = func(i int) {
		if tr.stands[i] {
			kept = append(kept, i)
		}
	}
	t.leave = func(i int, last bool) {
		// What another line with the same last kept state holds at its end was looked at before,
		// or when it was covered up.
		if n := len(kept); last && n > 0 && !done[kept[n-1]] {
			done[kept[n-1]] = true
			depth := tr.nodes[kept[n-1]].depth
			for _, h := range t.now {
				if h.depth <= depth {
					need.add(h.blob)
				}
			}
		}
		if tr.stands[i] {
			kept = kept[:len(kept)-1]
		}
	}
	t.travel()
	for _, u := range paths {
		if u.covered < total {
			for _, b := range u.befores {
				need.add(b)
			}
		}
	}
	for i, n := range tr.nodes {
		if tr.fresh[i] {
			for _, r := range tr.rows[n.from:n.to] {
				need.add(r.before)
				need.add(r.after)
			}
		}
	}
	return need
}

// countKept counts, for each node, the kept states at or below it, and all of them.
func (tr *tree) countKept() (below []int, total int) {
	below = make([]int, len(tr.nodes))
	for i := len(tr.nodes) - 1; i >= 0; i-- { // children have higher places
		if tr.stands[i] {
			below[i]++
			total++
		}
		if p := tr.nodes[i].parent; p >= 0 {
			below[p] += below[i]
		}
	}
	return below, total
}

// losing are the turns to whose beginning the files cannot be taken back whole without the contents
// in gone: those between a row whose before is gone and the row of the same path above it.
func (tr *tree) losing(gone bits) []NodeID {
	var turns []int // on the line in hand
	lost := map[int]bool{}
	t := traveller{tree: tr}
	begins := func(i int) bool { return tr.nodes[i].kind == TurnNode }
	t.row = func(i int, r treeRow, was held, had bool) {
		if r.before == 0 || !gone.has(r.before) {
			return
		}
		if begins(i) { // it is entered after its rows
			lost[i] = lost[i] || !had || was.depth < tr.nodes[i].depth
		}
		for _, turn := range slices.Backward(turns) {
			if had && tr.nodes[turn].depth <= was.depth {
				return
			}
			lost[turn] = true
		}
	}
	t.enter = func(i int) {
		if begins(i) {
			turns = append(turns, i)
		}
	}
	t.leave = func(i int, _ bool) {
		if begins(i) {
			turns = turns[:len(turns)-1]
		}
	}
	t.travel()
	all := make([]NodeID, 0, len(lost))
	for _, i := range slices.Sorted(maps.Keys(lost)) {
		all = append(all, tr.nodes[i].id)
	}
	return all
}
