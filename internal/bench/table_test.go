package bench_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/bench"
)

// BenchmarkTable measures each line, as reasonix bench does: with -benchtime 1x once, each in a run of its
// own. The metrics are ours, in the line's unit, and how many times ours the other ways take; with -short
// it is the small part that only shows that it works.
func BenchmarkTable(b *testing.B) {
	program := filepath.Join(b.TempDir(), "reasonix")
	build := exec.Command("go", "build", "-trimpath", "-tags", "urfave_cli_no_docs", "-o", program, "reasonix/cmd/reasonix")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, l := range bench.List() {
		b.Run(l.Name, func(b *testing.B) {
			for b.Loop() {
				lines, err := bench.Run(b.Context(), bench.Options{Only: []string{l.Name}, Program: program, Quick: testing.Short(), Now: time.Now})
				if err != nil {
					b.Fatal(err)
				}
				got := lines[0]
				if got.Error != "" {
					b.Fatal(got.Error)
				}
				b.ReportMetric(got.Value, got.Unit)
				if got.P99 > 0 {
					b.ReportMetric(got.P99, "p99-"+got.Unit)
				}
				for _, side := range got.Beside {
					if side.Missing == "" {
						b.ReportMetric(side.Ratio, "x-"+strings.NewReplacer(" ", "-", ",", "").Replace(side.Name))
					}
				}
			}
		})
	}
}
