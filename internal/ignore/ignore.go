// Package ignore decides what a scan leaves out, by the rules of .gitignore.
//
// Terms. A rule file is a .gitignore or a .reasonixignore; there may be one of each in every
// folder. The rules of a folder are those of its own files and of all folders above. An entry
// is ignored, included, or not decided by them; the last pattern that matches decides, and the
// files come in this order, the strongest last: what nobody wants by default (Defaults), the
// .gitignore files from the root downward, the .reasonixignore files from the root downward.
// So a .reasonixignore at the root has the last word on a .gitignore below.
//
// The questions are asked from the root downward, and nothing is asked about what lies in an
// ignored folder: it is ignored, and no pattern includes it again.
//
// Caveats. Letters match in their own case only, whatever the file system does. What git reads
// from elsewhere (.git/info/exclude, core.excludesFile, folders above the root) has no effect.
package ignore

import (
	"slices"
	"strings"
	"sync"
)

// The names of rule files, and their limit.
const (
	GitFile = ".gitignore"      // the rule file that is shared with git
	OwnFile = ".reasonixignore" // the rule file that only this program reads
	MaxSize = 1 << 20           // bytes of a rule file; a larger one is no rule file
)

// Rules are the rule files that are in force in a folder. nil is none. They never change and
// may be shared; files are parsed when the first question is asked.
type Rules struct {
	parent   *Rules
	depth    int // components of the folder that the files lie in
	git, own func() []pattern
}

// Below returns the rules of folder ("" or "." is the root), which lies below the one of r: r and
// the two files in it. An empty text is as good as no file.
func (r *Rules) Below(folder, git, own string) *Rules {
	if git == "" && own == "" {
		return r
	}
	return &Rules{
		parent: r,
		depth:  len(components(folder)),
		git:    sync.OnceValue(func() []pattern { return parse(git) }),
		own:    sync.OnceValue(func() []pattern { return parse(own) }),
	}
}

// Folder answers for the entries of one folder. It is for one goroutine.
type Folder struct {
	rules  *Rules
	path   []string // the folder's components and room for the entry's name
	marked []string
}

// In returns the answers for the entries of folder, which is the one of r or lies below it.
// marked are the names in it that a Marker names.
func (r *Rules) In(folder string, marked []string) *Folder {
	return &Folder{rules: r, path: append(components(folder), ""), marked: marked}
}

// Ignored reports whether the entry name is left out; dir says that it is a folder.
func (f *Folder) Ignored(name string, dir bool) bool {
	f.path[len(f.path)-1] = name
	for _, own := range []bool{true, false} {
		for r := f.rules; r != nil; r = r.parent {
			if v := r.decide(own, f.path[r.depth:], dir); v != undecided {
				return v == ignored
			}
		}
	}
	return dir && (folders[name] || slices.Contains(f.marked, name)) || !dir && files[name]
}

func (r *Rules) decide(own bool, path []string, dir bool) verdict {
	patterns := r.git
	if own {
		patterns = r.own
	}
	for _, p := range slices.Backward(patterns()) {
		if p.matches(path, dir) {
			return p.verdict
		}
	}
	return undecided
}

// components splits a path; the root has none.
func components(path string) []string {
	if path == "" || path == "." {
		return nil
	}
	return strings.Split(path, "/")
}
