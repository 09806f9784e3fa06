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
// that is not shared, with nearBase bytes on either side, or, when both are long, copies of the
// base and what is new, which may lie in a zstd frame by itself. Most edits are in one place: they
// cost their new bytes and the time of two comparisons. A delta that begins like a zstd frame is
// one whose dictionary is the whole base.
const (
	middleRaw    = 1
	middleFrame  = 2
	middleCopies = 3
	packedCopies = 4 // their length (uvarint) and a frame of them

	// maxDict bounds a frame and its dictionary together, in bytes. What is longer is copied.
	maxDict = 128 << 10

	nearBase  = 16 << 10
	minShared = 32 // with less, the frame against the whole base is no longer

	// dictID is the number under which a frame names its dictionary.
	dictID = 1
)

var (
	frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	errDelta   = errors.New("it is no delta of its base")
)

// deltaCoder are the encoders for deltas: with a dictionary and without.
type deltaCoder struct{ against, alone *sync.Pool }

var (
	quickDeltas = deltaCoder{smallDeltas, smallEncoders}
	bestDeltas  = deltaCoder{pool(zstd.SpeedBetterCompression, maxDict), bestFrames}
)

// encodeDelta returns raw as a delta of base, or nil when that takes more than limit bytes. Both are
// at most ChunkSize long.
func encodeDelta(by deltaCoder, raw, base []byte, limit int) []byte {
	if len(raw) < minFrame || len(base) < minFrame {
		return nil
	}
	head := sharedHead(raw, base)
	tail := sharedTail(raw[head:], base[head:])
	var d []byte
	if head+tail < minShared && len(raw)+len(base) <= maxDict {
		d = by.frame(nil, raw, base, limit)
	} else {
		d = by.middle(raw, base, head, tail, limit)
	}
	// What hangs on another row is read back before it is trusted: it costs a tenth of the encoding.
	if d == nil || len(d) > limit {
		return nil
	}
	if back, err := decodeDelta(d, make([]byte, len(raw)), base); err != nil || !bytes.Equal(back, raw) {
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
		best := len(d) + min(limit, len(middle)-1)
		if dict := near(base, head, tail); len(dict)+len(middle) <= maxDict {
			d[0] = middleFrame
			if whole := by.frame(d, middle, dict, best); whole != nil {
				return whole
			}
		} else if whole := by.copies(d, middle, base, head, best); whole != nil {
			return whole
		}
	}
	d[0] = middleRaw
	return append(d, middle...)
}

// frame appends a frame of raw against dict to d; nil when the result is longer than limit.
func (by deltaCoder) frame(d, raw, dict []byte, limit int) []byte {
	e := by.against.Get().(*encoder)
	defer by.against.Put(e)
	if err := e.ResetWithOptions(nil, zstd.WithEncoderDictRaw(dictID, dict)); err != nil {
		return nil
	}
	e.frame = e.EncodeAll(raw, e.frame[:0])
	if len(d)+len(e.frame) > limit {
		return nil
	}
	return append(d, e.frame...)
}

// copies appends raw as copies of base to d.
func (by deltaCoder) copies(d, raw, base []byte, head, limit int) []byte {
	// What is in a frame may be longer.
	ops := encodeCopies(nil, raw, base, head, 4*limit)
	if ops == nil {
		return nil
	}
	kind := byte(middleCopies)
	if enc, packed := encodeWith(by.alone, ops); enc == Zstd && len(packed)+4 < len(ops) {
		kind, ops = packedCopies, append(binary.AppendUvarint(nil, uint64(len(ops))), packed...)
	}
	if len(d)+len(ops) > limit {
		return nil
	}
	d[0] = kind
	return append(d, ops...)
}

// unpackCopies undoes packedCopies. What is unpacked is never longer than it could be with the
// content it stands for.
func unpackCopies(data []byte) ([]byte, error) {
	n, used := binary.Uvarint(data)
	if used <= 0 || n > 4*ChunkSize {
		return nil, errDelta
	}
	return decode(Zstd, data[used:], int(n), nil)
}

// decodeDelta fills to with what data stands for. What it returns may lie elsewhere.
func decodeDelta(data, to, base []byte) ([]byte, error) {
	size := len(to)
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
	case kind == middleCopies:
		return to, decodeCopies(middle, hole, base, head)
	case kind == packedCopies:
		ops, err := unpackCopies(middle)
		if err != nil {
			return nil, err
		}
		return to, decodeCopies(ops, hole, base, head)
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
