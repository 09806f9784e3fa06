package workspace_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/blob"
	"reasonix/db"
	"reasonix/internal/workspace"
)

// These benchmarks stand beside `git add -A && git write-tree` in a shadow repository: rounds of
// both alternate, and the median of the ratios is reported as "x-git" (above 1: faster than git).

// keeper keeps what scans emit in a real store, durably.
type keeper struct {
	b     testing.TB
	root  *workspace.Root
	db    *db.DB
	blobs *blob.Store
	parts [][]byte
}

func newKeeper(b testing.TB, dir string) *keeper {
	b.Helper()
	d, err := db.Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), db.Options{})
	if err != nil {
		b.Fatal(err)
	}
	root, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	k := &keeper{b: b, root: root, db: d, blobs: blob.New(d, time.Now)}
	b.Cleanup(k.close)
	return k
}

func (k *keeper) close() {
	_ = k.root.Close()
	_ = k.db.Close()
}

// commit binds the contents, and the part as one more: it has to be on disk as well.
func (k *keeper) commit(ctx context.Context, batch workspace.Batch) error {
	part, err := k.blobs.PrepareBytes(ctx, batch.Part)
	if err != nil {
		return err
	}
	err = k.db.Update(ctx, func(tx *db.WriteTx) error {
		for _, p := range append(batch.Contents, part) {
			if _, err := k.blobs.Bind(tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if batch.Full {
		k.parts = nil
	}
	k.parts = append(k.parts, batch.Part)
	return err
}

// scan loads the index and scans.
func (k *keeper) scan() workspace.Scan {
	base, err := workspace.DecodeParts(k.parts)
	if err != nil {
		k.b.Fatal(err)
	}
	s, err := k.root.Scan(k.b.Context(), workspace.ScanOptions{Base: base, Put: k.blobs.Prepare, Commit: k.commit})
	if err != nil {
		k.b.Fatal(err)
	}
	return s
}

// compact is what a caller does after a first capture.
func (k *keeper) compact(s workspace.Scan) { k.parts = [][]byte{s.Index.Encode()} }

// git runs a shadow repository beside the tree.
type git struct {
	b         testing.TB
	dir, work string
}

func newGit(b testing.TB, work string) *git {
	b.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		b.Skip("git is not here to compare with:", err)
	}
	g := &git{b: b, dir: filepath.Join(b.TempDir(), "shadow.git"), work: work}
	g.run("init", "-q")
	return g
}

func (g *git) run(args ...string) {
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_DIR="+g.dir, "GIT_WORK_TREE="+g.work, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	cmd.Dir = g.work
	if out, err := cmd.CombinedOutput(); err != nil {
		g.b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (g *git) capture() {
	g.run("add", "-A")
	g.run("write-tree")
}

// pairs measures ours and git's in turn; before is called before each of them, unmeasured.
func pairs(b *testing.B, before func(round int), ours, git func()) {
	b.Helper()
	var ratios, all []float64
	measure := func(do func()) time.Duration {
		flush()
		start := time.Now()
		do()
		return time.Since(start)
	}
	for round := 0; b.Loop(); round++ {
		b.StopTimer()
		before(round)
		runtime.GC()
		theirs := measure(git)
		runtime.GC()
		flush()
		b.StartTimer()
		mine := measure(ours)
		ratios = append(ratios, theirs.Seconds()/mine.Seconds())
		all = append(all, mine.Seconds())
	}
	slices.Sort(ratios)
	slices.Sort(all)
	b.ReportMetric(ratios[len(ratios)/2], "x-git")
	b.ReportMetric(1e3*all[len(all)/2], "ms-median")
}

// sources is a copy of the sources of Go: some 11,000 files.
func sources(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("there is no go command to ask for GOROOT:", err)
	}
	dir := filepath.Join(realTemp(b), "src")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "src"))); err != nil {
		b.Fatal(err)
	}
	time.Sleep(grain)
	return dir
}

// grain is what a stamp has to be older than, as in a real tree, not to be racy.
const grain = 50 * time.Millisecond

func BenchmarkScanFirst(b *testing.B) {
	dir := sources(b)
	var k *keeper
	var g *git
	var s workspace.Scan
	pairs(b, func(int) { k, g = newKeeper(b, dir), newGit(b, dir) },
		func() { s = k.scan() }, func() { g.capture() })
	b.ReportMetric(float64(s.Files), "files")
	b.ReportMetric(float64(s.Bytes)/1e6, "MB")
}

func BenchmarkScanUnchanged(b *testing.B) { unchanged(b, sources(b)) }

// BenchmarkScanUnchanged100k has 100,000 files in 2,000 folders.
func BenchmarkScanUnchanged100k(b *testing.B) {
	dir := realTemp(b)
	for i := range 100_000 {
		name := filepath.Join(dir, fmt.Sprintf("d%d/e%d/file%d.txt", i%20, i%2000/20, i))
		if i < 2000 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(name, fmt.Append(nil, i), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(grain)
	unchanged(b, dir)
}

func unchanged(b *testing.B, dir string) {
	k, g := newKeeper(b, dir), newGit(b, dir)
	k.compact(k.scan())
	g.capture()
	time.Sleep(grain)
	k.compact(k.scan()) // what was racy
	var s workspace.Scan
	b.ReportAllocs()
	pairs(b, func(int) {}, func() { s = k.scan() }, g.capture)
	if len(s.Changed) != 0 || s.Read != 0 {
		b.Fatalf("%d changed, %d read", len(s.Changed), s.Read)
	}
	b.ReportMetric(float64(s.Files), "files")
}

func BenchmarkScan100Changed(b *testing.B) {
	dir := sources(b)
	var names []string
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			names = append(names, name)
		}
		return err
	})
	k, g := newKeeper(b, dir), newGit(b, dir)
	k.compact(k.scan())
	g.capture()
	var s workspace.Scan
	edit := func(round int) {
		for i := range 100 {
			f, err := os.OpenFile(names[(i*107+round)%len(names)], os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = fmt.Fprintf(f, "// %d\n", round)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(grain)
	}
	pairs(b, edit, func() { s = k.scan() }, g.capture)
	if len(s.Changed) != 100 {
		b.Fatalf("%d changed", len(s.Changed))
	}
}

func BenchmarkDecodeParts(b *testing.B) {
	dir := sources(b)
	k := newKeeper(b, dir)
	k.compact(k.scan())
	b.ReportAllocs()
	b.SetBytes(int64(len(k.parts[0])))
	for b.Loop() {
		if _, err := workspace.DecodeParts(k.parts); err != nil {
			b.Fatal(err)
		}
	}
}
