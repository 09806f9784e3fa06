package hook

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/internal/place"
)

// eventFor is an edit of the file f in dir.
func eventFor(dir, kind string) string {
	return `{"v":1,"event":"` + kind + `","session":"bench","cwd":"` + dir + `","tool":"edit_file","paths":["f"],"call":"c"}`
}

func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkRun is a hook without its process: open, recover, capture, close.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	w := place.Where{State: filepath.Join(b.TempDir(), "state")}
	content := make([]byte, 10<<10)
	b.ReportAllocs()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		content[i%len(content)]++
		if err := os.WriteFile(filepath.Join(dir, "f"), content, 0o644); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		r, err := Run(context.Background(), Options{In: strings.NewReader(eventFor(dir, "after-edit")), Where: w})
		took = append(took, time.Since(start))
		if err != nil || !r.OK {
			b.Fatal(err, r)
		}
	}
	percentiles(b, took)
}

// BenchmarkProcess is the whole program, built as released, beside the start of it alone.
func BenchmarkProcess(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "reasonix")
	if out, err := exec.Command("go", "build", "-o", bin, "reasonix/cmd/reasonix").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	dir, state := b.TempDir(), b.TempDir()
	content := make([]byte, 10<<10)
	for _, bench := range []struct {
		name, stdin string
		args        []string
	}{
		{"version", "", []string{"version"}},
		{"before-edit", eventFor(dir, "before-edit"), []string{"hook", "--strict"}},
		{"after-edit", eventFor(dir, "after-edit"), []string{"hook", "--strict"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				content[i%len(content)]++
				if err := os.WriteFile(filepath.Join(dir, "f"), content, 0o644); err != nil {
					b.Fatal(err)
				}
				cmd := exec.Command(bin, bench.args...)
				cmd.Env = []string{"HOME=" + state, "XDG_STATE_HOME=" + state}
				cmd.Stdin = strings.NewReader(bench.stdin)
				start := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				took = append(took, time.Since(start))
			}
			percentiles(b, took)
		})
	}
}

// BenchmarkProcessBesideGit is a hook about one edit in the source of Go, beside what a shadow
// repository does at the same moment, the start of the program alone, and the start of any Go
// program: by turns, in one run.
func BenchmarkProcessBesideGit(b *testing.B) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Skip("git is not here")
	}
	tmp := b.TempDir()
	bin, hello := filepath.Join(tmp, "program"), filepath.Join(tmp, "hello")
	source := filepath.Join(tmp, "hello.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	output(b, "", nil, "go", "build", "-tags", "urfave_cli_no_docs", "-o", bin, "reasonix/cmd/reasonix")
	output(b, "", nil, "go", "build", "-o", hello, source)
	dir := filepath.Join(tmp, "src")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(strings.TrimSpace(output(b, "", nil, "go", "env", "GOROOT")), "src"))); err != nil {
		b.Fatal(err)
	}
	env := append(
		os.Environ(), "HOME="+tmp, "XDG_STATE_HOME="+tmp, "GIT_DIR="+filepath.Join(tmp, "shadow.git"), "GIT_WORK_TREE="+dir,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a",
	)
	event := strings.Replace(eventFor(dir, "after-edit"), `"f"`, `"fmt/print.go"`, 1)
	git := func() {
		output(b, "", env, "git", "add", "-A")
		tree := strings.TrimSpace(output(b, "", env, "git", "write-tree"))
		output(b, "", env, "git", "commit-tree", "-m", "x", tree)
	}
	hook := func() { output(b, event, env, bin, "hook", "--strict") }
	output(b, "", env, "git", "init", "-q")
	git()
	output(b, strings.Replace(event, "after", "before", 1), env, bin, "hook", "--strict")
	took := map[string][]time.Duration{}
	var ratios []float64
	timed := func(name string, do func()) time.Duration {
		start := time.Now()
		do()
		d := time.Since(start)
		took[name] = append(took[name], d)
		return d
	}
	for i := 0; b.Loop(); i++ {
		file, err := os.OpenFile(filepath.Join(dir, "fmt/print.go"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		_, err = file.WriteString("// again\n")
		if cerr := file.Close(); err != nil || cerr != nil {
			b.Fatal(err, cerr)
		}
		ours := timed("hook", hook)
		theirs := timed("git", git)
		ratios = append(ratios, float64(ours)/float64(theirs))
		timed("version", func() { output(b, "", env, bin, "version") })
		timed("hello", func() { output(b, "", env, hello) })
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-git")
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
}

// output runs a program and returns what it printed.
func output(b *testing.B, stdin string, env []string, name string, args ...string) string {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdin = env, strings.NewReader(stdin)
	for _, e := range env {
		if dir, ok := strings.CutPrefix(e, "GIT_WORK_TREE="); ok {
			cmd.Dir = dir
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
