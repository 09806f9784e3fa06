package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reasonix/internal/worldtest"
)

// ckptPeak bounds an import and an export, of any number of turns, in bytes.
const ckptPeak = 100 << 20

// TestMemoryOfCheckpoints imports and exports 300 turns with 3,000 states of files.
// REASONIX_HUGE=1 makes them 2,000 and 20,000.
func TestMemoryOfCheckpoints(t *testing.T) {
	t.Parallel()
	turns := 300
	if os.Getenv("REASONIX_HUGE") != "" {
		turns = 2000
	}
	h := newHooked(t)
	h.env = append(h.env, peakEnv+"="+filepath.Join(t.TempDir(), "status"))
	files := t.TempDir()
	worldtest.Checkpoints(t, files, h.dir, turns, 10, 1000)
	h.run(nil, "import-ckpt", filepath.Join(files, "long.jsonl"))
	h.below(ckptPeak, "import-ckpt")
	for _, format := range []string{"v2", "v1"} {
		out := filepath.Join(files, format)
		h.run(nil, "export-ckpt", "--format", format, "--out", out)
		h.below(ckptPeak, "export-ckpt --format "+format)
		last, err := filepath.Glob(filepath.Join(out, "*.ckpt", fmt.Sprintf("turn-%d.json", turns-1)))
		if err != nil || len(last) != 1 {
			t.Errorf("the last turn was not written: %v, %v", last, err)
		}
	}
}
