package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/tool"
)

type bench struct {
	t   testing.TB
	dir string
	o   tool.Options
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "w")
	b := &bench{t: t, dir: dir, o: tool.Options{Root: dir}}
	b.must(os.Mkdir(dir, 0o755))
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	b.must(os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o755))
	b.must(os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o644))
}

func (b *bench) has(name, content string) {
	b.t.Helper()
	got, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil || string(got) != content {
		b.t.Errorf("%s is %q, %v; want %q", name, got, err, content)
	}
}

func (b *bench) tool(name string) tool.Tool {
	b.t.Helper()
	for _, t := range tool.All(b.o) {
		if t.Name() == name {
			return t
		}
	}
	b.t.Fatalf("there is no tool %s", name)
	return nil
}

func (b *bench) prepare(name string, args map[string]any) (tool.Call, error) {
	b.t.Helper()
	raw, err := json.Marshal(args)
	b.must(err)
	return b.tool(name).Prepare(b.t.Context(), raw)
}

func (b *bench) run(name string, args map[string]any) string {
	b.t.Helper()
	c, err := b.prepare(name, args)
	b.must(err)
	_, err = c.Preview(b.t.Context())
	b.must(err)
	r, err := c.Run(b.t.Context())
	b.must(err)
	return r.Text
}

func (b *bench) refused(name string, args map[string]any, why string) {
	b.t.Helper()
	c, err := b.prepare(name, args)
	if err == nil && b.tool(name).Kind() == tool.Read {
		_, err = c.Run(b.t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), why) {
		b.t.Errorf("%s %v: %v, want %q", name, args, err, why)
	}
}

type m = map[string]any

func TestSchemasAreJSONAndStable(t *testing.T) {
	b := newBench(t)
	for i, one := range tool.All(b.o) {
		var schema struct {
			Type       string
			Properties map[string]any
		}
		if err := json.Unmarshal(one.Schema(), &schema); err != nil || schema.Type != "object" || len(schema.Properties) == 0 {
			t.Errorf("%s: %v, %s", one.Name(), err, one.Schema())
		}
		if again := tool.All(b.o)[i]; string(again.Schema()) != string(one.Schema()) || again.Name() != one.Name() {
			t.Errorf("%s changes", one.Name())
		}
		for _, bad := range []string{"[]", "{", `{"nosuch":1}`, `{} {}`, "null x", strings.Repeat(" ", 17<<20)} {
			if _, err := one.Prepare(t.Context(), json.RawMessage(bad)); !errors.Is(err, tool.ErrArguments) {
				t.Errorf("%s takes %.20q: %v", one.Name(), bad, err)
			}
		}
	}
}

func TestReading(t *testing.T) {
	b := newBench(t)
	b.put("a.go", "package a\n\nfunc A() {}\n")
	b.put("sub/b.go", "package b\r\nvar B = 1\r\n")
	b.put("sub/bin", "a\x00b")
	b.put("ignored/x.go", "package x\n")
	b.put(".gitignore", "ignored/\n")
	b.put(".git/config", "func A")
	b.must(os.Symlink("a.go", filepath.Join(b.dir, "link")))
	for want, got := range map[string]string{
		"     1\tpackage a\n     2\t\n     3\tfunc A() {}\n":           b.run("read_file", m{"path": "a.go"}),
		"     2\t\n(lines 2 to 2 of 3)\n":                              b.run("read_file", m{"path": "link", "offset": 2, "limit": 1}),
		"     1\tpackage b\n     2\tvar B = 1\n":                       b.run("read_file", m{"path": filepath.Join(b.dir, "sub/b.go")}),
		"sub/bin is no text: 3 bytes":                                  b.run("read_file", m{"path": "sub/bin"}),
		".git/\n.gitignore 9\na.go 23\nignored/\nlink -> a.go\nsub/\n": b.run("list_dir", m{}),
		"b.go 22\nbin 3\n":                                             b.run("list_dir", m{"path": "sub"}),
		"a.go\nsub/b.go\n":                                             b.run("glob", m{"pattern": "*.go"}),
		"sub/b.go\nsub/bin\n":                                          b.run("glob", m{"pattern": "sub/*"}),
		"(no file matches)":                                            b.run("glob", m{"pattern": "**/x.{go,ts}"}),
		"a.go:3: func A() {}\n":                                        b.run("grep", m{"pattern": `func \w`}),
		"sub/b.go:2: var B = 1\n":                                      b.run("grep", m{"pattern": "VAR", "path": "sub", "glob": "*.go", "ignore_case": true}),
		"(no line matches)":                                            b.run("grep", m{"pattern": "nothing"}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b.refused("read_file", m{"path": "none"}, "there is no none")
	b.refused("read_file", m{"path": "sub"}, "is a folder")
	b.refused("read_file", m{"path": "a.go", "offset": 9}, "has 3 lines")
	b.refused("grep", m{"pattern": "("}, "invalid arguments")
	b.refused("glob", m{"pattern": "[a"}, "invalid arguments")
	b.put("long", strings.Repeat("line\n", 20_000))
	if got := b.run("read_file", m{"path": "long"}); len(got) > 50<<10 || !strings.Contains(got, "go on with offset") {
		t.Errorf("%d bytes: %.100q", len(got), got[len(got)-100:])
	}
}

func TestEdits(t *testing.T) {
	b := newBench(t)
	b.put("f", "one\ntwo\none\n")
	b.must(os.Chmod(filepath.Join(b.dir, "f"), 0o755))
	c, err := b.prepare("edit_file", m{"path": "f", "old_string": "two", "new_string": "2"})
	b.must(err)
	p, err := c.Preview(t.Context())
	if b.must(err); !strings.Contains(p.Diff, "-two\n+2\n") || p.Title != "edit f" {
		t.Errorf("%+v", p)
	}
	if d := cmp.Diff([]string{"f"}, c.Paths()); d != "" {
		t.Error(d)
	}
	b.has("f", "one\ntwo\none\n")
	_, err = c.Run(t.Context())
	b.must(err)
	b.has("f", "one\n2\none\n")
	if info, err := os.Stat(filepath.Join(b.dir, "f")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	b.refused("edit_file", m{"path": "f", "old_string": "one", "new_string": "1"}, "2 times")
	b.refused("edit_file", m{"path": "f", "old_string": "three", "new_string": "1"}, "not in the file")
	b.refused("edit_file", m{"path": "f", "old_string": "", "new_string": "1"}, "empty")
	b.refused("edit_file", m{"path": "f", "old_string": "2"}, "missing")
	b.refused("edit_file", m{"path": "new", "old_string": "2", "new_string": ""}, "write_file makes it")
	b.refused("multi_edit", m{"path": "f", "edits": []m{{"old_string": "2", "new_string": "3"}, {"old_string": "2", "new_string": "4"}}}, "no edit was made")
	b.has("f", "one\n2\none\n")
	b.run("multi_edit", m{"path": "f", "edits": []m{{"old_string": "2", "new_string": "two"}, {"old_string": "two\none", "new_string": "2\n1"}}})
	b.has("f", "one\n2\n1\n")
	b.run("write_file", m{"path": "d/e/new", "content": "text"})
	b.has("d/e/new", "text")
	b.refused("write_file", m{"path": "d"}, "content is missing")
	b.refused("write_file", m{"path": "d", "content": ""}, "is a folder")
	b.run("delete_file", m{"path": "d/e/new"})
	b.run("delete_file", m{"path": "d/e"})
	b.refused("delete_file", m{"path": "none"}, "there is no none")
	b.put("d/x", "1")
	b.refused("delete_file", m{"path": "d"}, "holds something")
	if got := b.run("move_file", m{"from": "d", "to": "n/m"}); got != "moved d to n/m" {
		t.Error(got)
	}
	b.has("n/m/x", "1")
	b.refused("move_file", m{"from": "f", "to": "n/m/x"}, "is there already")
	b.refused("move_file", m{"from": "n", "to": "n/m/y"}, "can not be moved")
	c, err = b.prepare("move_file", m{"from": "n", "to": "k"})
	b.must(err)
	if d := cmp.Diff([]string{"n", "k", "n/m", "k/m", "n/m/x", "k/m/x"}, c.Paths()); d != "" {
		t.Error(d)
	}
}

// TestEncodings edits files of every encoding: what is not edited keeps its bytes.
func TestEncodings(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string][2]string{
		"crlf":   {"old\r\nother\r\n", "new\r\nother\r\n"},
		"mixed":  {"old\r\nother\n", "new\r\nother\n"},
		"bom":    {"\xef\xbb\xbfold\n", "\xef\xbb\xbfnew\n"},
		"utf16":  {"\xff\xfeo\x00l\x00d\x00\r\x00\n\x00", "\xff\xfen\x00e\x00w\x00\r\x00\n\x00"},
		"gbk":    {"\xb5\xda\xd2\xbb\xd0\xd0old", "\xb5\xda\xd2\xbb\xd0\xd0new"},
		"no end": {"old", "new"},
	} {
		b.put(name, c[0])
		b.run("edit_file", m{"path": name, "old_string": "old", "new_string": "new"})
		b.has(name, c[1])
	}
	b.put("gbk", "\xb5\xda\xd2\xbb\xd0\xd0old")
	b.refused("edit_file", m{"path": "utf16", "old_string": "nothing", "new_string": "x"}, "not in the file")
	b.run("edit_file", m{"path": "crlf", "old_string": "new\nother", "new_string": "a\nb"})
	b.has("crlf", "a\r\nb\r\n")
	b.put("binary", "a\x00b\xff")
	b.refused("edit_file", m{"path": "binary", "old_string": "a", "new_string": "b"}, "no text")
	b.run("write_file", m{"path": "binary", "content": "now text\n"})
	b.has("binary", "now text\n")
}

// TestNothingLeavesTheWorkspace gives every tool that takes a name hostile ones.
func TestNothingLeavesTheWorkspace(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(filepath.Dir(b.dir), "victim")
	b.must(os.WriteFile(outside, []byte("precious"), 0o644))
	b.must(os.Symlink("..", filepath.Join(b.dir, "up")))
	b.must(os.Symlink("../victim", filepath.Join(b.dir, "out")))
	b.must(os.Symlink("loop", filepath.Join(b.dir, "loop")))
	b.put("f", "text")
	b.put(".git/config", "x")
	b.put("store.db", "x")
	b.o.Protected = []string{filepath.Join(b.dir, "store.db")}
	for _, name := range []string{
		"../victim", outside, "up/victim", "out", "loop", "/etc/passwd", "f/../../victim", "a\x00b", ".git/config", ".GIT/config", ".git",
		"store.db", strings.Repeat("x/", 3000),
	} {
		for tool, args := range map[string]m{
			"write_file":  {"path": name, "content": "x"},
			"edit_file":   {"path": name, "old_string": "x", "new_string": "y"},
			"multi_edit":  {"path": name, "edits": []m{{"old_string": "x", "new_string": "y"}}},
			"read_file":   {"path": name},
			"delete_file": {"path": name},
			"move_file":   {"from": name, "to": "there"},
		} {
			if name == "out" && (tool == "delete_file" || tool == "move_file") || name == "loop" && (tool == "delete_file" || tool == "move_file") {
				continue // the link itself is the workspace's own
			}
			b.refused(tool, args, "")
		}
		if name != "out" && name != "loop" && name != ".git" {
			b.refused("move_file", m{"from": "f", "to": name}, "")
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "precious" {
		t.Errorf("%q, %v", got, err)
	}
	b.has("f", "text")
	b.has(".git/config", "x")
	b.has("store.db", "x")
}

// TestStaleCalls changes files between preparing and running.
func TestStaleCalls(t *testing.T) {
	b := newBench(t)
	b.put("f", "one")
	for name, args := range map[string]m{
		"edit_file": {"path": "f", "old_string": "one", "new_string": "two"}, "write_file": {"path": "f", "content": "x"},
		"delete_file": {"path": "f"}, "move_file": {"from": "f", "to": "g"},
	} {
		b.put("f", "one")
		c, err := b.prepare(name, args)
		b.must(err)
		b.put("f", "somebody else's")
		b.must(os.Chtimes(filepath.Join(b.dir, "f"), time.Now(), time.Now().Add(time.Hour)))
		if _, err := c.Run(t.Context()); err == nil {
			t.Errorf("%s ran over another edit", name)
		}
		b.has("f", "somebody else's")
	}
	left, err := os.ReadDir(b.dir)
	if b.must(err); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}

func TestBash(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // its shell is another one
	}
	b := newBench(t)
	for command, want := range map[string]string{
		"echo hello; pwd": "hello\n" + b.dir + "\n", "true": "(no output)", "echo x; exit 3": "x\n\n(exit code 3)", "cat": "(no output)",
	} {
		if got := b.run("bash", m{"command": command}); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	b.o.MaxText = 1000
	if got := b.run("bash", m{"command": "seq 1 100000; echo last"}); len(got) > 1100 || !strings.HasPrefix(got, "1\n2\n") || !strings.HasSuffix(got, "last\n") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	b.o.Timeout = 200 * time.Millisecond
	if got := b.run("bash", m{"command": "echo begun; (sleep 60; touch late) & sleep 60"}); !strings.Contains(got, "begun") || !strings.Contains(got, "was ended after") {
		t.Error(got)
	}
	b.o.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	c, err := b.prepare("bash", m{"command": "touch began; sleep 60; touch late"})
	b.must(err)
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(b.dir, "began")); err == nil {
				cancel()
				return
			}
		}
	}()
	if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.refused("bash", m{"command": ""}, "empty")
	if _, err := os.Stat(filepath.Join(b.dir, "late")); err == nil {
		t.Error("what the command started went on")
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"*.go", "**/a", "{a,b}/**", "[!a-c]?", "a[", "{", "\\", "[\\]]", "{a,{b,c}}"} {
		f.Add(seed)
	}
	b := newBench(f)
	b.put("a/b.go", "x")
	globs := b.tool("glob")
	f.Fuzz(func(t *testing.T, pattern string) {
		raw, err := json.Marshal(m{"pattern": pattern})
		if err != nil {
			return
		}
		c, err := globs.Prepare(t.Context(), raw)
		if err != nil {
			return
		}
		if _, err := c.Run(t.Context()); err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"path":"a"}`, `{"path":"../x","content":"y"}`, `{"edits":[{}]}`, `null`, `{"from":"a","to":"a/b"}`, `{"timeout_seconds":-1}`} {
		f.Add([]byte(seed))
	}
	b := newBench(f)
	b.put("a", "x")
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, one := range tool.All(b.o) {
			c, err := one.Prepare(t.Context(), raw)
			if err != nil {
				continue
			}
			for _, p := range c.Paths() {
				if !filepath.IsLocal(p) {
					t.Errorf("%s of %q would write %q", one.Name(), raw, p)
				}
			}
			if _, err := c.Preview(t.Context()); err != nil {
				t.Errorf("%s of %q: %v", one.Name(), raw, err)
			}
		}
	})
}
