package workspace

import (
	"encoding/binary"

	"reasonix/blob"
	"reasonix/store"
)

// partReader reads a part. After the first thing that cannot be, bad is set and nothing counts.
type partReader struct {
	b      []byte
	s      string // the same bytes: names are cut out of it
	at     int
	device uint64
	bad    bool
}

func (r *partReader) take(n int) int {
	at := r.at
	if n < 0 || n > len(r.b)-at {
		r.bad = true
		r.at = len(r.b)
		return -1
	}
	r.at += n
	return at
}

func (r *partReader) byte() byte {
	if at := r.take(1); at >= 0 {
		return r.b[at]
	}
	return 0
}

func (r *partReader) uint() uint64 {
	n, size := binary.Uvarint(r.b[r.at:])
	if size <= 0 {
		r.bad = true
		r.at = len(r.b)
		return 0
	}
	r.at += size
	return n
}

// length reads a number of things that take at least size bytes each.
func (r *partReader) length(size int) int {
	n := r.uint()
	if n > uint64((len(r.b)-r.at)/size) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *partReader) text() string { return r.cut(r.length(1)) }

func (r *partReader) cut(n int) string {
	if at := r.take(n); at >= 0 {
		return r.s[at : at+n]
	}
	return ""
}

func (r *partReader) sig(s *Sig) {
	at := r.take(26)
	if at < 0 {
		return
	}
	b := r.b[at : at+26]
	head := binary.LittleEndian.Uint16(b)
	s.Kind = store.Kind(head & 7)
	s.Mode = uint32(head>>sigMode) & 0o777
	s.Racy = head&sigRacy != 0
	s.MTime = int64(binary.LittleEndian.Uint64(b[2:]))
	s.CTime = int64(binary.LittleEndian.Uint64(b[10:]))
	s.Inode = binary.LittleEndian.Uint64(b[18:])
	s.Size = int64(r.uint())
	if head&sigDevice != 0 {
		if at := r.take(8); at >= 0 {
			r.device = binary.LittleEndian.Uint64(r.b[at:])
		}
	}
	s.Device = r.device
	if s.Kind > store.Uncaptured {
		r.bad = true
	}
}

// entry reads an entry. Its node, if it has one, is left to the caller.
func (r *partReader) entry(e *entry) (hasNode bool) {
	at := r.take(5)
	if at < 0 {
		return false
	}
	head := binary.LittleEndian.Uint32(r.b[at:])
	e.name = r.cut(int(r.b[at+4]))
	e.state.Kind = store.Kind(head & 7)
	e.state.Mode = head >> entryMode & 0o777
	e.gap = gap(head >> entryGap & 15)
	hasNode = head&entryNode != 0
	if head&entrySig != 0 {
		r.sig(&e.sig)
	}
	if e.state.HasContent() {
		if at := r.take(len(blob.Hash{})); at >= 0 {
			e.state.Blob = blob.Hash(r.b[at : at+len(blob.Hash{})])
		}
		e.state.Size = e.sig.Size
		if head&entrySize != 0 {
			e.state.Size = int64(r.uint())
		}
	}
	isFolder := e.state.Kind == store.Dir || e.state.Kind == 0 && hasNode
	if e.state.Kind > store.Uncaptured || isFolder != hasNode || int(e.gap) >= len(gapReasons) || !isName(e.name) {
		r.bad = true
	}
	return hasNode
}

func (r *partReader) info(n *node) {
	head := r.uint()
	n.complete = head&nodeComplete != 0
	n.left = head&nodeLeft != 0
	n.gap = gap(head >> nodeGap)
	n.sig, n.rules, n.marked = Sig{}, nil, nil
	if head>>nodeGap >= uint64(len(gapReasons)) {
		r.bad = true
	}
	if head&nodeSig != 0 {
		r.sig(&n.sig)
	}
	if head&nodeRules != 0 {
		n.rules = &ruleFiles{}
		for i := range n.rules {
			f := &n.rules[i]
			f.bad = r.byte() != 0
			r.sig(&f.sig)
			f.text = r.text()
		}
	}
	if head&nodeMarked != 0 {
		n.marked = make([]string, r.length(1))
		for i := range n.marked {
			n.marked[i] = r.text()
		}
	}
}
