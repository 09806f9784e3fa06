package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// peakEnv names a file that takes the program's peak of resident memory when it ends. The system
// would count, as a child's peak, that of the process that started it too.
const peakEnv = "REASONIX_TEST_PEAK"

func init() {
	file := os.Getenv(peakEnv)
	if file == "" {
		return
	}
	code := run(os.Args[1:])
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(file, status, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	smallPeak = 30 << 20 // of a hook about small files, in bytes
	largePeak = 64 << 20 // of anything about a file of any size
)

// TestMemory captures, rewinds and takes back a change of files that are longer than the memory
// that may be used, one with holes and one that does not compress, and many that are short
// enough to be held one by one. REASONIX_HUGE=1 makes the long ones 2 GiB.
func TestMemory(t *testing.T) {
	t.Parallel()
	size := int64(80 << 20)
	if os.Getenv("REASONIX_HUGE") != "" {
		size = 2 << 30
	}
	h := newHooked(t)
	h.env = append(h.env, "REASONIX_HOOK_DEADLINE=20m", peakEnv+"="+filepath.Join(t.TempDir(), "status"))
	h.event("begin-turn", nil)
	h.below(smallPeak, "begin-turn")
	h.fill("small", 4000)
	h.edit(smallPeak, 4000, "small")
	h.event("end-turn", nil)
	h.below(smallPeak, "end-turn")

	h.event("begin-turn", nil)
	sparse, err := os.Create(filepath.Join(h.dir, "sparse"))
	if err == nil {
		err = errors.Join(sparse.Truncate(size), sparse.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	h.fill("noise", size)
	h.edit(largePeak, size, "sparse")
	h.edit(largePeak, size, "noise")
	var many []string
	for i := range 80 {
		many = append(many, fmt.Sprint("many", i))
		h.fill(many[i], 900<<10)
	}
	h.edit(largePeak, 900<<10, many...)
	h.event("end-turn", nil)
	h.below(largePeak, "end-turn of it all")
	if err := os.Remove(filepath.Join(h.dir, "small")); err != nil { // by hand: it stays away
		t.Fatal(err)
	}
	changed := manifest(h.dir)
	for _, file := range []string{"sparse", "noise"} {
		h.run(nil, "rewind", "1", "code", "--path", file)
		h.below(largePeak, "rewind of "+file)
		if manifest(h.dir) == changed {
			t.Fatal("nothing was rewound")
		}
		h.run(nil, "undo-rewind")
		h.below(largePeak, "undo of "+file)
		if manifest(h.dir) != changed {
			t.Fatal("undo did not bring the change back")
		}
	}
	h.run(nil, "verify", "--deep")
	h.below(largePeak, "verify")
}

// edit announces files, changes a byte near the beginning and one near the end of each, and
// reports back.
func (h *hooked) edit(limit, size int64, names ...string) {
	h.t.Helper()
	h.event("before-edit", map[string]any{"paths": names, "call": names[0]})
	h.below(limit, "before-edit of "+names[0])
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(h.dir, name), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("!"), 100)
		}
		if err == nil {
			_, err = f.WriteAt([]byte("!"), size-100)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			h.t.Fatal(err)
		}
	}
	h.event("after-edit", map[string]any{"call": names[0]})
	h.below(limit, "after-edit of "+names[0])
}

// fill makes a file that does not compress.
func (h *hooked) fill(name string, size int64) {
	h.t.Helper()
	var seed [32]byte
	copy(seed[:], name)
	f, err := os.Create(filepath.Join(h.dir, name))
	if err == nil {
		_, err = io.CopyN(f, rand.NewChaCha8(seed), size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// below checks the peak of the process that ran last.
func (h *hooked) below(limit int64, what string) {
	h.t.Helper()
	var file string
	for _, v := range h.env {
		if name, ok := strings.CutPrefix(v, peakEnv+"="); ok {
			file = name
		}
	}
	status, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(kb, 10, 64)
	if err != nil || n < 1000 {
		h.t.Fatalf("a peak of %q kB, %v", kb, err)
	}
	h.t.Logf("%-26s %3d MiB", what, n>>10)
	if n<<10 > limit {
		h.t.Errorf("%s took %d MiB, more than %d", what, n>>10, limit>>20)
	}
	if err := os.Remove(file); err != nil {
		h.t.Fatal(err)
	}
}
