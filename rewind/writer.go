package rewind

import (
	"fmt"

	"reasonix/store"
)

// outside is the writer whom nothing recorded accounts for.
const outside = "somebody outside"

// lastWriter says who brought a path into the state it has on disk: by content, among what
// other sessions and operations are known to have written since.
func lastWriter(tx *store.Tx, d *draft, p store.Path) (string, error) {
	known, err := tx.Newest(d.aim.from, p)
	if err != nil {
		return "", err
	}
	disk := d.seen[p].State
	var since store.NodeID
	if known != nil {
		since = known.Node.ID
		if known.Origin == store.Agent && known.After == disk {
			return writerOf(tx, d, *known)
		}
	}
	return writer(tx, d, p, disk, since)
}

// foreignWriter says who made the newest foreign change of a path that the move takes back
// together with the agent's.
func foreignWriter(tx *store.Tx, d *draft, p store.Path) (string, error) {
	for _, c := range d.looked {
		if c.Path == p && c.Origin == store.External {
			return writer(tx, d, p, c.After, 0)
		}
	}
	rows, err := tx.History(d.aim.from, p)
	if err != nil {
		return "", err
	}
	for _, row := range rows {
		if row.Origin == store.External {
			return writer(tx, d, p, row.After, 0)
		}
	}
	return outside, nil
}

func writer(tx *store.Tx, d *draft, p store.Path, s store.State, since store.NodeID) (string, error) {
	row, err := tx.WriterOf(p, s, since)
	if err != nil || row == nil {
		return outside, err
	}
	return writerOf(tx, d, *row)
}

func writerOf(tx *store.Tx, d *draft, row store.Placed) (string, error) {
	by, err := tx.RecordedBy(row.Node)
	if err != nil || by == "" {
		return outside, err
	}
	who := "session " + string(by)
	if by == d.aim.session.ID {
		who = "this session"
	}
	if row.Node.Turn < 0 {
		return who, nil
	}
	return fmt.Sprintf("%s, turn %d", who, row.Node.Turn), nil
}
