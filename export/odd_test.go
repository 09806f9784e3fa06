package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// TestImportOfOddFolders reads folders of each version that have whatever the form allows and more. A
// rewind gives each file the bytes that it should have; what the folders cannot tell stays as it is on
// the disk.
func TestImportOfOddFolders(t *testing.T) {
	for _, version := range []string{"odd-v1", "odd-v2", "odd-v3"} {
		t.Run(version, func(t *testing.T) {
			w := worldtest.New(t)
			b, err := os.ReadFile(filepath.Join(samples(t, version), "expected.json"))
			w.Must(err)
			var want struct {
				Turns    int                           `json:"turns"`
				Warnings []string                      `json:"warnings"`
				At       map[string]map[string]*wanted `json:"at"`
			}
			w.Must(json.Unmarshal(b, &want))
			for _, files := range want.At {
				for name := range files {
					w.Put(name, "on the disk\n", 0o644)
				}
			}
			r := importInto(w, filepath.Join(samples(t, version), "session.ckpt"))
			var codes []string
			for _, one := range r.Warnings {
				codes = append(codes, one.Code)
			}
			slices.Sort(codes)
			if diff := cmp.Diff(want.Warnings, codes); diff != "" || r.Turns != want.Turns {
				t.Errorf("%d turns, warnings %+v: %s", r.Turns, r.Warnings, diff)
			}
			w.ID = r.Session.ID
			for turn, files := range want.At {
				n, err := strconv.Atoi(turn)
				w.Must(err)
				w.Apply(rewind.Request{Kind: store.OpRewind, Turn: n, Scope: store.Code})
				for name, f := range files {
					got, there := fileAt(t, w.Abs(name), true)
					switch {
					case f == nil && there:
						t.Errorf("turn %s: %s is there", turn, name)
					case f != nil && (!there || got != *f):
						t.Errorf("turn %s: %s is %+v, %v, not %+v", turn, name, got, there, *f)
					}
				}
				w.Apply(rewind.Request{Kind: store.OpUndo})
			}
			for name, e := range worldtest.Files(t, w.Dir) {
				if e.Content != "on the disk\n" {
					t.Errorf("after all undos %s is %q", name, e.Content)
				}
			}
		})
	}
}
