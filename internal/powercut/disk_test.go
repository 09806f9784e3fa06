//go:build unix

package powercut_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reasonix/internal/powercut"
)

// bench is a watched folder and the calls that are made in it.
type bench struct {
	t    *testing.T
	dir  string
	disk *powercut.Disk
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir()}
	b.must(os.WriteFile(b.abs("old"), []byte("old"), 0o644))
	var err error
	b.disk, err = powercut.Watch(b.dir)
	b.must(err)
	return b
}

func (b *bench) abs(p string) string { return filepath.Join(b.dir, p) }

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// do makes one call and looks.
func (b *bench) do(err error) {
	b.t.Helper()
	b.must(err)
	b.must(b.disk.Look())
}

func (b *bench) sync(p string) {
	b.t.Helper()
	if !b.disk.SyncFile(b.disk.Open(b.abs(p))) {
		b.t.Fatalf("%s is not there", p)
	}
}

// is compares what a loss leaves: paths, and contents behind a colon.
func (b *bench) is(loss, want string) {
	b.t.Helper()
	i := slices.IndexFunc(powercut.Losses(0), func(l powercut.Loss) bool { return l.Name == loss })
	m := b.disk.After(powercut.Losses(0)[i])
	delete(m, ".")
	var all []string
	for _, p := range slices.Sorted(maps.Keys(m)) {
		all = append(all, p+":"+strings.ReplaceAll(m[p].Data, "\x00", "0"))
	}
	if got := strings.Join(all, " "); got != want {
		b.t.Errorf("after the loss of %s: %q, want %q", loss, got, want)
	}
}

// TestReplace plays the usual replacement of a file, with and without the syncs that make it one.
func TestReplace(t *testing.T) {
	b := newBench(t)
	b.do(os.WriteFile(b.abs("new"), []byte("new"), 0o644))
	b.is("nothing", "new:new old:old")
	b.is("everything", "old:old")
	b.is("contents", "new: old:old")
	b.is("contents, which are zeros", "new:000 old:old")
	b.is("names", "old:old")
	b.do(os.Rename(b.abs("new"), b.abs("old")))
	b.is("contents", "old:") // the fault that a sync before the rename keeps out
	b.is("everything", "old:old")
	b.sync("old")
	b.is("contents", "old:new")
	b.is("everything", "old:old")
	b.sync(".")
	b.is("everything", "old:new")
}

// TestFolders: a folder's names are its own, and what they lead to is not.
func TestFolders(t *testing.T) {
	b := newBench(t)
	b.do(os.Mkdir(b.abs("d"), 0o700))
	b.do(os.Rename(b.abs("old"), b.abs("d/old")))
	b.is("everything", "old:old")
	b.sync("d")
	b.is("everything", "old:old") // d has no name yet
	b.is("names", "old:old")
	b.is("nothing", "d: d/old:old")
	b.sync(".")
	b.is("everything", "d: d/old:old")
	b.do(os.RemoveAll(b.abs("d")))
	b.is("everything", "d: d/old:old")
	b.sync(".")
	b.is("everything", "")
}

// TestTornRename: half of a rename across folders may be synced.
func TestTornRename(t *testing.T) {
	b := newBench(t)
	b.do(os.Mkdir(b.abs("d"), 0o700))
	b.disk.Sync()
	b.do(os.Rename(b.abs("old"), b.abs("d/old")))
	b.sync("d")
	b.is("everything", "d: d/old:old old:old")
	b.is("nothing", "d: d/old:old")
}

// TestModes: a mode is durable with its file, not with its folder.
func TestModes(t *testing.T) {
	b := newBench(t)
	b.do(os.Chmod(b.abs("old"), 0o600))
	b.sync(".")
	loss := powercut.Losses(0)[1]
	if got := b.disk.After(loss)["old"].Mode; got != 0o644 {
		t.Errorf("mode %v", got)
	}
	b.sync("old")
	if got := b.disk.After(loss)["old"].Mode; got != 0o600 {
		t.Errorf("mode %v", got)
	}
}

// TestWrite: an image that is written and watched gives the same image.
func TestWrite(t *testing.T) {
	b := newBench(t)
	b.must(os.MkdirAll(b.abs("d/e"), 0o755))
	b.must(os.Symlink("nowhere", b.abs("d/link")))
	b.must(os.WriteFile(b.abs("d/e/f"), []byte("f"), 0o444))
	b.must(os.Chmod(b.abs("d"), 0o500))
	b.do(nil)
	all := powercut.Losses(8)
	m := b.disk.After(all[0])
	to := filepath.Join(t.TempDir(), "copy")
	b.must(m.Write(to))
	t.Cleanup(func() { // so that the folders can be removed
		b.must(os.Chmod(filepath.Join(to, "d"), 0o700))
		b.must(os.Chmod(b.abs("d"), 0o700))
	})
	again, err := powercut.Watch(to)
	b.must(err)
	if m.Key() != again.After(all[0]).Key() {
		t.Errorf("wrote\n%s\nfound\n%s", m.Key(), again.After(all[0]).Key())
	}
	different := map[string]bool{}
	for _, l := range all {
		different[b.disk.After(l).Key()] = true
	}
	if len(different) < 6 {
		t.Errorf("%d losses give %d images", len(all), len(different))
	}
}
