package blob

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The middle of a delta of long contents is made of copies from the base and of new bytes between
// them: that takes a tenth of the memory of a frame with a long dictionary, and of its time. As
// often as needed:
//
//	new bytes (uvarint), those bytes | copied bytes (uvarint) | distance (varint)
//
// The distance is from where the last copy ended, and the new bytes further, to where this one
// begins in the base.
const (
	copyStep = 8  // the base is indexed at every eighth byte, by eight bytes
	minCopy  = 24 // shorter copies take about as much as their bytes
)

// copier finds what raw has in common with base.
type copier struct {
	raw, base []byte
	index     []uint32 // a place in base, plus 1, by the hash of what is there
	shift     int      // of the hash

	// lags are how much further something lay in base than in raw: text that repeats itself is
	// found in many places, of which one goes on being the right one. The last one comes first.
	lags [4]int
}

// copied is a part of raw that base has too.
type copied struct{ start, end, lag int }

func newCopier(raw, base []byte, head int) *copier {
	size := bits.Len(uint(len(base)/copyStep)) + 1
	c := &copier{raw: raw, base: base, index: make([]uint32, 1<<size), shift: 64 - size}
	for i := 0; i+8 <= len(base); i += copyStep {
		c.index[c.hash(base[i:])] = uint32(i + 1)
	}
	c.lags = [4]int{head, head + len(base) - len(raw), head, head}
	return c
}

func (c *copier) hash(b []byte) uint64 {
	return binary.LittleEndian.Uint64(b) * 0x9e3779b97f4a7c15 >> c.shift
}

// at is the longest part with a place at raw[i] in it; none of it lies before from.
func (c *copier) at(i, from int) (best copied) {
	if i+8 > len(c.raw) {
		return best
	}
	try := func(lag int) {
		p := i + lag
		if p < 0 || p+8 > len(c.base) || binary.LittleEndian.Uint64(c.base[p:]) != binary.LittleEndian.Uint64(c.raw[i:]) {
			return
		}
		end := i + sharedHead(c.raw[i:], c.base[p:])
		start := i - sharedTail(c.raw[from:i], c.base[:p])
		if end-start > best.end-best.start {
			best = copied{start, end, lag}
		}
	}
	for _, lag := range c.lags {
		try(lag)
	}
	if p := int(c.index[c.hash(c.raw[i:])]) - 1; p >= 0 && best.end-best.start < 256 {
		try(p - i)
	}
	return best
}

// used remembers a lag.
func (c *copier) used(lag int) {
	for i := range c.lags {
		if c.lags[i] == lag || i == len(c.lags)-1 {
			copy(c.lags[1:i+1], c.lags[:i])
			c.lags[0] = lag
			return
		}
	}
}

// encodeCopies appends raw as copies of base, where its place is head. nil when it would be longer
// than limit.
func encodeCopies(d, raw, base []byte, head, limit int) []byte {
	c := newCopier(raw, base, head)
	from, place := 0, head // raw[:from] is done; where the last copy ended in base
	for i := 0; i < len(raw) && len(d)+i-from <= limit; i++ {
		part := c.at(i, from)
		if part.end-part.start < minCopy {
			continue
		}
		d = appendNew(d, raw[from:part.start])
		d = binary.AppendUvarint(d, uint64(part.end-part.start))
		d = binary.AppendVarint(d, int64(part.start+part.lag-(place+part.start-from)))
		from, place = part.end, part.end+part.lag
		i = from - 1
		c.used(part.lag)
	}
	if from < len(raw) {
		d = appendNew(d, raw[from:])
	}
	if len(d) > limit {
		return nil
	}
	return d
}

func appendNew(d, b []byte) []byte {
	return append(binary.AppendUvarint(d, uint64(len(b))), b...)
}

// decodeCopies fills to.
func decodeCopies(data, to, base []byte, head int) error {
	n, place := 0, head
	for n < len(to) {
		fresh, used := binary.Uvarint(data)
		if used <= 0 || fresh > uint64(len(to)-n) || fresh > uint64(len(data)-used) {
			return fmt.Errorf("new bytes at %d: %w", n, errDelta)
		}
		data = data[used:]
		copy(to[n:], data[:fresh])
		n, data, place = n+int(fresh), data[fresh:], place+int(fresh)
		if n == len(to) {
			break
		}
		length, used := binary.Uvarint(data)
		if used <= 0 || length == 0 || length > uint64(len(to)-n) {
			return fmt.Errorf("a copy at %d: %w", n, errDelta)
		}
		data = data[used:]
		far, used := binary.Varint(data)
		if used <= 0 || far < -ChunkSize || far > ChunkSize {
			return fmt.Errorf("the distance of a copy at %d: %w", n, errDelta)
		}
		data, place = data[used:], place+int(far)
		if place < 0 || place > len(base) || int(length) > len(base)-place {
			return fmt.Errorf("a copy at %d from outside of its base: %w", n, errDelta)
		}
		copy(to[n:], base[place:place+int(length)])
		n, place = n+int(length), place+int(length)
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes are left: %w", len(data), errDelta)
	}
	return nil
}
