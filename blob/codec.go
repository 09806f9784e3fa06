package blob

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// minFrame is the length under which a frame's own bytes eat up what it saves.
	minFrame = 64

	// maxWindow bounds what a frame may make the decoder look back; our own frames need
	// ChunkSize, deltas that and their base.
	maxWindow = 8 * ChunkSize

	// A frame is made by the encoder with the smallest window that holds it and its base: a new
	// encoder of the smaller costs a fifth of the larger one's time, which short processes feel.
	smallWindow = 256 << 10
)

// Encoders and decoders are made at their first use: most commands need neither. One that takes
// bases is set up differently from one that does not, so they are apart.
var (
	smallEncoders = pool(zstd.SpeedFastest, smallWindow)
	largeEncoders = pool(zstd.SpeedFastest, ChunkSize)
	smallDeltas   = pool(zstd.SpeedFastest, maxDict)

	// For what is stored anew at leisure.
	bestFrames = pool(zstd.SpeedBestCompression, ChunkSize)

	// largeSlots bounds the large encoders at work: each takes 4 MiB.
	largeSlots = make(chan struct{}, 2)

	decoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, decoderOptions()...)
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	}}
)

func pool(level zstd.EncoderLevel, window int) *sync.Pool {
	return &sync.Pool{New: func() any {
		e, err := zstd.NewWriter(
			nil,
			zstd.WithEncoderLevel(level),
			zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(window),
			zstd.WithEncoderCRC(false), // the hash says more
			zstd.WithAllLitEntropyCompression(true),
		)
		if err != nil {
			panic(err) // the options are constants
		}
		return &encoder{Encoder: e}
	}}
}

// encoder keeps the memory that frames are made in: most frames of long contents that do not
// compress would be garbage of a chunk's size each.
type encoder struct {
	*zstd.Encoder
	frame []byte
}

func decoderOptions() []zstd.DOption {
	return []zstd.DOption{
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxWindow(maxWindow),
	}
}

// encode returns the shortest way to hold raw by itself. The result may be raw's own memory.
func encode(raw []byte) (Encoding, []byte) {
	if len(raw) <= smallWindow {
		return encodeWith(smallEncoders, raw)
	}
	largeSlots <- struct{}{}
	defer func() { <-largeSlots }()
	return encodeWith(largeEncoders, raw)
}

func encodeWith(from *sync.Pool, raw []byte) (Encoding, []byte) {
	if len(raw) < minFrame {
		return Raw, raw
	}
	e := from.Get().(*encoder)
	defer from.Put(e)
	e.frame = e.EncodeAll(raw, e.frame[:0])
	if len(e.frame) >= len(raw) {
		return Raw, raw
	}
	return Zstd, bytes.Clone(e.frame)
}

// decode returns the size bytes that data stands for. base is the dictionary of a delta. It
// allocates size bytes and no more, whatever data says of itself; size is at most ChunkSize.
func decode(enc Encoding, data []byte, size int, base []byte) ([]byte, error) {
	switch enc {
	case Raw:
		if len(data) != size {
			return nil, fmt.Errorf("%d bytes where %d are needed", len(data), size)
		}
		return data, nil
	case Zstd:
		d := decoders.Get().(*zstd.Decoder)
		defer decoders.Put(d)
		return decodeFrame(d, data, size)
	case ZstdDelta:
		return decodeDelta(data, make([]byte, size+1)[:size], base)
	case Chunked:
	}
	return nil, errors.New("it has no bytes of its own")
}

func decodeFrame(d *zstd.Decoder, data []byte, size int) ([]byte, error) {
	// The limit of the decoder is the capacity; with none at all it would take any size.
	return decodeInto(d, data, make([]byte, max(size, 1))[:size])
}

// decodeInto fills to.
func decodeInto(d *zstd.Decoder, data, to []byte) ([]byte, error) {
	raw, err := d.DecodeAll(data, to[:0])
	if err != nil {
		return nil, err
	}
	if len(raw) != len(to) {
		return nil, fmt.Errorf("a frame of %d bytes where %d are needed", len(raw), len(to))
	}
	return raw, nil
}
