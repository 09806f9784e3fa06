package bench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What a tree that is copied may have.
const (
	maxTreeFiles = 200_000
	maxTreeBytes = 2 << 30
)

// tree is a folder with files that the lines about scans use: a copy of the one that was given,
// else one that is as large as the source of Go.
type tree struct {
	dir   string
	files []string // regular ones, by their names relative to dir
	bytes int64
}

func (t *tree) note() string { return fmt.Sprintf("%d files, %d MB", len(t.files), t.bytes/1_000_000) }

// tree makes the tree, the first time.
func (r *rig) tree() (*tree, error) {
	return once(r, "tree", func() (*tree, error) {
		dir, err := r.folder("tree")
		if err != nil {
			return nil, err
		}
		t := &tree{dir: dir}
		if r.o.Tree != "" {
			return t, t.copyOf(r, r.o.Tree)
		}
		rnd := random()
		for i := range r.size(11_500, 200) {
			text := code(rnd, 2<<10+rnd.IntN(18<<10))
			if err := put(dir, fileName(i), text); err != nil {
				return nil, err
			}
			t.files, t.bytes = append(t.files, fileName(i)), t.bytes+int64(len(text))
		}
		return t, nil
	})
}

// copyOf copies what lies in from, but for repositories, which git would not look into, and what
// cannot be read.
func (t *tree) copyOf(r *rig, from string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = r.ctx.Err()
		}
		if name == r.temp { // the copy is below what is copied
			return fs.SkipDir
		}
		if err != nil || d.Name() == ".git" {
			return skipped(d, err)
		}
		rel, err := filepath.Rel(from, name)
		if err != nil || rel == "." {
			return err
		}
		return skipped(d, t.take(name, rel, d))
	})
	switch {
	case err != nil:
		return fmt.Errorf("copy %s: %w", from, err)
	case len(t.files) == 0:
		return fmt.Errorf("copy %s: there are no files in it", from)
	}
	return nil
}

// skipped leaves out an entry that nobody may read.
func skipped(d fs.DirEntry, err error) error {
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if d != nil && d.IsDir() && (err != nil || d.Name() == ".git") {
		return fs.SkipDir
	}
	return nil
}

// take copies one entry.
func (t *tree) take(name, rel string, d fs.DirEntry) error {
	to := filepath.Join(t.dir, rel)
	switch {
	case d.IsDir():
		return os.Mkdir(to, 0o755)
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !d.Type().IsRegular():
		return nil
	}
	n, err := copyFile(name, to)
	if err != nil {
		return err
	}
	t.files, t.bytes = append(t.files, rel), t.bytes+n
	if len(t.files) > maxTreeFiles || t.bytes > maxTreeBytes {
		return fmt.Errorf("more than %d files or %d GiB: measure a part of it", maxTreeFiles, maxTreeBytes>>30)
	}
	return nil
}

func copyFile(from, to string) (n int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, in)
	return n, errors.Join(err, out.Close())
}

// texts are n texts of the size of source files: those of the tree that was given, then others
// that are made up.
func (r *rig) texts(n int) ([]string, error) {
	rnd := random()
	var texts []string
	if r.o.Tree != "" {
		t, err := r.tree()
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(slices.Values(t.files)) {
			b, err := os.ReadFile(filepath.Join(t.dir, name))
			if err != nil {
				return nil, err
			}
			if text := string(b); len(texts) < n && len(b) >= 4<<10 && len(b) <= 24<<10 && !strings.Contains(text, "\x00") {
				texts = append(texts, text)
			}
		}
	}
	for len(texts) < n {
		texts = append(texts, code(rnd, 4<<10+rnd.IntN(16<<10)))
	}
	return texts, nil
}

// wide is a folder with very many small files, a hundred in each folder.
func (r *rig) wide() (string, error) {
	return once(r, "wide", func() (string, error) {
		dir, err := r.folder("wide")
		if err != nil {
			return "", err
		}
		for i := range r.size(100_000, 500) {
			if err := put(dir, fmt.Sprintf("d%03d/e%02d/f%02d.txt", i/10000, i/100%100, i%100), fmt.Sprintf("file %d\n", i)); err != nil {
				return "", err
			}
		}
		return dir, nil
	})
}
