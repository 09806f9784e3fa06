package agent_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reasonix/agent"
)

// text is n bytes that compress like source code does, about 4 to 3.
func text(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return []byte(base64.StdEncoding.EncodeToString(b))[:n]
}

// percentiles reports the median and the 99th percentile of what was measured.
func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkCapture is the before-state of one 10 KB file, durable: what an agent waits for
// before each edit.
func BenchmarkCapture(b *testing.B) {
	w := newBench(b)
	for i := range 2000 {
		w.write(fmt.Sprintf("d/f%04d", i), string(text(10<<10)))
	}
	w.begin()
	var took []time.Duration
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		p := filepath.Join("d", fmt.Sprintf("f%04d", n%2000))
		if n%2000 == 0 && n > 0 {
			b.StopTimer()
			for i := range 2000 {
				w.write(fmt.Sprintf("d/f%04d", i), string(text(10<<10)))
			}
			w.begin()
			b.StartTimer()
		}
		n++
		start := time.Now()
		_, err := w.recorder.BeforeEdit(b.Context(), w.id, agent.Edit{Tool: "edit", Paths: []string{p}})
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	percentiles(b, took)
}

// BenchmarkEdit is a whole edit: capture before, write, capture after.
func BenchmarkEdit(b *testing.B) {
	w := newBench(b)
	w.write("f", "0")
	w.begin()
	b.ReportAllocs()
	var took []time.Duration
	content := text(10 << 10)
	for b.Loop() {
		copy(content, fmt.Sprint(len(took)))
		start := time.Now()
		w.before("c", "f")
		if err := os.WriteFile(filepath.Join(w.dir, "f"), content, 0o644); err != nil {
			b.Fatal(err)
		}
		w.after("c")
		took = append(took, time.Since(start))
	}
	percentiles(b, took)
}

// BenchmarkTurnOf1000 is a turn that touches 1,000 files of 10 KB, one capture each.
func BenchmarkTurnOf1000(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := newBench(b)
		for i := range 1000 {
			w.write(fmt.Sprintf("f%04d", i), string(text(10<<10)))
		}
		w.begin()
		b.StartTimer()
		for i := range 1000 {
			w.before("", fmt.Sprintf("f%04d", i))
		}
	}
}
