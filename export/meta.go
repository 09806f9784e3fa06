package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"reasonix/store"
)

// meta is <session>.jsonl.meta; the order of the fields is the format's.
type meta struct {
	ID               string `json:"id"`
	Name             string `json:"name,omitempty"`
	ParentID         string `json:"parent_id,omitempty"`
	ForkTurn         int    `json:"fork_turn,omitempty"`
	ForkMessageIndex *int64 `json:"fork_message_index,omitempty"`
	CreatedAt        string `json:"created_at"`
	UpdatedAt        string `json:"updated_at"`
	WorkspaceRoot    string `json:"workspace_root,omitempty"`
	SchemaVersion    int    `json:"schema_version"`
	Turns            int    `json:"turns,omitempty"`
	Preview          string `json:"preview,omitempty"`
}

// maxPreview bounds the first prompt in a list of sessions, in characters.
const maxPreview = 120

func (w *writer) meta(preview string) error {
	s := w.session
	m := meta{
		ID: string(s.ID), Name: s.Name, CreatedAt: stamp(s.Created), UpdatedAt: stamp(s.Updated),
		WorkspaceRoot: w.root, SchemaVersion: 1, Turns: s.Turns, Preview: firstLine(preview),
	}
	if s.Parent != "" {
		m.ParentID, m.ForkTurn, m.ForkMessageIndex = string(s.Parent), w.forkTurn, &s.ForkMsg
	}
	return w.out.file(w.stage("meta"), func(f *bufio.Writer) error {
		e := json.NewEncoder(f) // ends with a newline
		e.SetIndent("", "  ")
		return e.Encode(m)
	})
}

// tip is the turn of a fork that was made behind its parent's last turn.
const tip = -1

// forkTurn is the turn of a fork as the form counts it.
func forkTurn(tx *store.Tx, s store.Session) (int, error) {
	if s.Parent == "" {
		return 0, nil
	}
	parent, err := tx.Session(s.Parent)
	if errors.Is(err, store.ErrNoSession) { // deleted since
		return s.ForkTurn, nil
	}
	if err == nil && s.ForkTurn == parent.Turns {
		return tip, nil
	}
	return s.ForkTurn, err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > maxPreview {
		s = string(r[:maxPreview-1]) + "…"
	}
	return s
}
