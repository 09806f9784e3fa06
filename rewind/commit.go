package rewind

import (
	"maps"
	"slices"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// moved says between which nodes a committed move led.
type moved struct {
	from, to store.NodeID
	branch   store.SessionID
}

// commitMove records what was looked at, adds the node that holds the rows of the move, and
// moves the head.
func (d *draft) commitMove(tx *store.WriteTx, r Request) (moved, error) {
	a := d.aim
	from, err := d.addRows(tx, a.from, store.AppendNode, d.looked)
	if err != nil {
		return moved{}, err
	}
	to := a.target
	if to == 0 || a.stays {
		to = from
	}
	kind, rows := store.CarryNode, []store.Change(nil)
	if a.stays {
		kind, rows = store.RestoreNode, d.restored()
	} else if rows, err = d.carried(tx, to); err != nil {
		return moved{}, err
	}
	if to, err = d.addRows(tx, to, kind, rows); err != nil {
		return moved{}, err
	}
	m := moved{from: from, to: to}
	if r.Kind == store.OpFork || r.Kind == store.OpSwitch {
		// The line that is left keeps what was seen of it.
		if err := tx.SetHead(a.session.ID, from); err != nil {
			return moved{}, err
		}
	}
	switch r.Kind {
	case store.OpFork:
		s, err := tx.CreateSession(store.NewSession{
			Name: r.Name, Head: to, Parent: a.session.ID, ForkTurn: a.turn, ForkMsg: a.messages,
		})
		if err != nil {
			return moved{}, err
		}
		m.branch = s.ID
		return m, tx.SetCurrent(s.ID)
	case store.OpSwitch:
		if a.session.ID == a.moving.ID {
			m.to = from
			return m, nil
		}
		if err := tx.SetHead(a.moving.ID, to); err != nil {
			return moved{}, err
		}
		return m, tx.SetCurrent(a.moving.ID)
	case store.OpRewind, store.OpUndo, store.OpRedo, store.OpCompact, store.OpImport, store.OpGC, store.OpDelete:
	}
	return m, tx.SetHead(a.session.ID, to)
}

// addRows adds a node with rows below parent; without rows there is no node.
func (d *draft) addRows(tx *store.WriteTx, below store.NodeID, kind store.NodeKind, rows []store.Change) (store.NodeID, error) {
	if len(rows) == 0 {
		return below, nil
	}
	n, err := tx.AddNode(below, kind)
	if err != nil {
		return 0, err
	}
	for _, c := range rows {
		if err := tx.AppendChange(n, c); err != nil {
			return 0, err
		}
	}
	return n.ID, nil
}

// restored are the rows of a code rewind: what it wrote.
func (d *draft) restored() []store.Change {
	var rows []store.Change
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		s := d.steps[p]
		rows = append(rows, store.Change{Path: p, Source: store.SourceRestore, Origin: store.Agent, Before: s.from, After: s.to})
	}
	return rows
}

// carried are the rows of a move of the head: where the disk is then not as the line that was
// reached knows it. Each keeps the origin of the path's newest row on the line that was left.
func (d *draft) carried(tx *store.WriteTx, target store.NodeID) ([]store.Change, error) {
	paths := map[store.Path]bool{}
	for p := range d.moves {
		paths[p] = true
	}
	for p := range d.steps {
		paths[p] = true
	}
	var rows []store.Change
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		m, planned := d.moves[p]
		there := m.Want
		if !planned || d.aim.added[p] {
			row, err := tx.Newest(target, p)
			if err != nil {
				return nil, err
			}
			switch {
			case row != nil:
				there = row.After
			case d.steps[p].implied: // a way back brings back what was in the way
				there, m.Last = d.steps[p].from, store.Agent
			default:
				continue
			}
		}
		disk := d.seen[p].State
		if s, ok := d.steps[p]; ok {
			disk = s.to
		}
		if disk == there {
			continue
		}
		origin := store.External
		switch {
		case m.Last != 0:
			origin = m.Last
		case d.aim.newest[p] != nil:
			origin = d.aim.newest[p].Origin
		}
		rows = append(rows, store.Change{Path: p, Source: store.SourceCarry, Origin: origin, Before: there, After: disk})
	}
	return rows, nil
}

// keep turns a step into a path that was left alone.
func (d *draft) keep(p store.Path) {
	delete(d.steps, p)
	d.left[p] = true
	d.result.Deleted = slices.DeleteFunc(d.result.Deleted, func(q store.Path) bool { return p == q })
}

func (d *draft) operation(r Request) store.Operation {
	return store.Operation{
		Session: d.aim.moving.ID, Kind: r.Kind, Scope: r.Scope, Turn: d.aim.turn, Of: d.aim.of.ID,
		Written: len(d.result.Written), Deleted: len(d.result.Deleted),
	}
}

// opPaths are the states before and after of every path of the operation.
func (d *draft) opPaths() []store.OpPath {
	var all []store.OpPath
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		all = append(all, store.OpPath{Path: p, From: d.steps[p].from, To: d.steps[p].to})
	}
	left := maps.Clone(d.left)
	for p := range d.aim.hold {
		if _, goes := d.steps[p]; !goes {
			left[p] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(left)) {
		s := d.seen[p].State
		if !s.Known() {
			s = store.UncapturedState // never looked at, and never touched
		}
		all = append(all, store.OpPath{Path: p, From: s, To: s, Left: true})
	}
	return all
}

func (d *draft) fileSteps() []workspace.Step {
	var all []workspace.Step
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		s := d.steps[p]
		all = append(all, workspace.Step{Path: p, From: s.from, To: s.to, Sig: d.seen[p].Sig})
	}
	return all
}
