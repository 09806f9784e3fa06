package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/worldtest"
)

// The size of what the benchmarks import and export: 20,000 states of files.
const (
	benchTurns = 2000
	benchFiles = 10
	benchSize  = 1000 // bytes of a file
)

// BenchmarkImport reads the files of 2,000 turns into a store. Beside it the same files are read
// and their bytes are written as plain files, each synced, as an import of that kind would do it
// (plain-s); ratio is the import's time to that. peak-MB is the most memory on the heap.
func BenchmarkImport(b *testing.B) {
	var times [2]time.Duration
	peak := uint64(0)
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		dir := filepath.Join(b.TempDir(), "in")
		worldtest.Checkpoints(b, dir, w.Dir, benchTurns, benchFiles, benchSize)
		began := time.Now()
		b.StartTimer()
		_, err := export.Import(b.Context(), w.Capture.Store, capture.Disk{Capture: w.Capture}, filepath.Join(dir, "long.jsonl"),
			export.ImportOptions{Progress: func(done, _ int) { peak = max(peak, heap(done)) }})
		w.Must(err)
		b.StopTimer()
		times[0] += time.Since(began)
		times[1] += plain(b, dir)
		b.StartTimer()
	}
	report(b, times, peak)
}

// BenchmarkExport writes the session of 2,000 turns, beside plain reading and writing of the same
// files.
func BenchmarkExport(b *testing.B) {
	w := newWorld(b)
	in := filepath.Join(b.TempDir(), "in")
	worldtest.Checkpoints(b, in, w.Dir, benchTurns, benchFiles, benchSize)
	r, err := export.Import(b.Context(), w.Capture.Store, capture.Disk{Capture: w.Capture}, filepath.Join(in, "long.jsonl"), export.ImportOptions{})
	w.Must(err)
	for _, format := range []export.Format{export.V2, export.V1} {
		b.Run(fmt.Sprint("v", 2-format), func(b *testing.B) {
			var times [2]time.Duration
			peak := uint64(0)
			for b.Loop() {
				dir := filepath.Join(b.TempDir(), "out")
				began := time.Now()
				_, err := export.Write(b.Context(), w.Capture.Store, r.Session.ID, export.Options{
					Dir: dir, Format: format, Progress: func(done, _ int) { peak = max(peak, heap(done)) },
				})
				w.Must(err)
				b.StopTimer()
				times[0] += time.Since(began)
				times[1] += plain(b, dir)
				b.StartTimer()
			}
			report(b, times, peak)
		})
	}
}

// heap is the memory in use, looked at now and then.
func heap(done int) uint64 {
	if done%200 != 0 {
		return 0
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// plain reads the files below dir and writes them again, synced one by one.
func plain(b *testing.B, dir string) time.Duration {
	b.Helper()
	to := filepath.Join(b.TempDir(), "plain")
	began := time.Now()
	for name, e := range worldtest.Files(b, dir) {
		name = filepath.Join(to, name)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err != nil {
			b.Fatal(err)
		}
		f, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err = strings.NewReader(e.Content).WriteTo(f); err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err != nil || cerr != nil {
			b.Fatal(err, cerr)
		}
	}
	return time.Since(began)
}

func report(b *testing.B, times [2]time.Duration, peak uint64) {
	b.Helper()
	b.ReportMetric(times[1].Seconds()/float64(b.N), "plain-s")
	b.ReportMetric(times[0].Seconds()/times[1].Seconds(), "ratio")
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
}
