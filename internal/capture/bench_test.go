package capture_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// field is a workspace on disk with a store and, where git is there, a shadow repository.
type field struct {
	b       *testing.B
	dir     string
	store   string
	git     string // "" without git
	capture *capture.Capturer
}

func newField(b *testing.B, dir string) *field {
	b.Helper()
	f := &field{b: b, dir: dir}
	if _, err := exec.LookPath("git"); err == nil {
		f.git = filepath.Join(b.TempDir(), "shadow.git")
	} else {
		b.Log("git is not here: only this program is measured")
	}
	return f
}

// goSource copies the source of Go: 11,000 files.
func goSource(b *testing.B) string {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "src")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src"))); err != nil {
		b.Fatal(err)
	}
	return dir
}

// generated makes n small files, a hundred in each folder.
func generated(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("d%03d/e%02d/f%02d.txt", i/10000, i/100%100, i%100))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(name, []byte(fmt.Sprintf("file %d\n", i)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// open opens a new store for the workspace.
func (f *field) open() {
	f.b.Helper()
	f.close()
	root, err := workspace.Open(f.dir, workspace.Options{})
	if err != nil {
		f.b.Fatal(err)
	}
	f.store = filepath.Join(f.b.TempDir(), "store.db")
	s, err := store.Open(f.b.Context(), f.store, store.Options{Create: &store.Workspace{Root: root.Path()}})
	if err != nil {
		f.b.Fatal(err)
	}
	f.capture = &capture.Capturer{Store: s, Root: root}
}

func (f *field) close() {
	if f.capture != nil {
		if err := f.capture.Store.Close(); err != nil {
			f.b.Fatal(err)
		}
		_ = f.capture.Root.Close()
		_ = os.Remove(f.store)
	}
}

func (f *field) scan() capture.Scanned {
	f.b.Helper()
	found, err := f.capture.Scan(f.b.Context(), "", false)
	if err != nil || !found.Complete {
		f.b.Fatal(found.Complete, err)
	}
	return found
}

// snapshot is what a shadow repository does in the place of a scan.
func (f *field) snapshot() {
	f.b.Helper()
	for _, args := range [][]string{{"add", "-A"}, {"write-tree"}} {
		f.run(args...)
	}
}

func (f *field) run(args ...string) {
	f.b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = f.dir, append(os.Environ(), "GIT_DIR="+f.git, "GIT_WORK_TREE="+f.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		f.b.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (f *field) newGit() {
	f.b.Helper()
	if err := os.RemoveAll(f.git); err != nil {
		f.b.Fatal(err)
	}
	f.run("init", "-q")
}

// pairs measures both, one after the other in turns, and reports the medians and the median of
// the ratios of neighbours. What one has left to be written or collected is not the other's.
func (f *field) pairs(before func(), ours, theirs func()) {
	f.b.Helper()
	var us, them []time.Duration
	var ratios []float64
	measure := func(do func()) time.Duration {
		runtime.GC()
		_ = exec.Command("sync").Run() // where there is such a thing
		start := time.Now()
		do()
		return time.Since(start)
	}
	for f.b.Loop() {
		f.b.StopTimer()
		before()
		if f.git != "" {
			them = append(them, measure(theirs))
		}
		f.b.StartTimer()
		us = append(us, measure(ours))
		if f.git != "" {
			ratios = append(ratios, them[len(them)-1].Seconds()/us[len(us)-1].Seconds())
		}
	}
	f.b.ReportMetric(median(us).Seconds()*1000, "scan-ms")
	if f.git != "" {
		slices.Sort(ratios)
		f.b.ReportMetric(median(them).Seconds()*1000, "git-ms")
		f.b.ReportMetric(ratios[len(ratios)/2], "x-git")
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkFirstScan stores the whole source of Go, durably, beside git which does not sync.
func BenchmarkFirstScan(b *testing.B) {
	f := newField(b, goSource(b))
	f.pairs(func() {
		f.open()
		if f.git != "" {
			f.newGit()
		}
	}, func() { f.scan() }, f.snapshot)
	f.close()
}

// BenchmarkScanUnchanged looks at a workspace in which nothing has changed.
func BenchmarkScanUnchanged(b *testing.B) {
	for name, dir := range map[string]func(*testing.B) string{
		"go":     goSource,
		"100000": func(b *testing.B) string { return generated(b, 100_000) },
	} {
		b.Run(name, func(b *testing.B) {
			f := newField(b, dir(b))
			f.settled()
			f.pairs(func() {}, func() { f.scan() }, f.snapshot)
			f.close()
		})
	}
}

// settled scans until no stamp is racy any more, on both sides.
func (f *field) settled() {
	f.open()
	f.scan()
	if f.git != "" {
		f.newGit()
		f.snapshot()
	}
	time.Sleep(1100 * time.Millisecond)
	f.scan()
	if f.git != "" {
		f.snapshot()
	}
}

// BenchmarkScanChanged finds 100 changed files in the source of Go.
func BenchmarkScanChanged(b *testing.B) {
	f := newField(b, goSource(b))
	f.settled()
	var names []string
	err := filepath.WalkDir(f.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	round := 0
	f.pairs(func() {
		round++
		for i := range 100 {
			name := names[(i*97+round*31)%len(names)]
			file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			_, werr := fmt.Fprintf(file, "// %d\n", round)
			if err := file.Close(); err != nil || werr != nil {
				b.Fatal(err, werr)
			}
		}
		time.Sleep(20 * time.Millisecond) // nothing is racy, on either side
	}, func() { f.scan() }, f.snapshot)
	f.close()
}
