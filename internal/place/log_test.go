package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLogIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := Where{State: dir}
	w.Log(now, "two\nlines \x1b[31m\xff")
	name := filepath.Join(dir, "hook.log")
	b, err := os.ReadFile(name)
	if want := "2026-01-02T03:04:05.000Z two lines  [31m\uFFFD\n"; err != nil || string(b) != want {
		t.Fatalf("%q, %v; want %q", b, err, want)
	}
	if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", fi.Mode(), err)
	}
	for range 3 {
		if err := os.WriteFile(name, make([]byte, maxLog), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Log(now, strings.Repeat("é", 10000))
	}
	b, err = os.ReadFile(name)
	if err != nil || len(b) > maxLine+100 || !strings.HasSuffix(string(b), "é…\n") {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
}
