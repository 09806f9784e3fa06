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

	// dictID is the number under which a frame names its base.
	dictID = 1
)

// Encoders and decoders are made at their first use: most commands need neither.
var (
	encoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(
			nil,
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(ChunkSize),
			zstd.WithEncoderCRC(false), // the hash says more
		)
		if err != nil {
			panic(err) // the options are constants
		}
		return &encoder{Encoder: e}
	}}
	decoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, decoderOptions()...)
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	}}
)

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
	if len(raw) < minFrame {
		return Raw, raw
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
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
		d := decoders.Get().(*zstd.Decoder)
		defer decoders.Put(d)
		if err := d.ResetWithOptions(nil, zstd.WithDecoderDictRaw(dictID, base)); err != nil {
			return nil, err
		}
		raw, err := decodeFrame(d, data, size)
		// The pool must not keep base alive, nor let a later frame refer to it.
		return raw, errors.Join(err, d.ResetWithOptions(nil, zstd.WithDecoderDictDelete(dictID)))
	case Chunked:
	}
	return nil, errors.New("it has no bytes of its own")
}

func decodeFrame(d *zstd.Decoder, data []byte, size int) ([]byte, error) {
	// The limit of the decoder is the capacity; with none at all it would take any size.
	raw, err := d.DecodeAll(data, make([]byte, 0, max(size, 1)))
	if err != nil {
		return nil, err
	}
	if len(raw) != size {
		return nil, fmt.Errorf("a frame of %d bytes where %d are needed", len(raw), size)
	}
	return raw, nil
}
