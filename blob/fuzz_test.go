package blob

import (
	"bytes"
	"testing"
)

// FuzzDecode: whatever a row holds, decoding ends without a panic, takes no more memory than
// the row's size, and gives exactly that size or an error.
func FuzzDecode(f *testing.F) {
	text := bytes.Repeat([]byte("some text that compresses well. "), 20)
	enc, frame := encode(text)
	if enc != Zstd {
		f.Fatal("the text does not compress")
	}
	for _, e := range []Encoding{Raw, Zstd, ZstdDelta, Chunked} {
		f.Add(uint8(e), frame, len(text), text)
	}
	f.Add(uint8(Zstd), frame[:len(frame)/2], len(text), []byte(nil))
	f.Add(uint8(Zstd), append(bytes.Clone(frame), frame...), len(text), []byte(nil))
	f.Add(uint8(Zstd), []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 10, []byte(nil))
	f.Fuzz(func(t *testing.T, e uint8, data []byte, size int, base []byte) {
		size = min(max(size, 0), ChunkSize)
		got, err := decode(Encoding(e), data, size, base)
		if err != nil {
			return
		}
		if len(got) != size {
			t.Fatalf("%d bytes where %d are needed", len(got), size)
		}
		again, packed := encode(got)
		back, err := decode(again, packed, size, nil)
		if err != nil || !bytes.Equal(back, got) {
			t.Fatalf("what was decoded does not survive encoding: %v", err)
		}
	})
}
