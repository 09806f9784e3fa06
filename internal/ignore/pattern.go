package ignore

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// verdict is what a pattern says of an entry that it matches.
type verdict uint8

const (
	undecided verdict = iota
	ignored
	included
)

// pattern is a line of a rule file, prepared so that go-git's matcher, which tells whether
// components match components, is right about it. Left to itself that matcher takes what lies
// below a match for a match, tries "**" at one place only, and reads classes of characters by
// other rules than git.
//
// The runs are the parts between the "**" of the line. The first has to match at the start
// unless floating, the last at the end unless open, and those between anywhere in this order.
type pattern struct {
	verdict  verdict
	dirOnly  bool
	floating bool // begins with "**", or is a name that matches at any depth
	open     bool // ends with "**": anything below
	runs     []run
}

// run matches a fixed number of components.
type run struct {
	n       int
	literal string // the one component, if it has no wildcard
	suffix  string // the one component is a "*" and this
	glob    gitignore.Pattern
}

// parse reads a rule file. Lines that can never match are dropped: no line is an error.
func parse(text string) []pattern {
	var all []pattern
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if p, ok := parseLine(strings.TrimSuffix(line, "\r")); ok {
			all = append(all, p)
		}
	}
	return all
}

func parseLine(line string) (pattern, bool) {
	if strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	line = trimSpaces(line)
	p := pattern{verdict: ignored}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.verdict, line = included, rest
	}
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return pattern{}, false
	}
	p.floating = !strings.Contains(line, "/")
	components, ok := splitLine(strings.TrimPrefix(line, "/"))
	return p, ok && p.split(components)
}

// splitLine splits a pattern at its slashes, but for those in a class, which stand for nothing.
// false means that a class is never closed.
func splitLine(line string) (components []string, ok bool) {
	start := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			if i+1 < len(line) && line[i+1] == '/' {
				components = append(components, line[start:i])
				start = i + 2
			}
			i++
		case '[':
			n, ok := translateClass(new(strings.Builder), line[i:])
			if !ok {
				return nil, false
			}
			i += n - 1
		case '/':
			components = append(components, line[start:i])
			start = i + 1
		}
	}
	return append(components, line[start:]), true
}

// trimSpaces drops spaces at the end that no backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == ' ' {
			continue
		}
		if line[i] == '\\' && i+1 < len(line) {
			i++
		}
		end = i + 1
	}
	return line[:end]
}

// split makes the runs of a line's components; false means that nothing can match them.
func (p *pattern) split(components []string) bool {
	if len(components) == 1 && components[0] == "**" {
		components[0] = "*"
		p.floating = true
	}
	var globs []string
	flush := func() {
		if len(globs) > 0 {
			p.runs = append(p.runs, newRun(globs))
		}
		globs = nil
	}
	for i, c := range components {
		if c == "**" {
			flush()
			p.floating = p.floating || i == 0
			p.open = i == len(components)-1
			continue
		}
		glob, ok := translate(c)
		if !ok {
			return false
		}
		globs = append(globs, glob)
	}
	flush()
	return true
}

func newRun(globs []string) run {
	if len(globs) == 1 {
		switch g := globs[0]; {
		case !strings.ContainsAny(g, `*?[\`):
			return run{n: 1, literal: narrow(g)}
		case g[0] == '*' && !strings.ContainsAny(g[1:], `*?[\`):
			return run{n: 1, suffix: narrow(g[1:])}
		}
	}
	// The slash in front makes it match components from the first one on.
	return run{n: len(globs), glob: gitignore.ParsePattern("/"+strings.Join(globs, "/"), nil)}
}

// matches reports whether the entry path, seen from the folder of the rule file, matches p.
func (p *pattern) matches(path []string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	runs := p.runs
	if p.open {
		if len(path) == 0 {
			return false
		}
		path = path[:len(path)-1] // "**" stands for one component at least
	}
	if !p.floating && len(runs) > 0 {
		first := runs[0]
		if len(path) < first.n || !first.matches(path[:first.n]) {
			return false
		}
		runs, path = runs[1:], path[first.n:]
		if len(runs) == 0 {
			return p.open || len(path) == 0
		}
	}
	if !p.open && len(runs) > 0 {
		last := runs[len(runs)-1]
		at := len(path) - last.n
		if at < 0 || !last.matches(path[at:]) {
			return false
		}
		runs, path = runs[:len(runs)-1], path[:at]
	}
	for _, r := range runs {
		at := r.find(path)
		if at < 0 {
			return false
		}
		path = path[at+r.n:]
	}
	return true
}

// find returns the first place where r matches in path, or -1. The first is as good as any: it
// leaves the most to the runs that follow.
func (r *run) find(path []string) int {
	for at := 0; at+r.n <= len(path); at++ {
		if r.matches(path[at : at+r.n]) {
			return at
		}
	}
	return -1
}

// matches reports whether r matches exactly the components path, of which there are r.n.
func (r *run) matches(path []string) bool {
	switch {
	case r.glob != nil:
		return r.glob.Match(widenAll(path), false) != gitignore.NoMatch
	case r.suffix != "":
		return strings.HasSuffix(path[0], r.suffix)
	case r.literal != "":
		return path[0] == r.literal
	}
	return true // "*"
}
