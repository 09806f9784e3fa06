package store

import "slices"

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

// walk finds the contents that the kept states consist of (docs/design.md, collection). For a kept
// state these are, path by path, what the last row on its line says after; and where no row on its
// line is about a path, what the first rows elsewhere say before.
//
// It goes through the nodes that stay once, with the state of each path at the node in hand. A content counts
// when the state it belongs to is followed by another one, or its line ends, with a kept state in
// between.
type walk struct {
	tree  *tree
	need  bits
	now   map[uint32]held
	fills map[uint32]*unseen
	total int // kept states
	below []int
	done  []bool // of a kept state: its line was ended once, so all its contents were looked at
}

// held is what a path is at the node in hand.
type held struct {
	blob  uint32
	depth int64 // of the node that said so
}

// unseen is a path before its first rows.
type unseen struct {
	befores []uint32
	covered int // kept states whose line has a row of the path
}

func (tr *tree) needed() bits {
	w := &walk{
		tree: tr, now: map[uint32]held{}, fills: map[uint32]*unseen{},
		below: make([]int, len(tr.nodes)), done: make([]bool, len(tr.nodes)),
	}
	for i := len(tr.nodes) - 1; i >= 0; i-- { // children have higher places
		if tr.stands[i] {
			w.below[i]++
			w.total++
		}
		if p := tr.nodes[i].parent; p >= 0 {
			w.below[p] += w.below[i]
		}
	}
	for i, n := range tr.nodes {
		if n.parent < 0 && tr.stays[i] {
			w.visit(i)
		}
	}
	for _, u := range w.fills {
		if u.covered < w.total {
			for _, b := range u.befores {
				w.need.add(b)
			}
		}
	}
	for i, n := range tr.nodes {
		if tr.fresh[i] {
			for _, r := range tr.rows[n.from:n.to] {
				w.need.add(r.before)
				w.need.add(r.after)
			}
		}
	}
	return w.need
}

// walkStep is a node on the way down, with what it covered up.
type walkStep struct {
	node int
	kid  int  // next to visit
	goes bool // a line goes on below it
	kept int  // the nearest kept state above or at it; -1 for none
	old  []covered
}

type covered struct {
	path uint32
	was  held
	had  bool
}

func (w *walk) visit(top int) {
	stack := []walkStep{w.enter(top, -1)}
	for len(stack) > 0 {
		s := &stack[len(stack)-1]
		kids := w.tree.kids[s.node]
		if s.kid < len(kids) {
			s.kid++
			if kid := int(kids[s.kid-1]); w.tree.stays[kid] {
				s.goes = true
				stack = append(stack, w.enter(kid, s.kept))
			}
			continue
		}
		if !s.goes {
			w.lineEnds(s.kept)
		}
		for _, c := range slices.Backward(s.old) {
			if c.had {
				w.now[c.path] = c.was
			} else {
				delete(w.now, c.path)
			}
		}
		stack = stack[:len(stack)-1]
	}
}

func (w *walk) enter(i, kept int) walkStep {
	s := walkStep{node: i, kept: kept}
	depth := w.tree.nodes[i].depth
	for _, r := range w.tree.rowsOf(i) {
		was, had := w.now[r.path]
		switch {
		case !had:
			u := w.fills[r.path]
			if u == nil {
				u = &unseen{}
				w.fills[r.path] = u
			}
			u.befores = append(u.befores, r.before)
			u.covered += w.below[i]
		case kept >= 0 && w.tree.nodes[kept].depth >= was.depth:
			w.need.add(was.blob)
			w.need.add(r.before)
		}
		s.old = append(s.old, covered{r.path, was, had})
		w.now[r.path] = held{r.after, depth}
	}
	if w.tree.stands[i] {
		s.kept = i
	}
	return s
}

// lineEnds looks at what a line holds at its end. What another line with the same last kept state
// holds was looked at before, or when it was covered up.
func (w *walk) lineEnds(kept int) {
	if kept < 0 || w.done[kept] {
		return
	}
	w.done[kept] = true
	depth := w.tree.nodes[kept].depth
	for _, h := range w.now {
		if h.depth <= depth {
			w.need.add(h.blob)
		}
	}
}
