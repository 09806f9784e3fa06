package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reasonix/store"
)

// maxOutside is how many files the model is told of by name.
const maxOutside = 50

// outside tells the model which files are not as it left them: since its last turn a move of the
// history wrote them, or somebody else did. It is "" when there are none. s has just begun a turn.
func (c *Controller) outside(ctx context.Context, id store.SessionID, turn int) (string, error) {
	if turn == 0 {
		return "", nil
	}
	var rows []store.Placed
	err := c.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		last, err := tx.Turn(s.Head, turn-1)
		if errors.Is(err, store.ErrNoTurn) {
			return nil
		}
		if err != nil {
			return err
		}
		all, err := tx.TurnChanges(s.Head, turn-1)
		for _, r := range all {
			if r.Node.ID != last.Node.ID && notTheAgents(r.Source) {
				rows = append(rows, r)
			}
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look for changes from outside: %w", err)
	}
	return told(rows), nil
}

func notTheAgents(s store.Source) bool {
	return s == store.SourceRestore || s == store.SourceCarry || s == store.SourceExternal
}

func told(rows []store.Placed) string {
	first, last := map[store.Path]store.State{}, map[store.Path]store.State{}
	var order []store.Path
	for _, r := range rows {
		if _, seen := first[r.Path]; !seen {
			first[r.Path] = r.Before
			order = append(order, r.Path)
		}
		last[r.Path] = r.After
	}
	var lines []string
	for _, p := range order {
		switch before, after := first[p], last[p]; {
		case before == after:
		case after.Kind == store.Absent:
			lines = append(lines, "- deleted "+string(p))
		case before.Kind == store.Absent:
			lines = append(lines, "- created "+string(p))
		default:
			lines = append(lines, "- modified "+string(p))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	if more := len(lines) - maxOutside; more > 0 {
		lines = append(lines[:maxOutside], fmt.Sprintf("- and %d more", more))
	}
	return "[note] These files are not as you last knew them, because the history was rewound or somebody edited them. Read them again before you rely on them:\n" +
		strings.ToValidUTF8(strings.Join(lines, "\n"), "\uFFFD")
}
