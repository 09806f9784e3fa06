package workspace

import (
	"iter"
	"slices"
	"strings"

	"reasonix/store"
)

// pins is a tree of the recorded paths, which are covered whatever the rules say. A nil *pins
// holds none.
type pins struct {
	here  bool // this path is recorded, not only some below it
	below map[string]*pins
}

func (p *pins) at(name string) *pins {
	if p == nil {
		return nil
	}
	return p.below[name]
}

func (p *pins) isHere() bool { return p != nil && p.here }

// names are the names below p, sorted.
func (p *pins) names() []named {
	if p == nil {
		return nil
	}
	list := make([]named, 0, len(p.below))
	for name := range p.below {
		list = append(list, named{name: name})
	}
	slices.SortFunc(list, byName)
	return list
}

func (p *pins) has(path store.Path) bool {
	for name := range strings.SplitSeq(string(path), "/") {
		p = p.at(name)
	}
	return p.isHere()
}

func (p *pins) add(path store.Path) {
	for name := range strings.SplitSeq(string(path), "/") {
		next := p.below[name]
		if next == nil {
			if p.below == nil {
				p.below = map[string]*pins{}
			}
			next = &pins{}
			p.below[name] = next
		}
		p = next
	}
	p.here = true
}

// with returns p and paths, and those of paths that are new. p is not changed.
func (p *pins) with(paths []store.Path) (*pins, []store.Path) {
	var added []store.Path
	for _, path := range paths {
		if p.has(path) || CheckPath(path) != nil {
			continue
		}
		if len(added) == 0 {
			p = p.clone()
		}
		p.add(path)
		added = append(added, path)
	}
	return p, added
}

func (p *pins) clone() *pins {
	c := &pins{}
	if p != nil {
		c.here = p.here
		for name, b := range p.below {
			if c.below == nil {
				c.below = make(map[string]*pins, len(p.below))
			}
			c.below[name] = b.clone()
		}
	}
	return c
}

// all yields the recorded paths below prefix, in no order.
func (p *pins) all(prefix store.Path) iter.Seq[store.Path] {
	return func(yield func(store.Path) bool) { p.each(prefix, yield) }
}

func (p *pins) each(prefix store.Path, yield func(store.Path) bool) bool {
	if p == nil {
		return true
	}
	if p.here && !yield(prefix) {
		return false
	}
	for name, b := range p.below {
		if !b.each(join(prefix, name), yield) {
			return false
		}
	}
	return true
}
