package main

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sources are the program's own, for machines without a Go tree.
//
//go:embed *.go
var sources embed.FS

// parts are the packages of Go's source tree that the demo works on.
var parts = []string{"strings", "sort", "net/url", "path", "container", "text/template"}

// The demo's folder is real but not large.
const (
	demoFiles    = 80
	demoFileSize = 200 << 10
)

// lay fills the folder and says with what.
func (d *demo) lay() error {
	d.chapter("A folder with files")
	from := "this program's own source"
	n := 0
	if d.source != "" {
		from = "Go's own source tree: " + strings.Join(parts, ", ")
		for _, part := range parts {
			more, err := d.copyFiles(os.DirFS(filepath.Join(d.source, filepath.FromSlash(part))), part, demoFiles-n)
			if err != nil {
				return err
			}
			n += more
		}
	}
	if n < 20 {
		from = "this program's own source"
		more, err := d.copyFiles(sources, "src", demoFiles-n)
		if err != nil {
			return err
		}
		n += more
	}
	all, err := snap(d.dir)
	if err != nil {
		return err
	}
	problem := ""
	if all.count() != n || n == 0 {
		problem = "they are not all there"
	}
	d.ok(count(n, "file")+" from "+from, problem)
	return nil
}

// copyFiles copies at most limit files below name.
func (d *demo) copyFiles(from fs.FS, name string, limit int) (n int, err error) {
	err = fs.WalkDir(from, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || n >= limit {
			return err
		}
		info, err := e.Info()
		if err != nil || info.Size() > demoFileSize {
			return err
		}
		b, err := fs.ReadFile(from, p)
		if err != nil {
			return err
		}
		n++
		to := filepath.Join(d.dir, filepath.FromSlash(name), filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
	return n, err
}

// goSource is the src folder of a Go tree, "" when there is none.
func goSource(ctx context.Context) string {
	roots := []string{os.Getenv("GOROOT")}
	if tool, err := exec.LookPath("go"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, tool, "env", "GOROOT")
		cmd.Dir = os.TempDir() // no go.mod of the current folder may send it for another version
		if out, err := cmd.Output(); err == nil {
			roots = append(roots, strings.TrimSpace(string(out)))
		}
	}
	for _, root := range append(roots, "/usr/local/go", "/usr/lib/go") {
		src := filepath.Join(root, "src")
		if _, err := os.Stat(filepath.Join(src, "strings", "strings.go")); root != "" && err == nil {
			return src
		}
	}
	return ""
}
