package hook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/store"
)

// TestOneUnreadablePathOfSeveral: the process's own memory cannot be read from its beginning; the
// other path of the event is captured nevertheless.
func TestOneUnreadablePathOfSeveral(t *testing.T) {
	d := newDesk(t)
	root, err := filepath.EvalSymlinks("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "mem")); err == nil {
		t.Fatalf("%d bytes of memory were read", len(b))
	}
	d.dir = root
	d.run(`"event":"begin-turn","prompt":"p"`)
	o := d.options(`"event":"before-edit","call":"c","tool":"edit","paths":["mem","exe"]`)
	reply, err := Run(context.Background(), o)
	if err == nil || !strings.Contains(err.Error(), "mem") || reply.Captured != 1 {
		t.Errorf("reply %+v, %v", reply, err)
	}
	opened := d.open()
	err = opened.Store.View(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Current()
		if err != nil {
			return err
		}
		gaps, err := tx.Gaps(s.Head, 0)
		if err != nil {
			return err
		}
		want := []store.Gap{{Reason: store.GapFailed, Path: "mem", Tool: "edit", Detail: "before-edit"}}
		if d := cmp.Diff(want, gaps); d != "" {
			t.Errorf("gaps (-want +got):\n%s", d)
		}
		rows, err := tx.TurnChanges(s.Head, 0)
		if err == nil && (len(rows) != 1 || rows[0].Path != "exe") {
			t.Errorf("rows %+v", rows)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
