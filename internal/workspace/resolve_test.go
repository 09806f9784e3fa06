package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/workspace"
	"reasonix/store"
)

func TestResolve(t *testing.T) {
	outside := realTemp(t)
	w := newWorld(t, tree{
		"a": "644:a", "d/": "755", "d/f": "644:f", "d/e/": "755", "link": "->d", "loop": "->loop", "up": "->..",
		"back": "->d/../d/e", "dangling": "->d/new", "astray": "->" + filepath.Join(outside, "new"),
		"out": "->" + outside, "tofile": "->a", "real/": "755", "sub/": "755", "sub/.git": "->../real",
		"absolute": "->/", "inner": "->link/e",
	})
	alias := filepath.Join(realTemp(t), "alias")
	w.must(os.Symlink(w.dir, alias))
	w.must(os.MkdirAll(w.name("store"), 0o755))
	w.root = w.opened(workspace.Options{Protected: []string{w.name("store"), filepath.Join(alias, "later"), outside}})
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		cwd, name string
		want      store.Path
		err       error
	}{
		{name: "a", want: "a"},
		{name: "./a", want: "a"},
		{name: "d/../a", want: "a"},
		{name: "a/", want: "a"},
		{name: "d//f", want: "d/f"},
		{name: w.name("a"), want: "a"},
		{name: w.dir + "/./d/../a", want: "a"},
		{cwd: "d", name: "../a", want: "a"},
		{cwd: "d/e", name: "new/deep", want: "d/e/new/deep"},
		{name: filepath.Join(alias, "d/f"), want: "d/f"},
		{name: filepath.Join(alias, "link/f"), want: "d/f"},
		{name: filepath.Join(w.dir, "..", filepath.Base(w.dir), "a"), want: "a"},

		{name: "link", want: "link"},
		{name: "link/f", want: "d/f"},
		{name: "link/e/x/y", want: "d/e/x/y"},
		{name: "back/x", want: "d/e/x"},
		{name: "inner/x", want: "d/e/x"},
		{name: "dangling/x", want: "d/new/x"},
		{name: "up/" + filepath.Base(w.dir) + "/a", want: "a"},
		{name: "absolute" + w.dir + "/a", want: "a"},
		{name: "tofile/x", want: "a/x"},
		{name: "a/below/a/file", want: "a/below/a/file"},
		{name: "out", want: "out"},

		{name: " ", want: " "},
		{name: "-rf", want: "-rf"},
		{name: "\xff\xfe", want: "\xff\xfe"},
		{name: "new\nline", want: "new\nline"},
		{name: `quote"'`, want: `quote"'`},
		{name: `back\slash`, want: `back\slash`},
		{name: "e\u0301", want: "e\u0301"},
		{name: "\u00e9", want: "\u00e9"},
		{name: "...", want: "..."},
		{name: "..x", want: "..x"},
		{name: ".gitignore", want: ".gitignore"},
		{name: ".github/x", want: ".github/x"},
		{name: "x.git", want: "x.git"},
		{name: long[:255], want: store.Path(long[:255])},

		{name: "", err: workspace.ErrInvalid},
		{name: "a\x00b", err: workspace.ErrInvalid},
		{name: long, err: workspace.ErrInvalid},
		{name: strings.Repeat("abcdefg/", 600) + "x", err: workspace.ErrInvalid},
		{name: strings.Repeat("abcdefg/", 1<<16), err: workspace.ErrInvalid},
		{name: "loop/x", err: workspace.ErrInvalid},

		{name: ".", err: workspace.ErrOutside},
		{name: "d/..", err: workspace.ErrOutside},
		{name: w.dir, err: workspace.ErrOutside},
		{name: alias + "/", err: workspace.ErrOutside},
		{name: "..", err: workspace.ErrOutside},
		{name: "../x", err: workspace.ErrOutside},
		{name: "d/../../x", err: workspace.ErrOutside},
		{name: "/etc/passwd", err: workspace.ErrOutside},
		{name: "/", err: workspace.ErrOutside},
		{name: w.dir + "x", err: workspace.ErrOutside},
		{name: "out/x", err: workspace.ErrOutside},
		{name: "astray/x", err: workspace.ErrOutside},
		{name: "up/x", err: workspace.ErrOutside},
		{name: "absolute/etc/passwd", err: workspace.ErrOutside},

		{name: ".git", err: workspace.ErrProtected},
		{name: ".git/config", err: workspace.ErrProtected},
		{name: ".GIT/config", err: workspace.ErrProtected},
		{name: "d/.Git", err: workspace.ErrProtected},
		{name: "link/.git/hooks/post-checkout", err: workspace.ErrProtected},
		{name: "sub/.git/config", err: workspace.ErrProtected},
		{name: filepath.Join(alias, "sub/.git/config"), err: workspace.ErrProtected},
		{name: "store", err: workspace.ErrProtected},
		{name: "store/store.db", err: workspace.ErrProtected},
		{name: "later/store.db", err: workspace.ErrProtected},
		{name: ".rx-0123456789abcdef", err: workspace.ErrProtected},
		{name: "d/.rx-0123456789abcdef/x", err: workspace.ErrProtected},
	} {
		got, err := w.root.Resolve(w.name(c.cwd), c.name)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Resolve(%q, %.60q) = %q, %v; want %q, %v", c.cwd, c.name, got, err, c.want, c.err)
		}
	}
	if _, err := w.root.Resolve("relative", "a"); !errors.Is(err, workspace.ErrInvalid) {
		t.Errorf("relative cwd: %v", err)
	}
}

// TestResolveBelowGitOfOthers: a root that itself lies below a .git is a workspace like any other.
func TestResolveBelowGitOfOthers(t *testing.T) {
	w := newWorldAt(t, mkdir(t, realTemp(t), ".git", "worktree"), tree{"a": "644:a"})
	if p, err := w.root.Resolve(w.dir, "a"); p != "a" || err != nil {
		t.Fatalf("%q, %v", p, err)
	}
}

func mkdir(t testing.TB, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCheckPath(t *testing.T) {
	for p, want := range map[store.Path]error{
		"a": nil, "a/b/c": nil, "..a": nil, "a\nb": nil, "\xff": nil, "-": nil, " ": nil, "a/.github": nil,
		"": workspace.ErrInvalid, ".": workspace.ErrInvalid, "..": workspace.ErrInvalid, "/": workspace.ErrInvalid,
		"/a": workspace.ErrInvalid, "a/": workspace.ErrInvalid, "a//b": workspace.ErrInvalid, "./a": workspace.ErrInvalid,
		"a/./b": workspace.ErrInvalid, "a/../b": workspace.ErrInvalid, "a/..": workspace.ErrInvalid, "../a": workspace.ErrInvalid,
		"a\x00": workspace.ErrInvalid, ".git": workspace.ErrProtected, "a/.gIt/b": workspace.ErrProtected,
		"a/.rx-0123456789abcdef":                      workspace.ErrProtected,
		store.Path(long + "n"):                        workspace.ErrInvalid,
		store.Path(strings.Repeat("a/", 2048) + "aa"): workspace.ErrInvalid,
	} {
		if err := workspace.CheckPath(p); !errors.Is(err, want) {
			t.Errorf("CheckPath(%.40q) = %v, want %v", p, err, want)
		}
	}
}

func TestLinkTarget(t *testing.T) {
	outside := realTemp(t)
	w := newWorld(t, tree{
		"a": "644:a", "d/": "755", "d/f": "644:f", "d/l": "->../a", "toa": "->a", "tod": "->d", "chain": "->tod/l",
		"new": "->d/new", "out": "->" + outside, "git": "->.git/config", "loop": "->loop", "root": "->.", "self": "->d/../store",
		"store/": "755",
	})
	w.root = w.opened(workspace.Options{Protected: []string{w.name("store")}})
	for p, want := range map[store.Path]store.Path{
		"toa": "a", "d/l": "a", "tod": "d", "chain": "a", "new": "d/new",
		"a": "", "d": "", "no": "", "out": "", "git": "", "loop": "", "root": "", "self": "", "../x": "",
	} {
		if got, ok := w.root.LinkTarget(p); got != want || ok != (want != "") {
			t.Errorf("LinkTarget(%q) = %q, %v; want %q", p, got, ok, want)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := realTemp(t)
	if _, err := workspace.Open(filepath.Join(dir, "no"), workspace.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	w := newWorldAt(t, dir, tree{"f": "644:f", "d/": "755", "link": "->d"})
	if _, err := workspace.Open(w.name("f"), workspace.Options{}); err == nil {
		t.Error("a file was opened as a root")
	}
	r, err := workspace.Open(w.name("link"), workspace.Options{})
	w.must(err)
	defer r.Close()
	if r.Path() != w.name("d") {
		t.Errorf("root is %q, want the resolved %q", r.Path(), w.name("d"))
	}
	id, err := workspace.IdentityOf(w.name("d"))
	w.must(err)
	if r.Identity() != id || id == (workspace.Identity{}) || id == w.root.Identity() {
		t.Errorf("identities: %v, %v, %v", r.Identity(), id, w.root.Identity())
	}
}
