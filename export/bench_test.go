package export_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"reasonix/export"
)

// The memory in use while 1,000 turns are written is told as peak-MB; it does not grow with
// the number of turns.
func BenchmarkWrite1000Turns(b *testing.B) {
	w := newWorld(b)
	for i := range 1000 {
		w.Turn("turn", nil, func() { w.Write(fmt.Sprintf("f%d", i%240), fmt.Sprintf("%010000d\n", i), 0o644) })
	}
	b.ReportAllocs()
	peak := uint64(0)
	for b.Loop() {
		_, err := export.Write(b.Context(), w.Capture.Store, w.ID, export.Options{
			Dir: filepath.Join(b.TempDir(), "out"),
			Progress: func(done, _ int) {
				if done%100 == 0 {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc)
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
}
