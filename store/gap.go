package store

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
	line, err := t.spans(head, false)
	if err != nil {
		return nil, err
	}
	var all []Gap
	for i := len(line) - 1; i >= 0; i-- {
		s := line[i]
		rows, err := t.r.Query(`
			SELECT n.turn, g.reason, g.path, g.tool, g.detail
			FROM gap g
			CROSS JOIN node n ON n.id = g.node_id
			WHERE n.segment = ? AND n.turn >= ? AND n.depth BETWEEN ? AND ?
			ORDER BY n.depth, g.id`, s.segment, from, s.low, s.high)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var (
				g    Gap
				path []byte
			)
			if err := rows.Scan(&g.Turn, &g.Reason, &path, &g.Tool, &g.Detail); err != nil {
				return nil, closing(rows, err)
			}
			g.Path = Path(path)
			all = append(all, g)
		}
		if err := closing(rows, rows.Err()); err != nil {
			return nil, err
		}
	}
	return all, nil
}
