package bench_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/bench"
)

// temp makes a folder for what runs make, where no git is found.
func temp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	t.Setenv("PATH", "")
	return dir
}

// left checks that nothing is left of a run.
func left(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestEveryLine measures a small part of each line but those of processes.
func TestEveryLine(t *testing.T) {
	dir := temp(t)
	var told []string
	lines, err := bench.Run(t.Context(), bench.Options{Quick: true, Now: time.Now, Done: func(l bench.Line) { told = append(told, l.Name) }})
	if err != nil {
		t.Fatal(err)
	}
	all := bench.List()
	if len(lines) != len(all) || len(told) != len(all) {
		t.Fatalf("%d of %d lines, %d told", len(lines), len(all), len(told))
	}
	measured := 0
	for i, l := range lines {
		if l.Name != all[i].Name || l.Name != told[i] || len(l.Targets) != len(all[i].Targets) {
			t.Errorf("line %d is %s, and was told as %s", i, l.Name, told[i])
		}
		if l.Error != "" {
			t.Errorf("%s: %s", l.Name, l.Error)
		}
		if l.Missing != "" {
			continue
		}
		measured++
		if l.Value <= 0 && l.Name != "fork-bytes" { // some forks fit into pages that are there
			t.Errorf("%s: %g", l.Name, l.Value)
		}
		for _, b := range l.Beside {
			if (b.Name == "git" || strings.HasPrefix(b.Name, "git ")) != (b.Missing != "") || b.Missing == "" && (b.Value <= 0 || b.Ratio <= 0) {
				t.Errorf("%s beside %s: %+v", l.Name, b.Name, b)
			}
		}
		for _, target := range l.Targets {
			if target.Met != nil {
				t.Errorf("%s is judged by a small part", l.Name)
			}
		}
	}
	if processes := 5; measured != len(all)-processes {
		t.Errorf("%d lines were measured", measured)
	}
	left(t, dir)
}

// TestTree scans a copy of a tree with odd things in it, which stays as it is.
func TestTree(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{"a.go": strings.Repeat("package a\n", 500), "sub/b.go": "package b\n", ".git/config": "x", "sub/.git/HEAD": "y"} {
		file := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	before := names(t, tree)
	dir := temp(t)
	lines, err := bench.Run(t.Context(), bench.Options{Quick: true, Tree: tree, Only: []string{"scan-100", "first-scan"}, Now: time.Now})
	if err != nil || len(lines) != 2 || lines[0].Name != "first-scan" {
		t.Fatalf("%+v, %v", lines, err)
	}
	for _, l := range lines {
		if l.Error != "" || l.Note != "2 files, 0 MB" {
			t.Errorf("%+v", l)
		}
	}
	if after := names(t, tree); after != before {
		t.Errorf("the tree was changed:\n%s\nwas\n%s", after, before)
	}
	left(t, dir)
	empty := t.TempDir()
	lines, err = bench.Run(t.Context(), bench.Options{Quick: true, Tree: empty, Only: []string{"scan"}, Now: time.Now})
	if err != nil || !strings.Contains(lines[0].Error, "there are no files in it") {
		t.Errorf("%+v, %v", lines, err)
	}
}

// names are the names, modes, sizes and times of everything in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all.WriteString(strings.Join([]string{name, info.Mode().String(), info.ModTime().String(), "\n"}, " "))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestInterrupted leaves nothing behind.
func TestInterrupted(t *testing.T) {
	dir := temp(t)
	ctx, stop := context.WithCancel(t.Context())
	began := 0
	_, err := bench.Run(ctx, bench.Options{Quick: true, Now: time.Now, Begin: func(string, int, int) {
		if began++; began == 7 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || began != 7 {
		t.Errorf("after %d lines: %v", began, err)
	}
	left(t, dir)
	if _, err := bench.Run(t.Context(), bench.Options{Only: []string{"capture", "nonsense"}, Now: time.Now}); !errors.Is(err, bench.ErrNoLine) {
		t.Errorf("a line that is not there: %v", err)
	}
}
