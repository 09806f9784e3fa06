package view

import (
	"context"

	"reasonix/store"
)

// Branch is a session with the sessions that were forked from it.
type Branch struct {
	Session   store.SessionID  `json:"session"`
	Name      string           `json:"name"`
	Source    string           `json:"source"`
	Parent    *store.SessionID `json:"parent"`    // nil of what is no fork
	ForkTurn  *int             `json:"fork_turn"` // turn of the parent at which it was forked
	Turns     int              `json:"turns"`
	Messages  int64            `json:"messages"`
	UpdatedMS int64            `json:"updated_ms"`
	IsCurrent bool             `json:"is_current"`
	Forks     []*Branch        `json:"forks"` // in the order in which they were made
}

// Tree are the sessions that are no forks, oldest first, each with its forks. A fork whose
// parent was deleted stands by itself.
func (v *Viewer) Tree(ctx context.Context) ([]*Branch, error) {
	var all []store.Session
	err := v.capture.Store.View(ctx, func(tx *store.Tx) (err error) { all, err = tx.Forked(); return err })
	if err != nil {
		return nil, err
	}
	roots, of := []*Branch{}, map[store.SessionID]*Branch{}
	for _, s := range all {
		b := &Branch{
			Session: s.ID, Name: s.Name, Source: s.Source, Turns: s.Turns, Messages: s.Messages,
			UpdatedMS: s.Updated.UnixMilli(), IsCurrent: s.Current, Forks: []*Branch{},
		}
		of[s.ID] = b
		if s.Parent != "" {
			b.Parent, b.ForkTurn = &s.Parent, &s.ForkTurn
		}
		if p := of[s.Parent]; p != nil {
			p.Forks = append(p.Forks, b)
		} else {
			roots = append(roots, b)
		}
	}
	return roots, nil
}
