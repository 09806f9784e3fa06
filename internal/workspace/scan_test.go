package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

func newScans(t testing.TB, files tree, o ...workspace.Options) *scans {
	t.Helper()
	if len(o) == 0 {
		o = []workspace.Options{{Now: later}}
	}
	return &scans{world: newWorldAt(t, realTemp(t), files, o...)}
}

// changes are a scan's, as "path: before → after".
func changes(s workspace.Scan) map[store.Path]string {
	all := map[store.Path]string{}
	for _, c := range s.Changed {
		all[c.Path] = c.Before.Kind.String() + " → " + c.State.Kind.String()
	}
	return all
}

func gaps(s workspace.Scan) map[store.Path]string {
	all := map[store.Path]string{}
	for _, g := range s.Gaps {
		all[g.Path] = g.Reason
	}
	return all
}

func (s *scans) want(got workspace.Scan, changed, gapped map[store.Path]string) {
	s.t.Helper()
	if diff := cmp.Diff(changed, changes(got)); diff != "" {
		s.t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gapped, gaps(got)); diff != "" {
		s.t.Errorf("gaps (-want +got):\n%s", diff)
	}
}

type told = map[store.Path]string

// all scans with nothing but what the world has.
func (s *scans) all() workspace.Scan {
	s.t.Helper()
	return s.scan(s.root, workspace.ScanOptions{})
}

func TestScanReadsOnlyWhatChanged(t *testing.T) {
	s := newScans(t, tree{"a": "644:a", "d/": "755", "d/b": "600:b", "d/l": "->b", "empty/": "711"})
	got := s.all()
	s.want(got, told{}, told{})
	if got.Files != 3 || got.Read != 3 || !got.Complete || got.Index.Len() != 5 {
		t.Fatalf("%+v", got)
	}
	parts := len(s.parts)
	if got = s.all(); got.Read != 0 || got.Files != 3 || len(s.parts) != parts {
		t.Fatalf("an unchanged tree was read or committed: %+v", got)
	}
	s.must(os.Chtimes(s.name("a"), time.Unix(1, 0), time.Unix(1, 0)))
	got = s.all()
	s.want(got, told{}, told{})
	if got.Read != 1 || len(s.parts) != parts+1 {
		t.Fatalf("a touched file is read once more, and is no change: %+v", got)
	}
	s.must(os.Chmod(s.name("empty"), 0o700))
	s.put("d/b", "600:new")
	s.must(os.Remove(s.name("d/l")))
	s.put("d/new", "644:new")
	s.must(os.Chtimes(s.name("d/b"), time.Unix(2, 0), time.Unix(2, 0)))
	s.want(s.all(), told{"empty": "dir → dir", "d/b": "file → file", "d/l": "symlink → absent", "d/new": "absent → file"}, told{})
}

// TestScanRacy: an edit of the same size within the grain of the clock leaves no trace in the
// stamps and is seen all the same.
func TestScanRacy(t *testing.T) {
	s := newScans(t, tree{"a": "644:one"}, workspace.Options{})
	now := time.Now()
	s.must(os.Chtimes(s.name("a"), now, now))
	s.all()
	s.must(os.WriteFile(s.name("a"), []byte("two"), 0o644))
	s.must(os.Chtimes(s.name("a"), now, now))
	s.want(s.all(), told{"a": "file → file"}, told{})
}

// TestScanLeavesOut: what is never looked at, at any depth; nested repositories are folders.
func TestScanLeavesOut(t *testing.T) {
	dir := realTemp(t)
	s := &scans{world: newWorldAt(t, dir, tree{
		".git/HEAD": "644:x", "sub/.git/HEAD": "644:x", "sub/f": "644:f", "work/.git": "644:gitdir: x", "work/f": "644:f",
		"store/store.db": "600:db", ".rx-0123456789abcdef": "600:staged", "sub/.GIT/x": "644:x",
	}, workspace.Options{Now: later, Protected: []string{dir + "/store"}})}
	got := s.all()
	want := told{"sub": "dir", "sub/f": "file", "work": "dir", "work/f": "file"}
	have := told{}
	for p := range workspace.Dump(got.Index) {
		if !strings.HasSuffix(p, "/") {
			have[store.Path(p)] = got.Index.State(store.Path(p)).Kind.String()
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("index (-want +got):\n%s", diff)
	}
}

// TestScanFollowsNoLink: neither one that leads out nor one that leads round.
func TestScanFollowsNoLink(t *testing.T) {
	outside := realTemp(t)
	s := newScans(t, tree{"d/": "755", "d/f": "644:f", "out": "->" + outside, "loop": "->.", "d/up": "->.."})
	s.must(os.WriteFile(outside+"/secret", []byte("x"), 0o644))
	if got := s.all(); got.Files != 4 {
		t.Fatalf("%d files", got.Files)
	}
	s.must(os.RemoveAll(s.name("d")))
	s.must(os.Symlink(outside, s.name("d")))
	s.want(s.all(), told{"d": "dir → symlink", "d/f": "file → absent", "d/up": "symlink → absent"}, told{})
}

func TestScanIgnoreRules(t *testing.T) {
	s := newScans(t, tree{".gitignore": "644:*.log\n", "a.log": "644:l", "b": "644:b", "node_modules/x": "644:x", "build/f": "644:f"})
	got := s.all()
	if got.Files != 3 || !got.Index.Ignored("a.log", false) || !got.Index.Ignored("node_modules/x", false) || got.Index.Ignored("b", false) {
		t.Fatalf("%+v", workspace.Dump(got.Index))
	}
	// A new rule takes out of the index without a change; one that goes away does not prove
	// that what appears was not there.
	s.put("later", "644:x")
	s.write(".gitignore", "b\n")
	s.want(s.all(), told{".gitignore": "file → file", "a.log": "uncaptured → file", "later": "absent → file"}, told{})
	s.must(os.Remove(s.name("b")))
	s.want(s.all(), told{}, told{})
	s.must(os.Remove(s.name(".gitignore")))
	s.want(s.all(), told{".gitignore": "file → absent"}, told{})
}

// write replaces a file by one with another stamp.
func (s *scans) write(p, content string) {
	s.t.Helper()
	s.put(p, "644:"+content)
}

// TestScanRecorded: what the history knows stays covered, below ignored folders too.
func TestScanRecorded(t *testing.T) {
	s := newScans(t, tree{"node_modules/x/a": "644:a", "node_modules/y": "644:y", ".gitignore": "644:*.env\n", "k.env": "644:k"})
	s.all()
	recorded := []store.Path{"node_modules/x/a", "node_modules/x/new", "k.env", "no.env"}
	s.want(s.scan(s.root, workspace.ScanOptions{Recorded: recorded}),
		told{"node_modules/x/a": "uncaptured → file", "k.env": "uncaptured → file"}, told{})
	s.write("node_modules/x/new", "n")
	s.write("node_modules/x/other", "n")
	s.write("k.env", "kk")
	s.write("no.env", "x")
	got := s.all() // recorded once is recorded for good
	s.want(got, told{"node_modules/x/new": "absent → file", "k.env": "file → file", "no.env": "absent → file"}, told{})
	if got.Index.Ignored("k.env", false) || !got.Index.Ignored("other.env", false) {
		t.Error("what is recorded is not ignored")
	}
	s.must(os.RemoveAll(s.name("node_modules")))
	s.want(s.all(), told{"node_modules/x/a": "file → absent", "node_modules/x/new": "file → absent"}, told{})
}

// TestScanBadRules: rules that cannot be read are not "nothing is ignored".
func TestScanBadRules(t *testing.T) {
	for name, spoil := range map[string]func(s *scans){
		"a folder": func(s *scans) { s.must(os.Mkdir(s.name("d/.gitignore"), 0o755)) },
		"a link":   func(s *scans) { s.must(os.Symlink("../rules", s.name("d/.gitignore"))) },
		"too long": func(s *scans) {
			s.must(os.WriteFile(s.name("d/.gitignore"), []byte(strings.Repeat("secret\n", 200_000)), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScans(t, tree{"rules": "644:secret", "d/.gitignore": "644:secret\n", "d/f": "644:f", "d/secret": "600:s", "d/e/g": "644:g"})
			s.all()
			s.must(os.Remove(s.name("d/.gitignore")))
			spoil(s)
			s.write("d/f", "ff")
			s.write("d/e/new", "n")
			s.write("new", "n")
			s.must(os.Remove(s.name("d/e/g")))
			got := s.all()
			have := changes(got)
			delete(have, "d/.gitignore")
			if diff := cmp.Diff(told{"d/f": "file → file", "d/e/g": "file → absent", "new": "absent → file"}, have); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if gaps(got)["d/.gitignore"] != store.GapIgnoreRules {
				t.Error("gaps:", got.Gaps)
			}
			if got := s.all(); len(got.Gaps) != 0 || len(got.Changed) != 0 {
				t.Errorf("told again: %v %v", got.Gaps, got.Changed)
			}
			s.must(os.RemoveAll(s.name("d/.gitignore")))
			s.write("d/.gitignore", "secret\n")
			have = changes(s.all())
			delete(have, "d/.gitignore")
			if diff := cmp.Diff(told{"d/e/new": "uncaptured → file"}, have); diff != "" {
				t.Errorf("with good rules again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScanLimits(t *testing.T) {
	s := newScans(t, tree{"a": "644:1234", "b": "644:12345678", "c": "644:1234"})
	s.must(mkfifo(s.name("p")))
	o := workspace.ScanOptions{MaxFile: 6, MaxBytes: 6}
	got := s.scan(s.root, o)
	if g := gaps(got); g["b"] != store.GapTooLarge || g["p"] != store.GapSpecial || len(g) != 3 {
		t.Fatal(g)
	}
	s.want(s.scan(s.root, o), told{}, told{}) // not told again
	s.write("b", "123456789")
	s.want(s.scan(s.root, o), told{}, told{"b": store.GapTooLarge})
	got = s.all() // without limits
	if len(got.Changed) != 2 || changes(got)["b"] != "uncaptured → file" {
		t.Fatal(changes(got))
	}

	s.write("d/e", "x")
	s.write("f", "x")
	s.write("a", "new")
	got = s.scan(s.root, workspace.ScanOptions{MaxFiles: 5})
	if g := gaps(got); g[""] != store.GapTooManyFiles || changes(got)["a"] != "file → file" || !got.Complete {
		t.Fatal(g, changes(got))
	}
	for p, c := range changes(s.all()) {
		if c != "uncaptured → file" && c != "uncaptured → dir" {
			t.Errorf("%q: %s, and it was left out before", p, c)
		}
	}
	s.want(s.all(), told{}, told{})
}

// TestScanUnreadable: one folder that may not be listed is a gap of its own; what it holds is
// not absent, and all else is covered.
func TestScanUnreadable(t *testing.T) {
	closed := true
	s := newScans(t, tree{"a": "644:a", "d/x": "644:x", "d/e/y": "644:y", "z/f": "644:f"}, workspace.Options{
		Now: later,
		Fault: func(op string, p store.Path) error {
			if closed && (op == "open" || op == "readdir") && (p == "d" || p == "z/f") {
				return fs.ErrPermission
			}
			return nil
		},
	})
	closed = false
	s.all()
	closed = true
	s.must(os.Chmod(s.name("d"), 0o750))
	s.write("d/new", "n")
	s.write("a", "aa")
	s.write("z/f", "ff")
	s.must(os.Remove(s.name("d/x")))
	s.want(s.all(), told{"a": "file → file", "d": "dir → dir", "z/f": "file → uncaptured"},
		told{"d": store.GapUnreadable, "z/f": store.GapUnreadable})
	s.want(s.all(), told{}, told{})
	closed = false
	s.must(os.Chmod(s.name("z/f"), 0o600))
	s.want(s.all(), told{"d/new": "uncaptured → file", "d/x": "file → absent", "z/f": "uncaptured → file"}, told{})
}

// TestScanDeadline stops a scan at every call in turn. What it did not reach is as it was, and the
// next scans find the rest, each change once.
func TestScanDeadline(t *testing.T) {
	from := tree{"a": "644:a", "d/b": "644:b", "d/e/c": "644:c", "gone/f": "644:f", "z": "644:z"}
	to := tree{"a": "644:aa", "d/b": "644:bb", "d/e/c": "644:cc", "d/e/new": "644:n", "made/g": "644:g", "z": "->a"}
	cut := 0
	for n := 1; ; n++ {
		got, calls := scanUntil(t, n, from, to)
		if !got.Complete {
			cut++
		}
		if calls < n {
			break
		}
	}
	if cut < 10 {
		t.Fatalf("only %d scans were stopped", cut)
	}
}

// scanUntil scans until the deadline, which passes during the n-th call.
func scanUntil(t *testing.T, n int, from, to tree) (got workspace.Scan, calls int) {
	soft, cancel := context.WithCancel(t.Context())
	defer cancel()
	armed := false
	s := newScans(t, from, workspace.Options{Now: later, Fault: func(string, store.Path) error {
		if !armed {
			return nil
		}
		if calls++; calls == n {
			cancel()
		}
		return nil
	}})
	s.all()
	s.rebuild(from, to)
	armed = true
	o := workspace.ScanOptions{Base: s.base, Put: s.mem.put, Commit: s.commit(nil)}
	got, err := s.root.Scan(t.Context(), o.StopWith(soft))
	s.must(err)
	armed = false
	s.kept(got)
	if !got.Complete && (gaps(got)[""] != store.GapScanIncomplete || got.Index.Complete()) {
		t.Fatal("an incomplete scan that does not say so:", got.Gaps)
	}
	rows := map[store.Path]row{}
	s.add(rows, got)
	s.add(rows, s.all())
	s.settled(rows, from, to)
	return got, calls
}

// TestScanReserve: a deadline that is nearer than the reserve has passed for a scan, which says
// so and is no error.
func TestScanReserve(t *testing.T) {
	s := newScans(t, tree{"a": "644:a"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	got, err := s.root.Scan(ctx, workspace.ScanOptions{Put: s.mem.put, Reserve: 2 * time.Hour})
	if err != nil || got.Complete || got.Index.Len() != 0 {
		t.Fatal(got, err)
	}
	if got, err = s.root.Scan(ctx, workspace.ScanOptions{Put: s.mem.put, Base: got.Index, Reserve: time.Minute}); err != nil || !got.Complete || got.Files != 1 {
		t.Fatal(got, err)
	}
}

// rebuild makes the tree to out of from.
func (s *scans) rebuild(from, to tree) {
	s.t.Helper()
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(from))) {
		if to[p] != from[p] {
			s.must(os.RemoveAll(s.name(p)))
		}
	}
	_ = os.Remove(s.name("gone"))
	for p, what := range to {
		if from[p] != what {
			s.put(p, what)
		}
	}
}

// add joins the changes of one scan to those before it.
func (s *scans) add(rows map[store.Path]row, got workspace.Scan) {
	s.t.Helper()
	for _, c := range got.Changed {
		before := c.Before
		if was, ok := rows[c.Path]; ok {
			if was.After != c.Before && c.Before != store.UncapturedState {
				s.t.Fatalf("%q was left as %v, and was %v", c.Path, was.After, c.Before)
			}
			before = was.Before
		}
		rows[c.Path] = row{before, c.State}
	}
}

// settled compares all changes with those there were: each is reported, with the state before
// or none.
func (s *scans) settled(rows map[store.Path]row, from, to tree) {
	s.t.Helper()
	other := newFastWorld(s.t, from)
	defer os.RemoveAll(other.dir)
	want := difference(takeSnapshot(s.t, other.dir, nil, 0), takeSnapshot(s.t, s.dir, nil, 0))
	for p, r := range rows {
		if r.Before == store.UncapturedState {
			r.Before = want[p].Before
			rows[p] = r
		}
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		s.t.Fatalf("changes (-want +got):\n%s", diff)
	}
}

// TestScanFaults fails each call of a scan once, and ends the process there: what was committed
// holds, and the next scan finds what is missing.
func TestScanFaults(t *testing.T) {
	from := tree{".gitignore": "644:*.o\n", "a": "644:a", "d/b": "644:b", "d/e/c": "644:c", "gone/f": "644:f", "l": "->a", "x.o": "644:x"}
	to := tree{".gitignore": "644:*.p\n", "a": "644:aa", "d/b": "644:bb", "d/e/c": "644:cc", "d/e/n": "644:n", "made/g": "644:g", "l": "->d", "x.o": "644:x"}
	for _, first := range []bool{true, false} {
		for _, halt := range []bool{true, false} {
			t.Run(fmt.Sprintf("first %v halt %v", first, halt), func(t *testing.T) {
				n := 1
				for ; breakScan(t, n, first, halt, from, to); n++ {
				}
				if n < 40 {
					t.Fatalf("only %d calls were made", n)
				}
			})
		}
	}
}

func breakScan(t *testing.T, n int, first, halt bool, from, to tree) (broken bool) {
	s := newScans(t, from)
	if !first {
		s.all()
		s.rebuild(from, to)
	}
	var committed []workspace.Change
	calls := 0
	r := s.opened(workspace.Options{Now: later, Fault: func(string, store.Path) error {
		if calls++; calls != n {
			return nil
		}
		if halt {
			panic(stopped{})
		}
		return errBroken
	}})
	func() {
		defer func() {
			if e := recover(); e != nil && e != (stopped{}) {
				panic(e)
			}
		}()
		_, _ = r.Scan(t.Context(), workspace.ScanOptions{Base: s.base, Put: s.mem.put, Commit: s.commit(&committed)}.WithBatch(2))
	}()
	var err error
	s.base, err = workspace.DecodeParts(s.parts)
	s.must(err)
	truth := takeSnapshot(t, s.dir, nil, 0)
	for p := range truth.exists {
		if s.base.State(p) == store.AbsentState && (first || from[string(p)] != "") {
			t.Fatalf("call %d: %q is there, and absent in the index", n, p)
		}
	}
	rows := map[store.Path]row{}
	s.add(rows, workspace.Scan{Changed: committed})
	s.add(rows, s.all())
	for p, want := range truth.covered {
		if got := s.base.State(p); got != want {
			t.Fatalf("call %d: %q is %v, not %v", n, p, got, want)
		}
	}
	if !first {
		s.settled(rows, from, to)
	}
	return calls >= n
}

// TestScanErrors: an error of the one who takes the contents or the batch ends the scan.
func TestScanErrors(t *testing.T) {
	s := newScans(t, tree{"a": "644:a", "b/c": "644:c"})
	bad := func(context.Context, io.Reader, blob.Hash) (*blob.Prepared, error) { return nil, errBroken }
	if _, err := s.root.Scan(t.Context(), workspace.ScanOptions{Put: bad}); !errors.Is(err, errBroken) {
		t.Error("put:", err)
	}
	commit := func(context.Context, workspace.Batch) error { return errBroken }
	if _, err := s.root.Scan(t.Context(), workspace.ScanOptions{Put: s.mem.put, Commit: commit}); !errors.Is(err, errBroken) {
		t.Error("commit:", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.root.Scan(ctx, workspace.ScanOptions{Put: s.mem.put}); !errors.Is(err, context.Canceled) {
		t.Error("context:", err)
	}
}

// TestScanShapes: many files in one folder, deep folders, odd names.
func TestScanShapes(t *testing.T) {
	s := &scans{world: newFastWorld(t, tree{})}
	s.root = s.opened(workspace.Options{Now: later})
	deep := strings.Repeat("d/", 64)
	s.write(deep+"f", "x")
	for i := range 10_000 {
		s.must(os.MkdirAll(s.name("many"), 0o755))
		s.must(os.WriteFile(s.name(fmt.Sprintf("many/%d", i)), fmt.Append(nil, i), 0o644))
	}
	odd := []string{"\xff\xfe", "a\nb", " ", "-rf", "é", "e\u0301", strings.Repeat("n", 255), "a\\b", "*", "🙂"}
	for _, name := range odd {
		s.write("odd/"+name, name)
	}
	got := s.all()
	if got.Files != 10_001+len(odd) || len(s.parts) < 3 {
		t.Fatalf("%d files in %d parts", got.Files, len(s.parts))
	}
	if got = s.all(); got.Read != 0 || len(got.Changed) != 0 {
		t.Fatalf("%d read", got.Read)
	}
	s.must(os.RemoveAll(s.name("many")))
	s.must(os.RemoveAll(s.name("d")))
	if got = s.all(); len(got.Changed) != 10_001+65 {
		t.Fatalf("%d changes", len(got.Changed))
	}
	for _, name := range odd {
		if got.Index.State(store.Path("odd/"+name)).Kind != store.File {
			t.Errorf("%q is not there", name)
		}
	}
}

// TestScanBesideWriters: whatever others do meanwhile, a scan ends, and one in peace afterwards
// knows everything.
func TestScanBesideWriters(t *testing.T) {
	s := newScans(t, tree{"a/f": "644:f", "b/": "755"}, workspace.Options{})
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 2 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				dir := s.name(fmt.Sprintf("%c/w%d", 'a'+n%2, i))
				_ = os.MkdirAll(dir, 0o755)
				_ = os.WriteFile(fmt.Sprintf("%s/%d", dir, n%7), fmt.Append(nil, n), 0o644)
				_ = os.Rename(dir, dir+"x")
				_ = os.RemoveAll(dir + "x")
				_ = os.Symlink("..", dir)
				_ = os.Remove(dir)
				_ = os.WriteFile(s.name("a/.gitignore"), fmt.Append(nil, n%3, "\n"), 0o644)
			}
		})
	}
	for range 30 {
		s.all()
	}
	close(done)
	wg.Wait()
	s.all()
	for p, want := range takeSnapshot(t, s.dir, nil, 0).covered {
		if got := s.base.State(p); got != want {
			t.Errorf("%q is %v, not %v", p, got, want)
		}
	}
}
