package ignore_test

import (
	"slices"
	"strings"
	"testing"

	"reasonix/internal/ignore"
)

// world is the rule files of a tree, by their paths.
type world map[string]string

// ignores asks about p from the root downward, as a walk does. A folder ends in a slash.
func (w world) ignores(p string) bool {
	name, dir := strings.CutSuffix(p, "/")
	parts := strings.Split(name, "/")
	var rules *ignore.Rules
	for i, part := range parts {
		folder := strings.Join(parts[:i], "/")
		at := strings.TrimPrefix(folder+"/", "/")
		rules = rules.Below(folder, w[at+ignore.GitFile], w[at+ignore.OwnFile])
		if rules.In(folder, nil).Ignored(part, dir || i < len(parts)-1) {
			return true
		}
	}
	return false
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ rules, ignored, kept string }{
		{"foo", "foo foo/ a/foo a/foo/b foo/b", "fo fooo a/fo"},
		{"/foo", "foo foo/b", "a/foo"},
		{"foo/", "foo/ a/foo/ foo/b", "foo a/foo"},
		{"/foo/", "foo/", "foo a/foo/"},
		{"a/b", "a/b a/b/c", "b c/a/b a/c"},
		{"a/b/", "a/b/", "a/b c/a/b/"},
		{"a/*", "a/b a/b/c", "a a/ c/a/b"},
		{"*.o", "x.o a/x.o .o", "x.oo o"},
		{"*", "x a/ .x", ""},
		{"a*c", "ac abc abbc", "ab a/c"},
		{"a?c", "abc", "ac abbc a/c"},
		{"**", "x a/x", ""},
		{"**/", "a/ a/b a/b/", "a"},
		{"/**", "x a/x", ""},
		{"**/foo", "foo a/foo a/b/foo foo/x", "fo a/fo"},
		{"**/foo/bar", "foo/bar a/foo/bar a/foo/foo/bar foo/x/foo/bar", "bar foo/x/bar"},
		{"foo/**", "foo/a foo/a/b foo/a/", "foo foo/ a/foo/b"},
		{"foo/**/", "foo/a/ foo/a/b", "foo/a foo/"},
		{"a/**/b", "a/b a/x/b a/x/y/b a/b/c", "a b ab x/a/b a/xb"},
		{"a/**/b/**/c", "a/b/c a/x/b/y/c a/c/b/b/c", "a/c a/b a/c/b"},
		{"a/**/**/b", "a/b a/x/b", "a b"},
		{"**/a/**", "a/x b/a/x", "a a/ b/a"},
		{"a**b", "ab axxb", "a/b"},
		{"x/a**b", "x/ab x/acb", "x/a/b ab"},
		{"a//b", "", "a/b a"},
		{"//a", "", "a"},
		{"/", "", "a a/"},
		{"a\\/b", "a/b", "b"},

		{"*.o\n!keep.o", "x.o a/x.o", "keep.o a/keep.o"},
		{"!keep.o\n*.o", "keep.o", ""},
		{"a/\n!a/b", "a/b a/", ""},
		{"a/*\n!a/b", "a/c", "a/b a/b/c"},
		{"*\n!*/\n!*.go", "x a/x", "a/ x.go a/b/x.go"},
		{"*.o\n!foo", "foo/x.o", "foo foo/ foo/x"},

		{"[ab]", "a b", "c ab"},
		{"[!ab]", "c d", "a b cc"},
		{"[^ab]", "c", "a"},
		{"[a-c]x", "ax cx", "dx -x"},
		{"[]a]x", "]x ax", "bx"},
		{"[!]a]x", "bx", "]x ax"},
		{"[a-]x", "ax -x", "bx"},
		{"[-a]x", "ax -x", "bx"},
		{"[\\]]x", "]x", "\\x x"},
		{"[a\\-c]x", "ax -x cx", "bx"},
		{"[[:digit:]]x", "1x", "ax :x dx"},
		{"[[:alpha:]_]x", "ax Zx _x", "1x"},
		{"[[:nothing:]]x", "", "nx :x"},
		{"[a/b]x", "ax bx", "a/b]x"},
		{"[/]x", "", "x /x"},
		{"a[+-/]", "a+ a-", "a/ a/b"},
		{"[**]x", "*x", "ax"},
		{"[ab", "", "a b [ab"},
		{"a]", "a]", "a"},

		{"# no\n\\#yes", "#yes", "no yes"},
		{"\\!yes", "!yes", "yes"},
		{"!", "", "! a"},
		{"a\\*", "a*", "ab"},
		{"a\\b", "ab", "a\\b"},
		{"a\\\\b", "a\\b", "ab"},
		{"a\\", "", "a a\\"},
		{"\n\n  \n", "", "a"},

		{"caf?", "cafe", "café"}, // bytes, as in git
		{"caf??", "café", "cafe"},
		{"é", "é a/é", "e"},
		{"*é", "xé", "xe"},
		{"[\xff]", "\xff", "f"},
		{"\ufefffoo", "foo", ""},
		{"a\r\nb\r\n", "a b", "c"},
		{"a\r", "a", "b"},
		{"A", "A", "a"},
		{".", "", "a"},
		{"..", "", "a"},
	} {
		w := world{ignore.GitFile: c.rules}
		for p := range strings.FieldsSeq(c.ignored) {
			if !w.ignores(p) {
				t.Errorf("%q: %q is not ignored", c.rules, p)
			}
		}
		for p := range strings.FieldsSeq(c.kept) {
			if w.ignores(p) {
				t.Errorf("%q: %q is ignored", c.rules, p)
			}
		}
	}
}

func TestSpaces(t *testing.T) {
	for _, c := range []struct {
		rules, name string
		want        bool
	}{
		{"a  ", "a", true},
		{"a  ", "a  ", false},
		{"a\\ ", "a ", true},
		{"a\\ ", "a", false},
		{"a\\  ", "a ", true},
		{"a\\ \\ ", "a  ", true},
		{" a", " a", true},
		{" a", "a", false},
		{"a b", "a b", true},
		{"a\t", "a\t", true},
		{"a\t", "a", false},
		{"? ", "a", true},
		{"?\\ ", "a ", true},
		{"a ?\\ ", "a b ", true},
	} {
		w := world{ignore.GitFile: c.rules}
		if got := w.ignores(c.name); got != c.want {
			t.Errorf("%q: ignored(%q) = %v", c.rules, c.name, got)
		}
	}
}

func TestLevels(t *testing.T) {
	for name, c := range map[string]struct {
		w             world
		ignored, kept string
	}{
		"the deeper file decides":      {world{".gitignore": "*.log", "a/.gitignore": "!x.log"}, "x.log b/x.log a/y.log", "a/x.log a/b/x.log"},
		"anchored at its own folder":   {world{"a/.gitignore": "/x\nb/y"}, "a/x a/b/y", "x a/b/x b/y"},
		"not below an ignored folder":  {world{".gitignore": "a/", "a/.gitignore": "!x"}, "a/ a/x", "b"},
		"own rules come last":          {world{".gitignore": "*.log", ".reasonixignore": "!*.log"}, "", "x.log a/x.log"},
		"own rules add":                {world{".gitignore": "*.log", ".reasonixignore": "*.tmp"}, "x.log x.tmp", "x"},
		"own rules of the root win":    {world{"a/.gitignore": "out", ".reasonixignore": "!out"}, "", "a/out"},
		"own rules of a folder win":    {world{".reasonixignore": "out", "a/.reasonixignore": "!out"}, "out b/out", "a/out"},
		"defaults":                     {world{}, "node_modules/ a/node_modules/x __pycache__/ .hg/ .DS_Store", "node_modules build/ dist/ target/ vendor/ bin/ venv/ env/ out/ lib/ .vscode/"},
		"defaults can be included":     {world{".gitignore": "!node_modules"}, "__pycache__/", "node_modules/ node_modules/x a/node_modules/"},
		"defaults can be included own": {world{".gitignore": "node_modules", ".reasonixignore": "!/node_modules/"}, "a/node_modules/", "node_modules/"},
	} {
		for p := range strings.FieldsSeq(c.ignored) {
			if !c.w.ignores(p) {
				t.Errorf("%s: %q is not ignored", name, p)
			}
		}
		for p := range strings.FieldsSeq(c.kept) {
			if c.w.ignores(p) {
				t.Errorf("%s: %q is ignored", name, p)
			}
		}
	}
}

func TestMarked(t *testing.T) {
	var none *ignore.Rules
	if f := none.In("a", []string{"target"}); !f.Ignored("target", true) || f.Ignored("target", false) {
		t.Error("a marked folder is ignored, a file of that name is not")
	}
	rules := none.Below("", "", "!target")
	if rules.In("a", []string{"target"}).Ignored("target", true) {
		t.Error("a rule includes a marked folder")
	}
	for _, name := range []string{"build", "dist", "vendor", "out", "lib", "src"} {
		if m, ok := ignore.MarkerOf(name); ok {
			t.Errorf("%s is a source folder somewhere, and marked by %v", name, m)
		}
	}
	if m, ok := ignore.MarkerOf("target"); !ok || m.Beside != "Cargo.toml" {
		t.Error("target is marked by", m)
	}
}

func TestDefaultsAreListed(t *testing.T) {
	for _, want := range []string{"node_modules/", ".DS_Store", "target/ (beside Cargo.toml)", "venv/ (with pyvenv.cfg)"} {
		if !slices.Contains(ignore.Defaults(), want) {
			t.Errorf("%q is not listed", want)
		}
	}
}

// FuzzRules: no text breaks the parser, and what it means does not depend on what is known to
// mean nothing: comments, empty lines, the way that lines end, a mark at the start.
func FuzzRules(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, name string, dir bool) {
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return
		}
		ask := func(text string) bool {
			return (*ignore.Rules)(nil).Below("a", text, "").In("a/b", nil).Ignored(name, dir)
		}
		got := ask(text)
		if strings.HasPrefix(text, "\ufeff") {
			return
		}
		for _, same := range []string{"\ufeff" + text, "# x\n\n" + text, strings.ReplaceAll(text, "\n", "\n#\n"), text + "\n" + "#"} {
			if ask(same) != got {
				t.Fatalf("%q ignores %q: %v; %q does not agree", text, name, got, same)
			}
		}
		if ask(text+"\n*") != true || ask(text+"\n*\n!*") != false {
			t.Fatalf("the last line does not decide after %q", text)
		}
	})
}

func BenchmarkIgnored(b *testing.B) {
	text := "*.log\n*.tmp\n/dist\nnode_modules/\n.env\n*.py[co]\ncoverage\n**/cache/*\n/docs/_build\n!keep.log\n"
	folder := (*ignore.Rules)(nil).Below("", text, "").In("src/internal/deep", nil)
	b.ReportAllocs()
	for b.Loop() {
		if folder.Ignored("main.go", false) {
			b.Fatal("main.go is ignored")
		}
	}
}
