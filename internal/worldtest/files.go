package worldtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Entry is a file or link as the system shows it.
type Entry struct {
	Mode    fs.FileMode
	Content string // a link's is its target
}

// Files reads what lies in dir with plain system calls, by names relative to it. Folders are left
// out.
func Files(t testing.TB, dir string) map[string]Entry {
	t.Helper()
	all := map[string]Entry{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := Entry{Mode: info.Mode()}
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			e.Content = string(b)
		} else if e.Content, err = os.Readlink(name); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		all[rel] = e
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
