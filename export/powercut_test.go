//go:build unix

package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/export"
	"reasonix/internal/powercut"
	"reasonix/internal/worldtest"
)

// TestCrashPowerCut cuts the power at every call of an export, and forgets what was not synced in
// every way that powercut knows. An export whose conversation is there is whole, be it the old
// one or the new one, and one that was reported as done stays.
func TestCrashPowerCut(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("again ", again), func(t *testing.T) {
			w := newWorld(t)
			story(w)
			dir := t.TempDir()
			place := filepath.Join(dir, "made", "out")
			old := map[string]worldtest.Entry{}
			if again {
				w.export(place)
				old = worldtest.Files(t, place)
				w.Turn("more", nil, func() { w.Write("more", "more", 0o644) })
			}
			o := newOutage(t, dir)
			_, err := export.Write(t.Context(), w.Capture.Store, w.ID, export.Options{Dir: place, Overwrite: again, Fault: o.call})
			w.Must(err)
			w.Must(o.call("the end", ""))
			complete := worldtest.Files(t, place)
			whole := 0
			for _, r := range o.remains {
				to := filepath.Join(t.TempDir(), "left")
				w.Must(r.files.Write(to))
				is := visible(t, filepath.Join(to, "made", "out"))
				_, there := is["abcd1234.jsonl"]
				switch {
				case !there && again && r.calls == 1, !there && r.calls == o.calls:
					t.Fatalf("%s: the export is gone", r.what)
				case !there, again && cmp.Equal(old, is):
				case cmp.Equal(complete, is):
					whole++
				default:
					t.Fatalf("%s: a conversation without what belongs to it (-want +got):\n%s", r.what, cmp.Diff(complete, is))
				}
			}
			t.Logf("%d calls, %d outcomes, %d of them whole", o.calls, len(o.remains), whole)
			if whole == 0 || whole == len(o.remains) || o.calls < 25 {
				t.Errorf("%d calls, %d outcomes, %d of them whole", o.calls, len(o.remains), whole)
			}
		})
	}
}

// visible are the files of a place, those that are staged left out.
func visible(t *testing.T, dir string) map[string]worldtest.Entry {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	all := worldtest.Files(t, dir)
	for name := range all {
		if strings.HasPrefix(name, ".reasonix-export-") {
			delete(all, name)
		}
	}
	return all
}

// outage records, at every call of an export, what a power cut there may leave.
type outage struct {
	t        *testing.T
	dir      string
	disk     *powercut.Disk
	op, name string // the call that was announced last
	calls    int
	found    map[string]bool
	remains  []remains
}

// remains is one outcome of a power cut, before the call of that number.
type remains struct {
	what  string
	calls int
	files powercut.Image
}

func newOutage(t *testing.T, dir string) *outage {
	disk, err := powercut.Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &outage{t: t, dir: dir, disk: disk, found: map[string]bool{}}
}

func (o *outage) call(op, name string) error {
	o.t.Helper()
	if err := o.disk.Look(); err != nil {
		return err
	}
	if o.op == "syncfs" && runtime.GOOS == "linux" {
		o.disk.Sync()
	}
	if o.op == "fsync" && !o.disk.SyncFile(o.disk.Open(o.abs(o.name))) {
		o.t.Fatalf("call %d syncs %s, which is not there", o.calls, o.name)
	}
	o.op, o.name = op, name
	o.calls++
	for _, l := range powercut.Losses(3) {
		m := o.disk.After(l)
		key := m.Key()
		if op == "the end" {
			key += "done" // what was allowed before is not any more
		}
		if !o.found[key] {
			o.found[key] = true
			o.remains = append(o.remains, remains{fmt.Sprintf("before call %d (%s %s), lost: %s", o.calls, op, name, l.Name), o.calls, m})
		}
	}
	return nil
}

// abs is where a name of an export lies: staged files are named relative to their folder.
func (o *outage) abs(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	stages, err := filepath.Glob(filepath.Join(o.dir, "made", "out", ".reasonix-export-*"))
	if err != nil || len(stages) != 1 {
		o.t.Fatalf("%v, %v", stages, err)
	}
	return filepath.Join(stages[0], name)
}
