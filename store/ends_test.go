package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEndsByRowAndByPath asks random histories both ways: whichever is cheaper, the answer is one.
func TestEndsByRowAndByPath(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), Options{Create: &Workspace{Root: "/w"}})
		if err != nil {
			t.Fatal(err)
		}
		paths, turns := 1+rnd.IntN(6), 1+rnd.IntN(40)
		err = s.Update(t.Context(), func(tx *WriteTx) error { return randomTurns(tx, rnd, paths, turns) })
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(t.Context(), func(tx *Tx) error {
			for range 10 {
				low := int64(rnd.IntN(turns + 1))
				high := low + int64(rnd.IntN(turns+1))
				byRow, byPath := answers(t, tx, endsByRow, low, high), answers(t, tx, endsByPath, low, high)
				if d := cmp.Diff(byRow, byPath); d != "" {
					t.Errorf("seed %d, depth %d to %d (-by row +by path):\n%s", seed, low, high, d)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// randomTurns makes a session whose nodes, one segment, have up to four rows each.
func randomTurns(tx *WriteTx, rnd *rand.Rand, paths, turns int) error {
	ses, err := tx.CreateSession(NewSession{Source: "test", SourceID: "s"})
	if err != nil {
		return err
	}
	state := map[int]State{}
	for range turns {
		turn, err := tx.BeginTurn(ses.ID, "", "p")
		if err != nil {
			return err
		}
		for range rnd.IntN(5) {
			p := rnd.IntN(paths)
			before, ok := state[p]
			if !ok {
				before = AbsentState
			}
			state[p] = State{Kind: Dir, Mode: uint32(rnd.IntN(0o777))}
			c := Change{
				Path: Path(fmt.Sprintf("p%d", p)), Source: SourceTool, Origin: Origin(1 + rnd.IntN(2)),
				Before: before, After: state[p],
			}
			if err := tx.AppendChange(turn.Node, c); err != nil {
				return err
			}
		}
		if err := tx.EndTurn(ses.ID, TurnDone); err != nil {
			return err
		}
	}
	return nil
}

func answers(t *testing.T, tx *Tx, query string, low, high int64) []string {
	rows, err := tx.r.Query(query, 1, low, high)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%q", values))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestEndsByPathSeeks reads the query's plan: a way that scanned the rows would be no way around.
func TestEndsByPathSeeks(t *testing.T) {
	s, err := Open(context.Background(), filepath.Join(t.TempDir(), "s.db"), Options{Create: &Workspace{Root: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(t.Context(), func(tx *Tx) error {
		plan := strings.Join(answers(t, tx, "EXPLAIN QUERY PLAN "+endsByPath, 0, 1), "\n")
		if !strings.Contains(plan, "change_foreign") || strings.Count(plan, "change_path (") < 2 {
			t.Errorf("an index is not used:\n%s", plan)
		}
		for _, alias := range []string{"a", "z", "f", "c", "x", "y"} {
			if strings.Contains(plan, "SCAN "+alias+" ") || strings.Contains(plan, "SCAN "+alias+`"`) {
				t.Errorf("rows are scanned for %s:\n%s", alias, plan)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKnownOfFewAndOfMany asks for all paths at once and one by one.
func TestKnownOfFewAndOfMany(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), Options{Create: &Workspace{Root: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const paths = 3 * fewPaths
	err = s.Update(t.Context(), func(tx *WriteTx) error { return randomTurns(tx, rand.New(rand.NewPCG(1, 1)), paths, 30) })
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(tx *Tx) error {
		ses, err := tx.SessionOf("test", "s")
		if err != nil {
			return err
		}
		all := []Path{"never"}
		for i := range paths {
			all = append(all, Path(fmt.Sprintf("p%d", i)))
		}
		many, err := tx.Known(ses.Head, all)
		if err != nil {
			return err
		}
		if len(many) <= fewPaths {
			t.Fatalf("%d paths have rows: too few to tell", len(many))
		}
		for _, p := range all {
			few, err := tx.Known(ses.Head, []Path{p})
			if err != nil {
				return err
			}
			if d := cmp.Diff(many[p], few[p]); d != "" {
				t.Errorf("%s (-of many +of few):\n%s", p, d)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
