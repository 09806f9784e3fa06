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
