package capture_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/internal/worldtest"
	"reasonix/store"
)

// A scan leaves SQLite its locks on the store. Without them the next process that closes the
// store takes the WAL away, and all that is written afterwards with it.
func TestAScanKeepsTheLocksOfTheStore(t *testing.T) {
	w := worldtest.New(t)
	w.Turn("zero", nil, func() { w.Write("a", "a\n", 0o644) })
	path := w.Capture.Store.Path()
	root, err := workspace.Open(w.Dir, workspace.Options{Protected: []string{path, path + "-wal", path + "-shm"}})
	w.Must(err)
	defer root.Close()
	locks := func() string {
		table, err := os.ReadFile("/proc/locks")
		w.Must(err)
		var held strings.Builder
		for _, name := range []string{path, path + "-shm"} {
			info, err := os.Stat(name)
			w.Must(err)
			inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
			for line := range strings.Lines(string(table)) {
				if strings.Contains(line, "POSIX") && strings.Contains(line, fmt.Sprintf(" %d ", os.Getpid())) && strings.Contains(line, inode) {
					_, rest, _ := strings.Cut(line, "POSIX")
					held.WriteString(rest)
				}
			}
		}
		return held.String()
	}
	want := locks()
	if want == "" {
		t.Fatal("an open store holds no lock")
	}
	c := &capture.Capturer{Store: w.Capture.Store, Root: root}
	_, err = c.Scan(t.Context(), w.ID, false)
	w.Must(err)
	if got := locks(); got != want {
		t.Errorf("locks after a scan:\n%s\nbefore it:\n%s", got, want)
	}
	// Nor does reading it by another name.
	w.Must(os.Link(path, w.Abs("link")))
	if _, err = c.Read(t.Context(), []store.Path{"link"}); !errors.Is(err, workspace.ErrProtected) {
		t.Errorf("a link to the store: %v", err)
	}
	_, err = c.Scan(t.Context(), w.ID, false)
	w.Must(err)
	if got := locks(); got != want {
		t.Errorf("locks after reading a link to the store:\n%s\nbefore it:\n%s", got, want)
	}
}
