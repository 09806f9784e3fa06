package rewind_test

import (
	"path"
	"slices"
	"strings"
)

// folder is the reference's picture of a workspace: the state of every path that exists.
//
//	644:text    a file, its permission bits and its content
//	->target    a symlink
//	d755        a folder
//
// What does not exist has the state "". The methods do to the picture what the system calls of
// the same purpose do to files.
type folder map[string]string

func isDir(state string) bool  { return strings.HasPrefix(state, "d") }
func isLink(state string) bool { return strings.HasPrefix(state, "->") }

// above are the folders that p lies in, the innermost first.
func above(p string) []string {
	var all []string
	for up := path.Dir(p); up != "."; up = path.Dir(up) {
		all = append(all, up)
	}
	return all
}

func inside(p, dir string) bool { return strings.HasPrefix(p, dir+"/") }

// blocked reports whether something above p exists and is no folder.
func (f folder) blocked(p string) bool {
	return slices.ContainsFunc(above(p), func(up string) bool { return f[up] != "" && !isDir(f[up]) })
}

// below are the paths in a folder, at any depth, in order.
func (f folder) below(dir string) []string {
	var all []string
	for p := range f {
		if inside(p, dir) {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

func (f folder) remove(p string) {
	delete(f, p)
	for _, q := range f.below(p) {
		delete(f, q)
	}
}

// room makes the folders above p, in the place of whatever is there instead.
func (f folder) room(p string) {
	for _, up := range slices.Backward(above(p)) {
		if !isDir(f[up]) {
			f[up] = "d755"
		}
	}
}

// set puts a state in the place of whatever is there.
func (f folder) set(p, state string) {
	f.remove(p)
	if state != "" {
		f.room(p)
		f[p] = state
	}
}

// rename moves what is at p, with all below it, to the place of whatever is at q.
func (f folder) rename(p, q string) {
	f.remove(q)
	f.room(q)
	for _, old := range append(f.below(p), p) {
		f[q+old[len(p):]] = f[old]
		delete(f, old)
	}
}

// resolve is the path that a name means: links among its folders are followed, the last part
// is not. It reports false for what lies outside.
func (f folder) resolve(name string) (string, bool) {
	dir, ok := f.follow(path.Dir(name))
	return path.Join(dir, path.Base(name)), ok && path.Base(name) != ".."
}

// follow is where a name leads when every link in it is followed, "." for the root itself.
func (f folder) follow(name string) (string, bool) {
	at, todo := ".", strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		next := path.Join(at, part)
		switch {
		case strings.HasPrefix(next, ".."):
			return "", false
		case part != "." && part != ".." && isLink(f[next]):
			if links++; links > 40 {
				return "", false
			}
			todo = append(strings.Split(f[next][2:], "/"), todo...)
		default:
			at = next
		}
	}
	return at, true
}

// target is the path that a write through the link p would change.
func (f folder) target(p string) (string, bool) {
	if !isLink(f[p]) {
		return "", false
	}
	to, ok := f.follow(p)
	return to, ok && to != "." && !f.blocked(to)
}
