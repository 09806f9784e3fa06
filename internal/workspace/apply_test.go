package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/workspace"
	"reasonix/store"
)

var (
	long   = strings.Repeat("n", 255)
	aThing = []tree{
		{},
		{"x": "644:one"},
		{"x": "600:two, longer"},
		{"x": "755:one"},
		{"x": "0:one"},
		{"x": "->elsewhere"},
		{"x": "->nowhere/at/all"},
		{"x/": "755"},
		{"x/": "555"},
		{"x/": "750", "x/f": "640:in it", "x/g": "444:read only"},
		{"x/": "755", "x/f/": "700", "x/f/f": "644:deep", "x/l": "->f/f"},
		{"x/": "700", "x/f": "->l", "x/e/": "711"},
		{"x/": "555", "x/f": "444:closed", "x/d/": "555", "x/d/f": "400:closed too"},
	}
)

// TestEveryKindBecomesEveryKind replaces everything by everything and back (I4), with and
// without a system that exchanges names.
func TestEveryKindBecomesEveryKind(t *testing.T) {
	for i, from := range aThing {
		for j, to := range aThing {
			t.Run(fmt.Sprintf("%d to %d", i, j), func(t *testing.T) {
				t.Parallel()
				if os.Geteuid() != 0 && (i == 4 || j == 4) {
					t.Skip("a file of mode 0000 cannot be captured by its owner")
				}
				for _, noSwap := range []bool{false, true} {
					w := newFastWorld(t, from)
					if noSwap {
						workspace.NoSwap(w.root)
					}
					there := w.stepsTo(to)
					w.must(w.apply(w.root, there))
					w.same(to)
					w.must(w.apply(w.root, there)) // again: all is done
					w.same(to)
					w.must(w.apply(w.root, w.stepsTo(from)))
					w.same(from)
				}
			})
		}
	}
}

// TestManyFiles takes the way of many files: one sync for all of them.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	from, to := tree{}, tree{}
	for i := range 60 {
		d := fmt.Sprintf("d%d/", i%7)
		from[d], to[d] = "755", "755"
		from[fmt.Sprintf("%sf%d", d, i)] = fmt.Sprintf("644:old %d", i)
		if i%3 > 0 {
			to[fmt.Sprintf("%sf%d", d, i)] = fmt.Sprintf("%o:new %d", 0o600+i%2, i)
		}
	}
	w := newWorld(t, from)
	w.must(w.apply(w.root, w.stepsTo(to)))
	w.same(to)
}

func TestNamesAreBytes(t *testing.T) {
	t.Parallel()
	names := []string{
		long, "new\nline", `quote"'`, `back\slash`, "\xff\xfe", "-dash", " space ", "é", "e\u0301", "*?[", "..x", "...", "~",
	}
	from, to := tree{}, tree{}
	for _, n := range names {
		from[n+"/"], to[n+"/"] = "755", "711"
		from[n+"/"+n] = "644:" + n
		to[n+"/"+n] = "600:other"
	}
	w := newWorld(t, from)
	w.must(w.apply(w.root, w.stepsTo(to)))
	w.same(to)
	w.must(w.apply(w.root, w.stepsTo(tree{})))
	w.same(tree{})
	w.must(w.apply(w.root, w.stepsTo(from)))
	w.same(from)
}

func TestDeepTree(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("deep/", 200)
	from := tree{}
	for p := strings.TrimSuffix(deep, "/"); p != "."; p = path.Dir(p) {
		from[p+"/"] = "755"
	}
	from[deep+"f"] = "644:down here"
	w := newWorld(t, from)
	w.must(w.apply(w.root, w.stepsTo(tree{})))
	w.same(tree{})
	w.must(w.apply(w.root, w.stepsTo(from)))
	w.same(from)
}

func TestCaseOnlyRename(t *testing.T) {
	w := newWorld(t, tree{"a.txt": "644:same"})
	if _, err := os.Stat(w.name("A.TXT")); err == nil {
		t.Skip("the file system ignores case")
	}
	w.must(w.apply(w.root, w.stepsTo(tree{"A.txt": "644:same"})))
	w.same(tree{"A.txt": "644:same"})
}

// TestRandomTrees plays random trees into each other, many of them with a change of kind on
// the way.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newFastWorld(t, tree{})
	for range 150 {
		to := randomTree(rnd)
		w.must(w.apply(w.root, w.stepsTo(to)))
		w.same(to)
	}
}

func randomTree(rnd *rand.Rand) tree {
	names := []string{"a", "b", "a-b", "\xff", ".rx-notours"}
	files := tree{}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for _, n := range names {
			p := dir + n
			switch k := rnd.IntN(8); {
			case k < 3 && depth < 3:
				files[p+"/"] = fmt.Sprintf("%o", 0o700+rnd.IntN(0o100))
				fill(p+"/", depth+1)
			case k == 3:
				files[p] = "->" + names[rnd.IntN(len(names))]
			case k < 6:
				files[p] = fmt.Sprintf("%o:%d", 0o400+rnd.IntN(0o400), rnd.IntN(5))
			}
		}
	}
	fill("", 0)
	return files
}

func TestUntouchedStaysUntouched(t *testing.T) {
	w := newWorld(t, tree{"a": "644:a", "b": "644:b", "c": "644:c"})
	before := map[string]fs.FileInfo{}
	for _, n := range []string{"a", "b", "c"} {
		fi, err := os.Stat(w.name(n))
		w.must(err)
		before[n] = fi
	}
	w.must(w.apply(w.root, w.stepsTo(tree{"a": "644:a", "b": "700:b", "c": "644:other"})))
	w.same(tree{"a": "644:a", "b": "700:b", "c": "644:other"})
	for n, fi := range before {
		now, err := os.Stat(w.name(n))
		w.must(err)
		kept := os.SameFile(fi, now) && fi.ModTime().Equal(now.ModTime())
		if want := n != "c"; kept != want {
			t.Errorf("%s: same inode and mtime: %v, want %v", n, kept, want)
		}
	}
}

func TestNothingToDoWritesNothing(t *testing.T) {
	w := newWorld(t, tree{"a": "644:a", "d/": "755", "d/l": "->x"})
	steps := w.stepsTo(w.files())
	r := w.faulty(func(op string, p store.Path) error { return fmt.Errorf("%s %q was called", op, p) })
	w.must(w.apply(r, steps))
}

func TestHardLinkKeepsItsOtherName(t *testing.T) {
	w := newWorld(t, tree{"a": "644:shared"})
	w.must(os.Link(w.name("a"), w.name("other")))
	w.must(w.apply(w.root, []workspace.Step{w.file("a", 0o644, "alone")}))
	w.same(tree{"a": "644:alone", "other": "644:shared"})
}

func TestInTheWay(t *testing.T) {
	files := tree{"d/": "755", "d/known": "644:k", "d/hand": "644:made by hand"}
	w := newWorld(t, files)
	steps := []workspace.Step{w.file("d", 0o644, "a file"), w.gone("d/known")}
	if err := w.apply(w.root, steps); !errors.Is(err, workspace.ErrInTheWay) {
		t.Fatalf("got %v, want ErrInTheWay", err)
	}
	w.must(w.apply(w.root, []workspace.Step{w.file("d/known", 0o644, "k")}))
	w.same(files)
}

func TestFolderThatHoldsMoreIsKept(t *testing.T) {
	w := newWorld(t, tree{"d/": "555", "d/e/": "755", "d/e/f": "644:f", "d/hand": "644:h"})
	staged, err := w.stage(w.root, []workspace.Step{w.gone("d"), w.gone("d/e"), w.gone("d/e/f")})
	w.must(err)
	w.must(staged.Apply(t.Context()))
	w.same(tree{"d/": "555", "d/hand": "644:h"})
	if diff := cmp.Diff([]store.Path{"d"}, staged.Kept()); diff != "" {
		t.Fatal(diff)
	}
}

func TestMissingParentIsAnError(t *testing.T) {
	w := newWorld(t, tree{})
	if err := w.apply(w.root, []workspace.Step{w.file("d/f", 0o644, "f")}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want fs.ErrNotExist", err)
	}
	w.same(tree{})
}

func TestStepsThatMakeNoSense(t *testing.T) {
	w := newWorld(t, tree{"f": "644:f"})
	f := w.file("f", 0o644, "new")
	absent := store.AbsentState
	for name, c := range map[string]struct {
		steps []workspace.Step
		want  error
	}{
		"outside":       {[]workspace.Step{{Path: "../f", From: absent, To: f.To}}, workspace.ErrInvalid},
		"absolute":      {[]workspace.Step{{Path: "/f", From: absent, To: f.To}}, workspace.ErrInvalid},
		"git":           {[]workspace.Step{{Path: "a/.GIT/config", From: absent, To: f.To}}, workspace.ErrProtected},
		"not captured":  {[]workspace.Step{{Path: "f", From: store.UncapturedState, To: f.To}}, workspace.ErrInvalid},
		"to uncaptured": {[]workspace.Step{{Path: "f", From: f.From, To: store.UncapturedState}}, workspace.ErrInvalid},
		"not known":     {[]workspace.Step{{Path: "f", To: f.To}}, workspace.ErrInvalid},
		"setuid": {[]workspace.Step{{
			Path: "f", From: f.From, To: store.State{Kind: store.File, Mode: 0o4755, Blob: f.To.Blob, Size: f.To.Size},
		}}, workspace.ErrInvalid},
		"twice":         {[]workspace.Step{f, f}, workspace.ErrTwice},
		"below no dir":  {[]workspace.Step{f, {Path: "f/g", From: absent, To: f.To}}, workspace.ErrInvalid},
		"below nothing": {[]workspace.Step{w.gone("f"), {Path: "f/g", From: absent, To: f.To}}, workspace.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if err := w.apply(w.root, c.steps); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			w.same(tree{"f": "644:f"})
		})
	}
}

func TestContentOfAnotherSize(t *testing.T) {
	w := newWorld(t, tree{"f": "644:f"})
	for _, kind := range []store.Kind{store.File, store.Symlink} {
		s := w.file("f", 0o644, "new")
		s.To.Kind = kind
		s.To.Size++
		if err := w.apply(w.root, []workspace.Step{s}); err == nil {
			t.Fatal("a content of another size was taken")
		}
	}
	w.same(tree{"f": "644:f"})
}

func TestStagedFilesAreSecret(t *testing.T) {
	w := newWorld(t, tree{"f": "644:old"})
	var modes []fs.FileMode
	r := w.faulty(func(op string, _ store.Path) error {
		if op == "write" || op == "fsync" {
			fi, err := os.Lstat(w.name(workspace.StageName(opID, "f")))
			if err != nil {
				return nil // renamed by now
			}
			modes = append(modes, fi.Mode())
		}
		return nil
	})
	w.must(w.apply(r, []workspace.Step{w.file("f", 0o666, "new")}))
	if want := []fs.FileMode{0o600, 0o600}; !slices.Equal(modes, want) {
		t.Fatalf("modes while it was written: %v, want %v", modes, want)
	}
	w.same(tree{"f": "666:new"})
}

// TestStagedNames: nothing that is staged is listed, read or taken for a path.
func TestStagedNames(t *testing.T) {
	w := newWorld(t, tree{"f": "644:old"})
	staged, err := w.stage(w.root, []workspace.Step{w.file("f", 0o644, "new")})
	w.must(err)
	name := workspace.StageName(opID, "f")
	if _, err := os.Lstat(w.name(name)); err != nil || !workspace.IsStaged(name) {
		t.Fatalf("staged file: %v, IsStaged %v", err, workspace.IsStaged(name))
	}
	entries, err := w.root.List(".")
	w.must(err)
	if diff := cmp.Diff([]workspace.Entry{{Path: "f", Kind: store.File}}, entries); diff != "" {
		t.Fatal(diff)
	}
	if _, err := w.root.Resolve(w.dir, name); !errors.Is(err, workspace.ErrProtected) {
		t.Fatalf("resolve a staged file: %v", err)
	}
	w.must(staged.Discard())
	w.same(tree{"f": "644:old"})
	for _, n := range []string{"", ".rx-", ".rx-0123456789abcde", ".rx-0123456789abcdefa", ".rx-0123456789ABCDEF", "rx-0123456789abcdef"} {
		if workspace.IsStaged(n) {
			t.Errorf("%q counts as staged", n)
		}
	}
}

func TestSweep(t *testing.T) {
	from := tree{"d/": "755", "d/f": "644:f", "x": "644:x"}
	w := newWorld(t, from)
	steps := w.stepsTo(tree{"d/": "755", "d/f": "644:g", "x/": "755", "x/y/": "755", "x/y/z": "644:z"})
	for range 2 { // a second operation of the same id finds the leftovers of the first
		_, err := w.stage(w.root, steps)
		w.must(err)
	}
	if len(w.files()) == len(from) {
		t.Fatal("nothing was staged")
	}
	ps := make([]store.Path, len(steps))
	for i, s := range steps {
		ps[i] = s.Path
	}
	w.must(w.root.Sweep("another operation", ps))
	if len(w.files()) == len(from) {
		t.Fatal("another operation's files were swept")
	}
	w.must(w.root.Sweep(opID, ps))
	w.same(from)
}
