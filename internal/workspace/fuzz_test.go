package workspace_test

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/workspace"
	"reasonix/store"
)

func FuzzCheckPath(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		if workspace.CheckPath(store.Path(s)) != nil {
			return
		}
		if path.Clean(s) != s || !filepath.IsLocal(filepath.FromSlash(s)) || s == "." || strings.IndexByte(s, 0) >= 0 {
			t.Fatalf("%q was taken", s)
		}
		for name := range strings.SplitSeq(s, "/") {
			if strings.EqualFold(name, ".git") || workspace.IsStaged(name) || len(name) > 255 {
				t.Fatalf("%q was taken in spite of %q", s, name)
			}
		}
	})
}

// FuzzResolve: whatever the name, the path is a valid one, resolves to itself, and is reached
// without following a link.
func FuzzResolve(f *testing.F) {
	w := newWorldAt(f, realTemp(f), tree{
		"a": "644:a", "d/": "755", "d/e/": "755", "in": "->d", "up": "->..", "out": "->/", "loop": "->loop", "d/back": "->../in/e",
	})
	f.Fuzz(func(t *testing.T, cwd, name string) {
		p, err := w.root.Resolve(filepath.Join(w.dir, cwd), name)
		if err != nil {
			for _, known := range []error{workspace.ErrInvalid, workspace.ErrOutside, workspace.ErrProtected} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("Resolve(%q, %q): %v", cwd, name, err)
		}
		if err := workspace.CheckPath(p); err != nil {
			t.Fatalf("Resolve(%q, %q) = %q: %v", cwd, name, p, err)
		}
		if again, err := w.root.Resolve(w.dir, string(p)); again != p || err != nil {
			t.Fatalf("Resolve(%q, %q) = %q, and that is %q, %v", cwd, name, p, again, err)
		}
		for dir := path.Dir(string(p)); dir != "."; dir = path.Dir(dir) {
			if dir == "in" || dir == "up" || dir == "out" || dir == "d/back" {
				t.Fatalf("Resolve(%q, %q) = %q, below a link", cwd, name, p)
			}
		}
	})
}
