package store

import "slices"

// held is what a path is at a node.
type held struct {
	blob  uint32
	depth int64 // of the node that said so
}

// traveller goes through the nodes that stay, from the top, and knows at each what the paths are
// there. Its functions may be nil.
type traveller struct {
	tree *tree
	now  map[uint32]held
	// row is called for each row of a node, before it counts; had says whether the line has one
	// of the path already, which is was then.
	row func(node int, r treeRow, was held, had bool)
	// enter is called once a node's rows count, leave when nothing below it is left to see; last
	// says that no line goes on below it.
	enter func(node int)
	leave func(node int, last bool)
}

// passed is a node on the way down, with what it covered up.
type passed struct {
	node int
	kid  int  // next to visit
	goes bool // a line goes on below it
	old  []covered
}

type covered struct {
	path uint32
	was  held
	had  bool
}

func (t *traveller) travel() {
	t.now = map[uint32]held{}
	for i, n := range t.tree.nodes {
		if n.parent < 0 && t.tree.stays[i] {
			t.from(i)
		}
	}
}

func (t *traveller) from(top int) {
	stack := []passed{t.pass(top)}
	for len(stack) > 0 {
		p := &stack[len(stack)-1]
		if kids := t.tree.kids[p.node]; p.kid < len(kids) {
			p.kid++
			if kid := int(kids[p.kid-1]); t.tree.stays[kid] {
				p.goes = true
				stack = append(stack, t.pass(kid))
			}
			continue
		}
		if t.leave != nil {
			t.leave(p.node, !p.goes)
		}
		for _, c := range slices.Backward(p.old) {
			if c.had {
				t.now[c.path] = c.was
			} else {
				delete(t.now, c.path)
			}
		}
		stack = stack[:len(stack)-1]
	}
}

func (t *traveller) pass(i int) passed {
	p := passed{node: i}
	depth := t.tree.nodes[i].depth
	for _, r := range t.tree.rowsOf(i) {
		was, had := t.now[r.path]
		if t.row != nil {
			t.row(i, r, was, had)
		}
		p.old = append(p.old, covered{r.path, was, had})
		t.now[r.path] = held{r.after, depth}
	}
	if t.enter != nil {
		t.enter(i)
	}
	return p
}
