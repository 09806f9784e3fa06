package export

import (
	"fmt"
	"time"

	"reasonix/store"
)

// activeWriter is an entry of activeWriters: something that could still write when the session
// was exported. The order of the fields is the format's.
type activeWriter struct {
	ID        string `json:"id"`
	Turn      int    `json:"turn"`
	StartedAt string `json:"startedAt"`
	Kind      string `json:"kind,omitempty"`
}

// running are the commands of a session that have not ended.
func running(tx *store.Tx, id store.SessionID) (all []activeWriter, err error) {
	calls, err := tx.Calls(id)
	if err != nil {
		return nil, err
	}
	for k, c := range calls {
		if c.Kind != store.ExecCall || c.Ended {
			continue
		}
		n, err := tx.Node(c.Node)
		if err != nil {
			return nil, err
		}
		a := activeWriter{ID: c.Key, Turn: max(n.Turn, 0), StartedAt: c.Started.UTC().Format(time.RFC3339Nano), Kind: "bash"}
		if a.ID == "" {
			a.ID = fmt.Sprintf("call-%d", k)
		}
		all = append(all, a)
	}
	return all, nil
}

// activeAt are the commands that were running while turn n was, and crossed whether one of them
// began in an earlier turn.
func (w *writer) activeAt(n int) (all []activeWriter, crossed bool) {
	for _, c := range w.calls {
		if c.Turn <= n {
			all = append(all, c)
			crossed = crossed || c.Turn < n
		}
	}
	return all, crossed
}
