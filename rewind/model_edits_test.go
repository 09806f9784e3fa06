package rewind_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// change is something done to files, by the agent's tool or by a person.
type change struct {
	kind  changeKind
	p, to string // to is where a rename goes
	state string // of a write; of a mode change, which bits
}

type changeKind int

const (
	write changeKind = iota
	rename
	mode
	nothing // an announced edit that fails
)

// oddNames are what names of a seed are taken from: few at a time, so that they collide.
var oddNames = []string{
	"a", "b", "-c", "d e ", "é", "e\u0301", "\xff", "q\"'\\", "n\nl", "a.b", ".h", "a-b", "*?", strings.Repeat("x", 255),
}

// path is a path at random, seldom deep.
func (m *model) path() string {
	depth := 1
	if x := m.rnd.IntN(10); x >= 8 {
		depth = 3
	} else if x >= 5 {
		depth = 2
	}
	parts := make([]string, depth)
	for i := range parts {
		parts[i] = m.names[m.rnd.IntN(len(m.names))]
	}
	return path.Join(parts...)
}

// existing is a path that is there, when one is.
func (m *model) existing() string {
	all := make([]string, 0, len(m.ref.disk))
	for p := range m.ref.disk {
		all = append(all, p)
	}
	if len(all) == 0 {
		return m.path()
	}
	slices.Sort(all)
	return all[m.rnd.IntN(len(all))]
}

// fresh is a state that no path had before.
func (m *model) fresh() string {
	m.value++
	switch m.rnd.IntN(14) {
	case 0, 1:
		return ""
	case 2:
		return fmt.Sprintf("->nowhere/%d", m.value)
	case 3:
		return "->" + []string{m.path(), "../" + m.path(), ".", "../../outside"}[m.rnd.IntN(4)]
	case 4, 5:
		return []string{"d755", "d700", "d775"}[m.rnd.IntN(3)]
	case 6:
		return fmt.Sprintf("755:%d", m.value)
	case 7:
		return fmt.Sprintf("444:%s%d", strings.Repeat("line\n", 200), m.value)
	}
	return fmt.Sprintf("644:%d", m.value)
}

// change is a change at random; its paths are resolved.
func (m *model) change() change {
	c := change{p: m.path(), state: m.fresh()}
	switch m.rnd.IntN(12) {
	case 0:
		c.kind, c.p, c.to = rename, m.existing(), m.path()
	case 1:
		c.kind, c.p, c.state = mode, m.existing(), []string{"011", "040", "007"}[m.rnd.IntN(3)]
	case 2, 3:
		c.p = m.existing()
	}
	return c
}

// do makes a change, to the files and to the reference's picture of them. What can no longer be
// done is not.
func (m *model) do(c change) {
	m.wrote = len(m.ref.ops)
	d := m.ref.disk
	name := filepath.Join(m.dir, c.p)
	switch c.kind {
	case write:
		if c.state == "" && d[c.p] == "" {
			return
		}
		d.set(c.p, c.state)
		m.room(c.p)
		m.put(c.p, c.state)
	case rename:
		if d[c.p] == "" || c.p == c.to || inside(c.to, c.p) || inside(c.p, c.to) {
			return
		}
		d.rename(c.p, c.to)
		m.room(c.to)
		to := filepath.Join(m.dir, c.to)
		m.must(os.RemoveAll(to))
		m.must(os.Rename(name, to))
	case mode:
		state := d[c.p]
		if state == "" || isLink(state) {
			return
		}
		kind, bits := "", state[:3]
		if isDir(state) {
			kind, bits = "d", state[1:]
		}
		var was, flip uint
		fmt.Sscanf(bits, "%o", &was)
		fmt.Sscanf(c.state, "%o", &flip)
		is := fmt.Sprintf("%o", was^flip)
		d[c.p] = kind + is + strings.TrimPrefix(state, kind+bits)
		m.chmod(c.p, is)
	case nothing:
	}
}

// room makes the folders above p, in the place of whatever is there instead.
func (m *model) room(p string) {
	for _, up := range slices.Backward(above(p)) {
		name := filepath.Join(m.dir, up)
		if info, err := os.Lstat(name); err == nil && info.IsDir() {
			continue
		}
		m.put(up, "d755")
	}
}

// byHand is a change that nobody announces.
func (m *model) byHand() {
	c := m.change()
	m.note("by hand %v", c)
	was := maps.Clone(m.ref.disk)
	m.do(c)
	for _, p := range differing(was, m.ref.disk) {
		m.dirty[p] = true
	}
}

// differing are the paths that are not the same in two folders.
func differing(a, b folder) []string {
	var all []string
	for p, state := range a {
		if b[p] != state {
			all = append(all, p)
		}
	}
	for p := range b {
		if a[p] == "" {
			all = append(all, p)
		}
	}
	return all
}

func (c change) String() string {
	switch c.kind {
	case rename:
		return fmt.Sprintf("rename %.20q to %.20q", c.p, c.to)
	case mode:
		return fmt.Sprintf("mode of %.20q ^%s", c.p, c.state)
	case nothing:
		return fmt.Sprintf("nothing to %.20q", c.p)
	}
	return fmt.Sprintf("%.20q is %.20q", c.p, c.state)
}
