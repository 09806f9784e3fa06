package workspace

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/blake3"
)

// A part is
//
//	magic, kind, flags, link, body, checksum
//
// The link of a tree (a whole index) is where that index stands in the chain of parts; the link
// of changes is what they follow on, zero when they begin from nothing. Where a part ends is its checksum:
// so a part that is missing, twice there, or of another scan does not pass.
const (
	partMagic    = "rxi\x01"
	partTree     = 1
	partChanges  = 2
	partComplete = 1 // flag: the scan came to its end
	partMixed    = 2 // flag: it did not, and found other rules than those of its base
	partHead     = len(partMagic) + 2 + len(link{})
)

// link names a state of an index.
type link [16]byte

// The changes of a part, each of the folder that was named last.
const (
	opFolder = 1 // path
	opInfo   = 2 // all about the folder but its entries
	opPut    = 3 // an entry
	opRemove = 4 // the name of an entry
	opPin    = 5 // a recorded path
)

// Bits of an entry, above its kind (3 bits) and its mode (9 bits).
const (
	entryMode = 3
	entrySig  = 1 << 12
	entryNode = 1 << 13
	entrySize = 1 << 14 // the state's size is not that of the signature
	entryGap  = 16      // 4 bits
)

// Bits of a signature, above its kind (3 bits) and its mode (9 bits).
const (
	sigMode   = 3
	sigRacy   = 1 << 12
	sigDevice = 1 << 13 // another device than that of the signature before
)

// Bits of a node.
const (
	nodeComplete = 1 << iota
	nodeLeft
	nodeSig
	nodeRules
	nodeMarked
	nodeGap = 5 // 4 bits from here
)

// partWriter appends to a part. Its methods are those of partReader.
type partWriter struct {
	b      []byte
	device uint64
}

func newPart(kind byte, at link) *partWriter {
	w := &partWriter{}
	w.b = append(w.b, partMagic...)
	w.b = append(w.b, kind, 0)
	w.b = append(w.b, at[:]...)
	return w
}

// seal ends the part and returns it, and where it ends.
func (w *partWriter) seal(complete, mixed bool) ([]byte, link) {
	if complete {
		w.b[len(partMagic)+1] |= partComplete
	}
	if mixed {
		w.b[len(partMagic)+1] |= partMixed
	}
	sum := checksum(w.b)
	return append(w.b, sum[:]...), sum
}

func checksum(b []byte) link {
	sum := blake3.Sum256(b)
	return link(sum[:len(link{})])
}

func (w *partWriter) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *partWriter) text(s string) { w.uint(uint64(len(s))); w.b = append(w.b, s...) }

func (w *partWriter) sig(s Sig) {
	head := uint16(s.Kind) | uint16(s.Mode)<<sigMode
	if s.Racy {
		head |= sigRacy
	}
	if s.Device != w.device {
		head |= sigDevice
	}
	w.b = binary.LittleEndian.AppendUint16(w.b, head)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(s.MTime))
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(s.CTime))
	w.b = binary.LittleEndian.AppendUint64(w.b, s.Inode)
	w.uint(uint64(s.Size))
	if s.Device != w.device {
		w.b = binary.LittleEndian.AppendUint64(w.b, s.Device)
		w.device = s.Device
	}
}

func (w *partWriter) entry(e *entry) {
	head := uint32(e.state.Kind) | e.state.Mode<<entryMode | uint32(e.gap)<<entryGap
	if e.sig != (Sig{}) {
		head |= entrySig
	}
	if e.node != nil {
		head |= entryNode
	}
	hasSize := e.state.Size != e.sig.Size && e.state.HasContent()
	if hasSize {
		head |= entrySize
	}
	w.b = binary.LittleEndian.AppendUint32(w.b, head)
	w.b = append(w.b, byte(len(e.name)))
	w.b = append(w.b, e.name...)
	if e.sig != (Sig{}) {
		w.sig(e.sig)
	}
	if e.state.HasContent() {
		w.b = append(w.b, e.state.Blob[:]...)
	}
	if hasSize {
		w.uint(uint64(e.state.Size))
	}
}

func (w *partWriter) info(n *node) {
	head := uint32(n.gap) << nodeGap
	for _, f := range []struct {
		bit uint32
		set bool
	}{
		{nodeComplete, n.complete},
		{nodeLeft, n.left},
		{nodeSig, n.sig != (Sig{})},
		{nodeRules, n.rules != nil},
		{nodeMarked, len(n.marked) > 0},
	} {
		if f.set {
			head |= f.bit
		}
	}
	w.uint(uint64(head))
	if n.sig != (Sig{}) {
		w.sig(n.sig)
	}
	if n.rules != nil {
		for i := range n.rules {
			f := &n.rules[i]
			bad := byte(0)
			if f.bad {
				bad = 1
			}
			w.b = append(w.b, bad)
			w.sig(f.sig)
			w.text(f.text)
		}
	}
	if len(n.marked) > 0 {
		w.uint(uint64(len(n.marked)))
		for _, name := range n.marked {
			w.text(name)
		}
	}
}

// tree writes n and all below it.
func (w *partWriter) tree(n *node) {
	w.info(n)
	w.uint(uint64(len(n.entries)))
	for i := range n.entries {
		w.entry(&n.entries[i])
	}
	for i := range n.entries {
		if child := n.entries[i].node; child != nil {
			w.tree(child)
		}
	}
}

// Encode returns the whole index as one full part, which the parts of later scans may follow,
// just as they may follow the parts that x was made of.
func (x *Index) Encode() []byte {
	w := newPart(partTree, x.link)
	w.b = slices.Grow(w.b, 96*x.n)
	pinned := slices.Sorted(x.pins.all("."))
	w.uint(uint64(len(pinned)))
	for _, p := range pinned {
		w.text(string(p))
	}
	nodes, entries := 0, 0
	x.root.sizes(&nodes, &entries)
	w.uint(uint64(nodes))
	w.uint(uint64(entries))
	w.tree(x.root)
	part, _ := w.seal(x.complete, x.mixed)
	return part
}

// IsWhole reports whether a part is one that Encode made: those that scans emit hold changes, also
// the first ones, and take longer to read.
func IsWhole(part []byte) bool { return len(part) > len(partMagic) && part[len(partMagic)] == partTree }

func (n *node) sizes(nodes, entries *int) {
	*nodes++
	*entries += len(n.entries)
	for i := range n.entries {
		if child := n.entries[i].node; child != nil {
			child.sizes(nodes, entries)
		}
	}
}
