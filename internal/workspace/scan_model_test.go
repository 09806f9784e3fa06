package workspace_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/internal/ignore"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// snapshot is a naive full walk: what is covered, and what is needed to ask whether something
// would have been.
type snapshot struct {
	covered map[store.Path]store.State
	folders map[store.Path]*ignore.Folder // covered ones and, with nil, those that are only passed through
	exists  map[store.Path]bool           // everything on disk
	pinned  map[store.Path]bool           // recorded paths and the folders on the way to them
	here    map[store.Path]bool           // recorded paths
}

func takeSnapshot(t testing.TB, dir string, recorded []store.Path, maxFile int64) *snapshot {
	s := &snapshot{
		covered: map[store.Path]store.State{}, folders: map[store.Path]*ignore.Folder{}, exists: map[store.Path]bool{},
		pinned: map[store.Path]bool{}, here: map[store.Path]bool{},
	}
	for _, p := range recorded {
		s.here[p] = true
		for ; p != ""; p = p.Parent() {
			s.pinned[p] = true
		}
	}
	s.walk(t, dir, "", nil, false, maxFile)
	return s
}

func (s *snapshot) walk(t testing.TB, dir string, at store.Path, rules *ignore.Rules, left bool, maxFile int64) {
	entries, err := os.ReadDir(filepath.Join(dir, string(at)))
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, string(at), name)); return err == nil }
	var answers *ignore.Folder
	if !left {
		var marked []string
		for _, e := range entries {
			if m, ok := ignore.MarkerOf(e.Name()); ok && e.IsDir() && (m.Beside != "" && has(m.Beside) || m.Inside != "" && has(e.Name()+"/"+m.Inside)) {
				marked = append(marked, e.Name())
			}
		}
		git, _ := os.ReadFile(filepath.Join(dir, string(at), ignore.GitFile))
		own, _ := os.ReadFile(filepath.Join(dir, string(at), ignore.OwnFile))
		rules = rules.Below(string(at), string(git), string(own))
		answers = rules.In(string(at), marked)
	}
	s.folders[at] = answers
	for _, e := range entries {
		p := store.Path(path.Join(string(at), e.Name()))
		s.exists[p] = true
		out := left || answers.Ignored(e.Name(), e.IsDir())
		if out && !s.pinned[p] {
			s.all(dir, p)
			continue
		}
		if !out || s.here[p] {
			s.covered[p] = stateOf(t, filepath.Join(dir, string(p)), maxFile)
		}
		if e.IsDir() {
			s.walk(t, dir, p, rules, out, maxFile)
		}
	}
}

// all notes what there is in what is ignored.
func (s *snapshot) all(dir string, p store.Path) {
	_ = filepath.WalkDir(filepath.Join(dir, string(p)), func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			rel, _ := filepath.Rel(dir, name)
			s.exists[store.Path(filepath.ToSlash(rel))] = true
		}
		return nil
	})
}

func stateOf(t testing.TB, name string, maxFile int64) store.State {
	fi, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	content := ""
	s := store.State{Mode: uint32(fi.Mode().Perm())}
	switch {
	case fi.IsDir():
		s.Kind = store.Dir
		return s
	case fi.Mode()&fs.ModeSymlink != 0:
		s.Kind, s.Mode = store.Symlink, 0
		content, err = os.Readlink(name)
	case fi.Mode().IsRegular() && (maxFile == 0 || fi.Size() <= maxFile):
		var b []byte
		s.Kind = store.File
		b, err = os.ReadFile(name)
		content = string(b)
	default:
		return store.UncapturedState
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Blob, s.Size = blob.Sum([]byte(content)), int64(len(content))
	return s
}

// proves is what the snapshot says of p, which is not covered in it: absent, or nothing.
func (s *snapshot) proves(p store.Path) store.State {
	at := store.Path("")
	for name := range strings.SplitSeq(string(p), "/") {
		answers, ok := s.folders[at]
		if !ok {
			return store.AbsentState // there was no folder
		}
		at = store.Path(path.Join(string(at), name))
		if !s.pinned[at] && (answers == nil || answers.Ignored(name, true) || answers.Ignored(name, false)) {
			if _, ok := s.covered[at]; !ok {
				return store.UncapturedState
			}
		}
	}
	if s.exists[p] {
		return store.UncapturedState
	}
	return store.AbsentState
}

// drops reports whether p, which was covered before, is left out now, whether it is there or not.
func (s *snapshot) drops(p store.Path) bool {
	at := store.Path("")
	for name := range strings.SplitSeq(string(p), "/") {
		answers, ok := s.folders[at]
		if !ok {
			return false
		}
		next := store.Path(path.Join(string(at), name))
		if answers == nil && !s.pinned[next] {
			return true
		}
		if !s.exists[next] {
			return false
		}
		_, covered := s.covered[next]
		_, passed := s.folders[next]
		if !covered && !passed {
			return next == p || !s.pinned[next]
		}
		at = next
	}
	return true // only passed through now
}

type row struct{ Before, After store.State }

// difference is what a scan has to report between two snapshots.
func difference(before, after *snapshot) map[store.Path]row {
	rows := map[store.Path]row{}
	for p, now := range after.covered {
		was, ok := before.covered[p]
		if !ok {
			was = before.proves(p)
		}
		if was != now {
			rows[p] = row{was, now}
		}
	}
	for p, was := range before.covered {
		if _, ok := after.covered[p]; !ok && !after.drops(p) {
			rows[p] = row{was, store.AbsentState}
		}
	}
	return rows
}

// scans keeps what the scans of a world committed.
type scans struct {
	*world
	parts [][]byte
	base  *workspace.Index
}

// scan scans, keeps, and compares what was kept with what was returned.
func (s *scans) scan(r *workspace.Root, o workspace.ScanOptions) workspace.Scan {
	s.t.Helper()
	o.Base, o.Put = s.base, s.mem.put
	var changed []workspace.Change
	o.Commit = s.commit(&changed)
	got, err := r.Scan(s.t.Context(), o)
	s.must(err)
	s.kept(got)
	if len(changed) != len(got.Changed) {
		s.t.Fatalf("%d changes were committed, %d returned", len(changed), len(got.Changed))
	}
	return got
}

func (s *scans) commit(changed *[]workspace.Change) func(context.Context, workspace.Batch) error {
	return func(_ context.Context, b workspace.Batch) error {
		if b.Full {
			s.parts = nil
		}
		s.parts = append(s.parts, b.Part)
		if changed != nil {
			*changed = append(*changed, b.Changed...)
		}
		return nil
	}
}

func (s *scans) kept(got workspace.Scan) {
	s.t.Helper()
	x, err := workspace.DecodeParts(s.parts)
	s.must(err)
	if string(x.Encode()) != string(got.Index.Encode()) {
		s.t.Fatalf("what was committed is not what was returned:\n%s", cmp.Diff(workspace.Dump(got.Index), workspace.Dump(x)))
	}
	s.base = x
	if full, err := workspace.DecodeParts([][]byte{x.Encode()}); err != nil || string(full.Encode()) != string(x.Encode()) {
		s.t.Fatal("an encoded index is not what it was:", err)
	}
	for h := range x.Blobs() {
		if _, ok := s.mem.m[h]; !ok {
			s.t.Fatalf("content %s is in the index and was not kept", h.Short())
		}
	}
}

// play makes random changes to a tree whose names have a meaning to the rules.
type play struct {
	*scans
	rnd   *rand.Rand
	clock time.Time
}

var playNames = []string{
	"a", "b", "c", "a", "b", "c", "x.o", "keep.o", "node_modules", "target", "venv", ".gitignore", ".reasonixignore",
	"Cargo.toml", "pyvenv.cfg", "é\xff", "a b",
}

var playRules = []string{
	"", "*.o", "!keep.o", "a", "/a", "b/", "a/b", "!node_modules", "c/*", "**/c", "*", "!*/", "!target/", ".gitignore", "x.o\n*.o\n!keep.o",
}

func (p *play) path() string {
	parts := make([]string, 1+p.rnd.IntN(3))
	for i := range parts {
		parts[i] = playNames[p.rnd.IntN(len(playNames))]
		if i < len(parts)-1 && isRules(parts[i]) {
			parts[i] = "a" // a folder of that name is for another test
		}
	}
	return strings.Join(parts, "/")
}

func isRules(name string) bool {
	return path.Base(name) == ignore.GitFile || path.Base(name) == ignore.OwnFile
}

// some is a path that is there.
func (p *play) some() string {
	names := slices.Sorted(maps.Keys(p.files()))
	if len(names) == 0 {
		return p.path()
	}
	return strings.TrimSuffix(names[p.rnd.IntN(len(names))], "/")
}

func (p *play) mutate() {
	name, n := p.some(), p.rnd.IntN(12)
	if isRules(name) && n != 4 {
		n = 3
	}
	switch n {
	case 0, 1, 2:
		name = p.path()
		p.write(name)
	case 3:
		p.write(name)
	case 4:
		_ = os.RemoveAll(p.name(name))
	case 5:
		_ = os.Chmod(p.name(name), []fs.FileMode{0o755, 0o700, 0o750}[p.rnd.IntN(3)])
	case 6:
		_ = os.RemoveAll(p.name(name))
		_ = os.Symlink([]string{"a", "b/c", ".."}[p.rnd.IntN(3)], p.name(name))
	case 7:
		_ = os.RemoveAll(p.name(name))
		_ = os.MkdirAll(p.name(path.Join(name, playNames[p.rnd.IntN(5)])), 0o755)
	case 8:
		to := p.path()
		if isRules(to) {
			to = "b"
		}
		_ = os.Rename(p.name(name), p.name(to))
		p.stamp(to)
	case 9: // only touched
	case 10:
		name = path.Join(path.Dir(name), []string{".gitignore", ".reasonixignore"}[p.rnd.IntN(2)])
		p.write(name)
	case 11:
		_ = os.RemoveAll(p.name(name))
		_ = mkfifo(p.name(name))
	}
	p.stamp(name)
}

func (p *play) write(name string) {
	var content string
	switch path.Base(name) {
	case ignore.GitFile, ignore.OwnFile:
		for range 1 + p.rnd.IntN(3) {
			content += playRules[p.rnd.IntN(len(playRules))] + "\n"
		}
	default:
		content = strings.Repeat("x", p.rnd.IntN(12)) + fmt.Sprint(p.rnd.IntN(3))
	}
	if os.MkdirAll(filepath.Dir(p.name(name)), 0o755) == nil {
		if fi, err := os.Lstat(p.name(name)); err == nil && !fi.Mode().IsRegular() {
			_ = os.RemoveAll(p.name(name))
		}
		_ = os.WriteFile(p.name(name), []byte(content), 0o644)
	}
}

// stamp gives what was touched, and its folders, a time of its own: no two states look the same,
// whatever the grain of the clock.
func (p *play) stamp(name string) {
	for ; ; name = path.Dir(name) {
		p.clock = p.clock.Add(time.Second + 1)
		if fi, err := os.Lstat(p.name(name)); err == nil && fi.Mode()&fs.ModeSymlink == 0 {
			_ = os.Chtimes(p.name(name), p.clock, p.clock)
		}
		if name == "." {
			return
		}
	}
}

// TestScanModel plays random changes and compares what a scan reports with the difference of two
// naive walks, and every state of the index with the walk.
func TestScanModel(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 30
	}
	if n, err := strconv.Atoi(os.Getenv("REASONIX_MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playScans(t, uint64(seed))
		})
	}
}

func playScans(t *testing.T, seed uint64) {
	w := newFastWorld(t, nil)
	p := &play{scans: &scans{world: w}, rnd: rand.New(rand.NewPCG(seed, 1)), clock: time.Unix(1e9, 1)}
	roots := []*workspace.Root{
		w.opened(workspace.Options{Now: later}),
		w.opened(workspace.Options{Now: later, Fault: func(string, store.Path) error { return nil }}),
	}
	var recorded []store.Path
	before := (*snapshot)(nil)
	for step := range 12 {
		for range p.rnd.IntN(6) + 6/(step+1) {
			p.mutate()
		}
		var now []store.Path
		if p.rnd.IntN(3) == 0 {
			now = []store.Path{store.Path(p.path()), store.Path(p.some())}
		}
		recorded = append(recorded, now...)
		after := takeSnapshot(t, w.dir, recorded, 12)
		got := p.scan(roots[p.rnd.IntN(2)], workspace.ScanOptions{Recorded: now, MaxFile: 12}.WithBatch(p.rnd.IntN(9)))
		if !got.Complete {
			t.Fatal("not complete")
		}
		p.compare(seed, step, before, after, got)
		before = after
	}
}

func (p *play) compare(seed uint64, step int, before, after *snapshot, got workspace.Scan) {
	p.t.Helper()
	rows := map[store.Path]row{}
	for _, c := range got.Changed {
		if _, twice := rows[c.Path]; twice {
			p.t.Fatalf("seed %d step %d: %q is reported twice", seed, step, c.Path)
		}
		rows[c.Path] = row{c.Before, c.State}
	}
	want := map[store.Path]row{}
	if before != nil {
		want = difference(before, after)
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		p.t.Fatalf("seed %d step %d: changes (-want +got):\n%s", seed, step, diff)
	}
	for q := range after.exists {
		want, ok := after.covered[q]
		if !ok {
			want = store.UncapturedState
		}
		if got := got.Index.State(q); got != want {
			p.t.Fatalf("seed %d step %d: state of %q is %v, not %v", seed, step, q, got, want)
		}
	}
	for range 20 {
		q := store.Path(p.path())
		if _, ok := after.covered[q]; ok || after.exists[q] {
			continue
		}
		if got, want := got.Index.State(q), after.proves(q); got != want {
			p.t.Fatalf("seed %d step %d: state of %q is %v, not %v", seed, step, q, got, want)
		}
	}
	if len(after.covered) != got.Index.Len() {
		p.t.Fatalf("seed %d step %d: %d paths, not %d", seed, step, got.Index.Len(), len(after.covered))
	}
}
