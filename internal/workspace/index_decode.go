package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"reasonix/store"
)

// ErrIndex is returned when the parts of an index are damaged or do not belong together. What
// was in it has to be scanned again.
var ErrIndex = errors.New("stat index is damaged")

// DecodeParts reads the parts that scans emitted, in their order. Any damage, and any part that
// does not follow on the one before it, is ErrIndex: the caller then goes on without a base.
// No parts are a nil Index.
func DecodeParts(parts [][]byte) (*Index, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	d := &decoder{x: &Index{root: &node{}}, open: map[*node]map[string]entry{}}
	for i, part := range parts {
		if err := d.part(part, i == 0); err != nil {
			return nil, fmt.Errorf("%w: part %d of %d: %w", ErrIndex, i+1, len(parts), err)
		}
	}
	d.close()
	d.x.count()
	return d.x, nil
}

var errPart = errors.New("malformed")

// decoder puts parts together. Folders that changes touch are kept as maps until the end.
type decoder struct {
	x    *Index
	open map[*node]map[string]entry

	entries []entry // of a tree: not yet handed out
	nodes   []node
}

func (d *decoder) part(b []byte, first bool) error {
	body := len(b) - len(link{})
	if body < partHead || string(b[:len(partMagic)]) != partMagic {
		return errPart
	}
	sum := checksum(b[:body])
	if !bytes.Equal(sum[:], b[body:]) {
		return errors.New("checksum does not match")
	}
	kind, flags := b[len(partMagic)], b[len(partMagic)+1]
	at := link(b[len(partMagic)+2:])
	r := &partReader{b: b[:body], at: partHead}
	switch {
	case kind == partTree && first:
		r.s = string(r.b)
		d.tree(r)
		d.x.link = at
	case kind == partChanges && (first && at == link{} || !first && at == d.x.link):
		r.s = string(r.b)
		d.changes(r)
		d.x.link = sum
	default:
		return errors.New("does not follow on what is before it")
	}
	if r.bad || r.at != len(r.b) {
		return errPart
	}
	d.x.complete, d.x.mixed = flags&partComplete != 0, flags&partMixed != 0
	return nil
}

// tree reads a whole index.
func (d *decoder) tree(r *partReader) {
	for range r.length(1) {
		d.pin(r, r.text())
	}
	d.nodes = make([]node, r.length(2))
	d.entries = make([]entry, r.length(5))
	d.x.root = d.node(r, 0)
	if len(d.nodes) != 0 || len(d.entries) != 0 {
		r.bad = true
	}
}

// node reads a folder and all below it.
func (d *decoder) node(r *partReader, depth int) *node {
	if len(d.nodes) == 0 || depth > maxPath {
		r.bad = true
		return &node{}
	}
	n := &d.nodes[0]
	d.nodes = d.nodes[1:]
	r.info(n)
	count := r.length(5)
	if count > len(d.entries) {
		r.bad = true
		return n
	}
	n.entries, d.entries = d.entries[:count:count], d.entries[count:]
	folder := &node{} // stands for each node until it is read
	for i := range n.entries {
		e := &n.entries[i]
		if r.entry(e) {
			e.node = folder
		}
		if i > 0 && n.entries[i-1].name >= e.name {
			r.bad = true
		}
		if r.bad {
			return n
		}
	}
	for i := range n.entries {
		if e := &n.entries[i]; e.node != nil {
			e.node = d.node(r, depth+1)
		}
	}
	return n
}

// changes applies a part of changes.
func (d *decoder) changes(r *partReader) {
	at := d.x.root
	for !r.bad && r.at < len(r.b) {
		switch r.byte() {
		case opFolder:
			if at = d.folder(r.text()); at == nil {
				r.bad = true
			}
		case opInfo:
			r.info(at)
		case opPut:
			d.put(at, r)
		case opRemove:
			delete(d.opened(at), r.text())
		case opPin:
			d.pin(r, r.text())
		default:
			r.bad = true
		}
	}
}

func (d *decoder) put(at *node, r *partReader) {
	var e entry
	if r.entry(&e) {
		if e.node = d.opened(at)[e.name].node; e.node == nil {
			e.node = &node{}
		}
	}
	if !r.bad {
		d.opened(at)[e.name] = e
	}
}

// folder finds the folder p, nil when there is none.
func (d *decoder) folder(p string) *node {
	at := d.x.root
	if p == "." {
		return at
	}
	for name := range strings.SplitSeq(p, "/") {
		if m, ok := d.open[at]; ok {
			at = m[name].node
		} else if e, ok := at.find(name); ok {
			at = e.node
		} else {
			return nil
		}
		if at == nil {
			return nil
		}
	}
	return at
}

func (d *decoder) opened(n *node) map[string]entry {
	m, ok := d.open[n]
	if !ok {
		m = make(map[string]entry, len(n.entries))
		for _, e := range n.entries {
			m[e.name] = e
		}
		d.open[n] = m
	}
	return m
}

// close makes the maps lists again.
func (d *decoder) close() {
	for n, m := range d.open {
		n.entries = slices.AppendSeq(make([]entry, 0, len(m)), maps.Values(m))
		slices.SortFunc(n.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	}
}

func (d *decoder) pin(r *partReader, path string) {
	if CheckPath(store.Path(path)) != nil {
		r.bad = true
		return
	}
	if d.x.pins == nil {
		d.x.pins = &pins{}
	}
	d.x.pins.add(store.Path(path))
}

// isName reports whether name can be an entry's: checkName, in the few instructions that most
// names need.
func isName(name string) bool {
	if runtime.GOOS != "linux" || name == "" || name[0] == '.' {
		return checkName(name) == nil && strings.IndexByte(name, '/') < 0
	}
	return strings.IndexByte(name, '/') < 0 && strings.IndexByte(name, 0) < 0 // and no byte is a length above 255
}
