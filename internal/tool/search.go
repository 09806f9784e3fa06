package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"reasonix/internal/ignore"
)

// maxFound bounds what a search gives.
const maxFound = 500

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk calls fn for the files and links below dir that no rule leaves out, in order.
func (t *tree) walk(ctx context.Context, dir string, fn func(p string, e fs.DirEntry) error) error {
	rules := t.rulesAbove(dir)
	return t.walkFolder(ctx, dir, rules, fn)
}

// rulesAbove are the rules of the folders above dir.
func (t *tree) rulesAbove(dir string) *ignore.Rules {
	var rules *ignore.Rules
	if dir == "." {
		return nil
	}
	at := "."
	for _, name := range strings.Split(dir, "/") {
		rules = t.rules(rules, at)
		at = joined(at, name)
	}
	return rules
}

func (t *tree) rules(above *ignore.Rules, dir string) *ignore.Rules {
	return above.Below(dir, t.rule(joined(dir, ignore.GitFile)), t.rule(joined(dir, ignore.OwnFile)))
}

func (t *tree) rule(p string) string {
	info, err := t.dir.Lstat(p)
	if err != nil || !info.Mode().IsRegular() || info.Size() > ignore.MaxSize {
		return ""
	}
	b, err := t.dir.ReadFile(p)
	if err != nil {
		return ""
	}
	return string(b)
}

func (t *tree) walkFolder(ctx context.Context, dir string, above *ignore.Rules, fn func(string, fs.DirEntry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d, err := t.dir.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // a folder that cannot be read holds nothing that can be found
	}
	entries, err := d.ReadDir(-1)
	_ = d.Close()
	if err != nil && len(entries) == 0 {
		return nil //nolint:nilerr // see above
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	rules := t.rules(above, dir)
	in := rules.In(dir, nil)
	for _, e := range entries {
		if in.Ignored(e.Name(), e.IsDir()) || strings.EqualFold(e.Name(), ".git") {
			continue
		}
		p := joined(dir, e.Name())
		if e.IsDir() {
			err = t.walkFolder(ctx, p, rules, fn)
		} else {
			err = fn(p, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// glob is a pattern of paths: * and ? within a name, ** for any folders, [a-z], {a,b}.
type glob struct{ re *regexp.Regexp }

func newGlob(pattern string) (*glob, error) {
	if pattern == "" || len(pattern) > 1000 {
		return nil, badArgs("the pattern is empty or too long")
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern // a name, in any folder
	}
	pattern = strings.TrimPrefix(pattern, "./")
	var b strings.Builder
	b.WriteString("^")
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteString(")")
		case c == ',' && depth > 0:
			b.WriteString("|")
		case c == '[':
			end := strings.IndexByte(pattern[i+1:], ']')
			if end < 1 {
				return nil, badArgs("a [ in the pattern has no ]")
			}
			class := pattern[i+1 : i+1+end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(class, `\`, `\\`) + "]")
			i += end + 1
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if depth > 0 {
		return nil, badArgs("a { in the pattern has no }")
	}
	re, err := regexp.Compile(b.String() + "$")
	if err != nil {
		return nil, badArgs("the pattern can not be read")
	}
	return &glob{re}, nil
}

func (g *glob) matches(p string) bool { return g == nil || g.re.MatchString(p) }

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func globFiles(o Options) Tool {
	return &simple[globArgs]{
		name: "glob", kind: Read,
		description: "Find files by a pattern such as **/*.go or src/{a,b}/*.ts. Ignored files are left out.",
		schema: `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder to look in"}},` +
			`"required":["pattern"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a globArgs) (Call, error) {
			g, err := newGlob(a.Pattern)
			if err != nil {
				return nil, err
			}
			return &reading{"find " + a.Pattern, func(ctx context.Context) (string, error) {
				return with(o, func(t *tree) (string, error) { return t.glob(ctx, a.Path, g) })
			}}, nil
		},
	}
}

func (t *tree) glob(ctx context.Context, dir string, g *glob) (string, error) {
	from, err := t.resolveDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	err = t.walk(ctx, from, func(p string, _ fs.DirEntry) error {
		if g.matches(relative(from, p)) {
			found = append(found, p)
		}
		if len(found) > maxFound {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return listed(found, t.o.MaxText, "no file matches"), nil
}

func relative(dir, p string) string {
	if dir == "." {
		return p
	}
	return strings.TrimPrefix(p, dir+"/")
}

func listed(found []string, most int, none string) string {
	if len(found) == 0 {
		return "(" + none + ")"
	}
	more := ""
	if len(found) > maxFound {
		found, more = found[:maxFound], fmt.Sprintf("(the first %d; narrow the search)\n", maxFound)
	}
	return limited(valid(strings.Join(found, "\n"))+"\n"+more, most, "narrow the search")
}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
}

func grepFiles(o Options) Tool {
	return &simple[grepArgs]{
		name: "grep", kind: Read,
		description: "Find lines by a regular expression (Go syntax) in the text files of the workspace. Ignored files are left out.",
		schema: `{"type":"object","properties":{"pattern":{"type":"string","description":"regular expression"},` +
			`"path":{"type":"string","description":"file or folder to look in"},"glob":{"type":"string","description":"only files that match, such as *.go"},` +
			`"ignore_case":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a grepArgs) (Call, error) {
			if a.IgnoreCase {
				a.Pattern = "(?i)" + a.Pattern
			}
			re, err := regexp.Compile(a.Pattern)
			if err != nil {
				return nil, badArgs("%v", err)
			}
			var g *glob
			if a.Glob != "" {
				if g, err = newGlob(a.Glob); err != nil {
					return nil, err
				}
			}
			return &reading{"search " + a.Pattern, func(ctx context.Context) (string, error) {
				return with(o, func(t *tree) (string, error) { return t.grep(ctx, a.Path, re, g) })
			}}, nil
		},
	}
}

func (t *tree) grep(ctx context.Context, name string, re *regexp.Regexp, g *glob) (string, error) {
	from, err := t.resolveDir(name)
	if err != nil {
		return "", err
	}
	var found []string
	look := func(p string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || !g.matches(relative(from, p)) {
			return nil
		}
		return t.grepFile(p, re, &found)
	}
	info, err := t.dir.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no %s", from)
	case err != nil:
		return "", err
	case info.IsDir():
		err = t.walk(ctx, from, look)
	default:
		err = t.grepFile(from, re, &found)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return listed(found, t.o.MaxText, "no line matches"), nil
}

// grepFile looks through a file that is text.
func (t *tree) grepFile(p string, re *regexp.Regexp, found *[]string) error {
	f, err := t.dir.Open(p)
	if err != nil {
		return nil //nolint:nilerr // what cannot be read holds nothing that can be found
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > t.o.MaxFile {
		return nil //nolint:nilerr // see above
	}
	in := bufio.NewReader(f)
	if head, err := in.Peek(1024); (err == nil || errors.Is(err, io.EOF)) && strings.IndexByte(string(head), 0) >= 0 {
		return nil
	}
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); (line != "" || err == nil) && re.MatchString(line) {
			if r := []rune(line); len(r) > 300 {
				line = string(r[:300]) + "…"
			}
			*found = append(*found, fmt.Sprintf("%s:%d: %s", p, n, line))
			if len(*found) > maxFound {
				return errEnough
			}
		}
		if err != nil {
			return nil //nolint:nilerr // the end, or what cannot be read further
		}
	}
}
