package store_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"reasonix/store"
)

// TestDocumentedViews runs every query of docs/schema.md in a plain SQLite connection, and
// compares the columns of each view with its table there.
func TestDocumentedViews(t *testing.T) {
	text, err := os.ReadFile("../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t)
	ses := begin(t, s)
	appendRaw(t, s, ses.ID, `{"role":"user","content":"hello"}`)
	update(t, s, func(tx *store.WriteTx) error {
		turn, err := tx.BeginTurn(ses.ID, "", "a prompt")
		if err != nil {
			return err
		}
		err = tx.AppendChange(turn.Node, store.Change{
			Path: "main.go", Source: store.SourceTool, Origin: store.Agent, Before: store.AbsentState, After: store.State{Kind: store.Dir, Mode: 0o700},
		})
		if err != nil {
			return err
		}
		if err := tx.AddGap(turn.Node, store.Gap{Reason: store.GapShellNotScanned, Tool: "bash"}); err != nil {
			return err
		}
		_, err = tx.CreateSession(store.NewSession{Head: turn.Node.Parent, Parent: ses.ID, ForkTurn: 0, ForkMsg: 1})
		return err
	})
	plain, err := sqlx.Open("sqlite", "file:"+s.Path()+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(queries) < 10 {
		t.Fatalf("%d queries in the document", len(queries))
	}
	for _, q := range queries {
		rows, err := plain.Queryx(q[1])
		if err != nil {
			t.Errorf("%v:\n%s", err, q[1])
			continue
		}
		for rows.Next() {
			if _, err := rows.SliceScan(); err != nil {
				t.Errorf("%v:\n%s", err, q[1])
			}
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, view := range []string{"sessions", "turns", "messages", "changes", "operations", "forks", "blobs", "gaps"} {
		var columns []string
		if err := plain.Select(&columns, `SELECT name FROM pragma_table_info(?) ORDER BY cid`, view); err != nil {
			t.Fatal(err)
		}
		_, section, ok := strings.Cut(string(text), "\n## "+view+"\n")
		if !ok {
			t.Errorf("%s has no section", view)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var documented []string
		for _, row := range regexp.MustCompile(`(?m)^\| ([a-z_, ]+) \|`).FindAllStringSubmatch(section, -1) {
			if row[1] != "column" {
				documented = append(documented, strings.Split(row[1], ", ")...)
			}
		}
		if d := cmp.Diff(sorted(columns), sorted(documented)); d != "" {
			t.Errorf("columns of %s (-store +document):\n%s", view, d)
		}
	}
	var turns []struct {
		Turn, Files, Gaps, Messages int
		Status, Prompt              string
	}
	if err := plain.Select(&turns, `SELECT turn, files, gaps, messages, status, prompt FROM turns`); err != nil {
		t.Fatal(err)
	}
	if len(turns) != 1 || turns[0].Files != 1 || turns[0].Gaps != 1 || turns[0].Status != "open" || turns[0].Prompt != "a prompt" {
		t.Errorf("turns: %+v", turns)
	}
}
