package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A delta holds a content as what it shares with the beginning and the end of its base, and what
// lies between:
//
//	kind (1 byte) | shared bytes at the beginning (uvarint) | at the end (uvarint) | middle
//
// The middle is the bytes themselves, or a zstd frame whose raw dictionary is that part of the base
// that is not shared, with nearBase bytes on either side. Most edits are in one place: they
// cost their new bytes, take no time but that of two comparisons, and a frame could do it worse in a
// text that repeats itself. A delta that begins like a zstd frame is one whose dictionary is
// the whole base.
const (
	middleRaw   = 1
	middleFrame = 2

	nearBase  = 16 << 10
	minShared = 32 // with less, the frame against the whole base is no longer

	// dictID is the number under which a frame names its dictionary.
	dictID = 1
)

var (
	frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	errDelta   = errors.New("it is no delta of its base")
)

// deltaCoder are the encoders for deltas, by how much they look at.
type deltaCoder struct{ small, large *sync.Pool }

var quickDeltas = deltaCoder{smallDeltas, largeDeltas}

// encodeDelta returns raw as a delta of base, or nil when that takes more than limit bytes. Both are
// at most ChunkSize long.
func encodeDelta(by deltaCoder, raw, base []byte, limit int) []byte {
	if len(raw) < minFrame || len(base) < minFrame {
		return nil
	}
	head := sharedHead(raw, base)
	tail := sharedTail(raw[head:], base[head:])
	var d []byte
	if head+tail < minShared {
		d = by.frame(nil, raw, base, limit)
	} else {
		d = by.middle(raw, base, head, tail, limit)
	}
	// What hangs on another row is read back before it is trusted: it costs a tenth of the encoding.
	if d == nil || len(d) > limit {
		return nil
	}
	if back, err := decodeDelta(d, len(raw), base); err != nil || !bytes.Equal(back, raw) {
		return nil
	}
	return bytes.Clone(d)
}

func (by deltaCoder) middle(raw, base []byte, head, tail, limit int) []byte {
	middle := raw[head : len(raw)-tail]
	d := make([]byte, 1, 32+min(len(middle), limit))
	d = binary.AppendUvarint(d, uint64(head))
	d = binary.AppendUvarint(d, uint64(tail))
	if len(middle) >= minFrame {
		d[0] = middleFrame
		whole := by.frame(d, middle, near(base, head, tail), len(d)+min(limit, len(middle)-1))
		if whole != nil {
			return whole
		}
	}
	d[0] = middleRaw
	return append(d, middle...)
}

// frame appends a frame of raw against dict to d; nil when the result is longer than limit.
func (by deltaCoder) frame(d, raw, dict []byte, limit int) []byte {
	from := by.small
	if len(raw)+len(dict) > smallWindow {
		from = by.large
	}
	e := from.Get().(*encoder)
	defer from.Put(e)
	if err := e.ResetWithOptions(nil, zstd.WithEncoderDictRaw(dictID, dict)); err != nil {
		return nil
	}
	e.frame = e.EncodeAll(raw, e.frame[:0])
	if len(d)+len(e.frame) > limit {
		return nil
	}
	return append(d, e.frame...)
}

// decodeDelta is decode of a delta.
func decodeDelta(data []byte, size int, base []byte) ([]byte, error) {
	to := make([]byte, max(size, 1))[:size]
	if bytes.HasPrefix(data, frameMagic) {
		return decodeAgainst(data, to, base)
	}
	kind, head, tail, middle, err := parseDelta(data)
	if err != nil {
		return nil, err
	}
	if shared := min(size, len(base)); head > shared || tail > shared-head {
		return nil, fmt.Errorf("%d and %d shared bytes of %d: %w", head, tail, shared, errDelta)
	}
	copy(to, base[:head])
	copy(to[size-tail:], base[len(base)-tail:])
	hole := to[head : size-tail : size-tail]
	switch {
	case kind == middleRaw && len(middle) == len(hole):
		copy(hole, middle)
		return to, nil
	case kind == middleFrame && len(hole) > 0:
		got, err := decodeAgainst(middle, hole, near(base, head, tail))
		if err != nil {
			return nil, err
		}
		copy(hole, got)
		return to, nil
	}
	return nil, fmt.Errorf("%d bytes for %d: %w", len(middle), len(hole), errDelta)
}

func parseDelta(data []byte) (kind byte, head, tail int, middle []byte, err error) {
	if len(data) == 0 {
		return 0, 0, 0, nil, errDelta
	}
	kind, middle = data[0], data[1:]
	for _, n := range []*int{&head, &tail} {
		v, used := binary.Uvarint(middle)
		if used <= 0 || v > ChunkSize {
			return 0, 0, 0, nil, errDelta
		}
		*n, middle = int(v), middle[used:]
	}
	return kind, head, tail, middle, nil
}

// decodeAgainst fills to from a frame whose dictionary is dict. What it returns may lie elsewhere.
func decodeAgainst(frame, to, dict []byte) ([]byte, error) {
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	if err := d.ResetWithOptions(nil, zstd.WithDecoderDictRaw(dictID, dict)); err != nil {
		return nil, err
	}
	raw, err := decodeInto(d, frame, to)
	// The pool must not keep dict alive, nor let a later frame refer to it.
	return raw, errors.Join(err, d.ResetWithOptions(nil, zstd.WithDecoderDictDelete(dictID)))
}

// near is the dictionary for the middle of a delta.
func near(base []byte, head, tail int) []byte {
	return base[max(0, head-nearBase):min(len(base), len(base)-tail+nearBase)]
}

func sharedHead(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]); i += 8 {
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func sharedTail(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n && binary.LittleEndian.Uint64(a[len(a)-i-8:]) == binary.LittleEndian.Uint64(b[len(b)-i-8:]); i += 8 {
	}
	for i < n && a[len(a)-i-1] == b[len(b)-i-1] {
		i++
	}
	return i
}
