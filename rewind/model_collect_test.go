package rewind_test

import (
	"iter"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// collect lets go of the files of older turns, or of nothing that can still be asked for. What it may
// take is remembered: a move there may then be refused, and must be exact when it is not.
func (m *model) collect() {
	turns := []int{0, 0, 1, 2, 4}[m.rnd.IntN(5)]
	m.note("collect, keeping %d turns", turns)
	c := m.capture.Store.Collector(func(tx *store.Tx) (store.Keep, error) {
		hashes, err := indexHashes(tx)
		return store.Keep{Turns: turns, Hashes: hashes}, err
	})
	dropped := 0
	for more := true; more; {
		done, again, err := c.Step(m.t.Context())
		m.must(err)
		if more = again; done.Nodes+done.Operations+done.Sessions > 0 {
			m.fail("history went although all operations stay: %+v", done)
		}
		dropped += done.Contents
	}
	m.note("%d contents went", dropped)
	if turns == 0 {
		return // contents of what nobody recorded in the end, of captures that were given up
	}
	kept := map[*refNode]bool{}
	var heads []*refNode
	for _, s := range m.ref.sessions {
		heads = append(heads, s.head)
		kept[s.head] = true
		all := s.head.turns()
		for _, t := range all[max(len(all)-turns, 0):] {
			kept[t.parent] = true
		}
	}
	for _, o := range m.ref.ops {
		heads, kept[o.from] = append(heads, o.from), true
	}
	for _, h := range heads {
		for _, n := range h.line() {
			if !kept[n] {
				m.ref.expired[n] = true
			}
		}
	}
}

func indexHashes(tx *store.Tx) (iter.Seq[blob.Hash], error) {
	x, err := tx.ScanIndex()
	if err != nil {
		return nil, err
	}
	index, err := workspace.DecodeParts(x.Parts)
	if err != nil {
		return nil, err
	}
	return index.Blobs(), nil
}

// mayBeGone reports whether a move asks for a state that a collection may have taken: that of its
// target or, on the way back to where the last turn ended, of what a later carry node left behind.
func (r *reference) mayBeGone(mv refMove) bool {
	if mv.target != nil {
		return r.expired[mv.target]
	}
	head := r.sessions[mv.session].head
	for _, n := range head.session() {
		if n.turn == head.turn && r.expired[n.parent] {
			return true
		}
	}
	return false
}
