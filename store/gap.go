package store

import "math"

// AddGap records on a node what was not captured; the same gap twice is one.
func (w *WriteTx) AddGap(n Node, g Gap) error {
	_, err := w.exec(`
		INSERT INTO gap (node_id, reason, path, tool, detail)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, n.ID, g.Reason, []byte(g.Path), g.Tool, g.Detail)
	return err
}

// Gaps are the gaps of the line of head from turn number from on, oldest first; -1 for all.
func (t *Tx) Gaps(head NodeID, from int) ([]Gap, error) {
	return t.GapsBetween(head, from, math.MaxInt32)
}
