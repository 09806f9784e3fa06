package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// TestImportOfAnExportIsTheSession exports random sessions, imports the files into another workspace
// that looks as the first one does now, and exports them from there: turns, messages, boundaries and the
// files at the start of every turn are the same, and a rewind there gives them. Left out is what is no
// change to a history of changes: a file that was the same at a turn's end as at its start.
func TestImportOfAnExportIsTheSession(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			w.wander(100 + seed)
			other := newWorld(t)
			first, err := export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: filepath.Join(t.TempDir(), "out"), Root: other.Dir})
			w.Must(err)
			now := worldtest.Files(t, w.Dir)
			for name, e := range now {
				other.Put(name, e.Content, e.Mode)
			}
			r, err := export.Import(t.Context(), other.Capture.Store, capture.Disk{Capture: other.Capture}, first.JSONL, export.ImportOptions{})
			w.Must(err)
			if len(r.Warnings) > 0 || r.Turns != first.Turns || r.Messages != first.Messages {
				t.Fatalf("%d turns, %d messages, imported as %+v", first.Turns, first.Messages, r)
			}
			other.ID = r.Session.ID
			second := other.export(filepath.Join(t.TempDir(), "again"))
			a, b := readTurns(t, first.Dir), readTurns(t, second.Dir)
			for k := range a {
				if a[k].Prompt != b[k].Prompt || a[k].MsgIndex != b[k].MsgIndex || a[k].Time != b[k].Time {
					t.Errorf("turn %d: %q %d %s is now %q %d %s", k, a[k].Prompt, a[k].MsgIndex, a[k].Time, b[k].Prompt, b[k].MsgIndex, b[k].Time)
				}
				want := restoreOf(t, changesOnly(a[k:]), first.Dir, other.Dir, now)
				if diff := cmp.Diff(want, restore(t, second.Dir, other.Dir, now, k)); diff != "" {
					t.Errorf("turn %d as it was exported (-) and is exported again (+):\n%s", k, diff)
				}
				other.Apply(rewind.Request{Kind: store.OpRewind, Turn: k, Scope: store.Code})
				if diff := cmp.Diff(want, worldtest.Files(t, other.Dir)); diff != "" {
					t.Errorf("turn %d as it was exported (-) and after a rewind of the import (+):\n%s", k, diff)
				}
				other.Apply(rewind.Request{Kind: store.OpUndo})
			}
			x, err := os.ReadFile(first.JSONL)
			w.Must(err)
			y, err := os.ReadFile(second.JSONL)
			w.Must(err)
			if diff := cmp.Diff(string(x), string(y)); diff != "" || len(x) == 0 {
				t.Errorf("messages: %s", diff)
			}
		})
	}
}

func changesOnly(turns []ckptTurn) (all []ckptTurn) {
	for _, c := range turns {
		c.Files = slices.DeleteFunc(slices.Clone(c.Files), func(f ckptFile) bool {
			existed := f.SHA256 != ""
			return f.AfterExisted != nil && *f.AfterExisted == existed && f.AfterSHA256 == f.SHA256 && f.AfterMode == f.Mode
		})
		all = append(all, c)
	}
	return all
}
