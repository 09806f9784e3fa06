package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// On a machine without a Go tree the demo works on the program's own files.
func TestDemoWithoutGo(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, now: time.Now, env: func(string) string { return "" }, color: "never"}
	d := &demo{a: a, ctx: t.Context(), out: &out, temp: t.TempDir()}
	if err := d.play(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "from this program's own source") || len(d.steps) < 40 {
		t.Errorf("%d steps:\n%s", len(d.steps), out.String())
	}
	for _, s := range d.steps {
		if !s.OK {
			t.Errorf("%s: %s", s.Name, s.Detail)
		}
	}
}

// Whatever is not as it must be is noticed.
func TestSnapshotDiffers(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"bytes":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("Two"), 0o644) },
		"mode":   func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o600) },
		"gone":   func(dir string) error { return os.Remove(filepath.Join(dir, "a")) },
		"more":   func(dir string) error { return os.Mkdir(filepath.Join(dir, "b"), 0o755) },
		"folder": func(dir string) error { return os.Remove(filepath.Join(dir, "d")) },
		"target": func(dir string) error {
			l := filepath.Join(dir, "l")
			if err := os.Remove(l); err != nil {
				return err
			}
			return os.Symlink("d", l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.WriteFile(filepath.Join(dir, "a"), []byte("one"), 0o644))
			must(os.Symlink("a", filepath.Join(dir, "l")))
			must(os.Mkdir(filepath.Join(dir, "d"), 0o755))
			want, err := snap(dir)
			must(err)
			same, err := snap(dir)
			must(err)
			if problem := same.differs(want); problem != "" {
				t.Fatalf("the same is said to differ: %s", problem)
			}
			must(spoil(dir))
			got, err := snap(dir)
			must(err)
			if got.differs(want) == "" {
				t.Error("it was not noticed")
			}
		})
	}
}
