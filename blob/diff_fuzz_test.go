package blob

import (
	"bytes"
	"testing"
)

// FuzzDelta: whatever a delta and its base are, decoding ends without a panic and gives the size that
// was asked for or an error; and what is encoded against a base comes back.
func FuzzDelta(f *testing.F) {
	text := bytes.Repeat([]byte("some text that compresses well, again and again. "), 40)
	other := append(bytes.Clone(text[:900]), "and something else entirely"...)
	f.Add(encodeDelta(quickDeltas, other, text, len(other)), text, len(other))
	f.Add([]byte{middleRaw, 3, 2, 'x'}, []byte("abcdefgh"), 6)
	f.Add([]byte{middleCopies, 0, 0, 1, 'x', 4, 0}, []byte("abcdefgh"), 5)
	f.Add([]byte{middleCopies, 2, 2, 0, 4, 1}, []byte("abcdefgh"), 8)
	f.Add([]byte{packedCopies, 0, 0, 0xff, 0xff, 0xff, 1}, text, 9)
	f.Add([]byte{middleFrame, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}, text, 9)
	f.Add(append([]byte{middleFrame, 9, 9}, frameMagic...), text, 100)
	f.Add(text, other, 200)
	f.Fuzz(func(t *testing.T, data, base []byte, size int) {
		size = min(max(size, 0), ChunkSize)
		base = base[:min(len(base), ChunkSize)]
		if got, err := decode(ZstdDelta, data, size, base); err == nil && len(got) != size {
			t.Fatalf("%d bytes where %d are needed", len(got), size)
		}
		data = data[:min(len(data), ChunkSize)]
		if d := encodeDelta(quickDeltas, data, base, len(data)); d != nil {
			if back, err := decode(ZstdDelta, d, len(data), base); err != nil || !bytes.Equal(back, data) {
				t.Fatalf("a delta does not come back: %v", err)
			}
		}
		if d := encodeCopies(nil, data, base, 0, len(data)+10); d != nil {
			back := make([]byte, len(data))
			if err := decodeCopies(d, back, base, 0); err != nil || !bytes.Equal(back, data) {
				t.Fatalf("copies do not come back: %v", err)
			}
		}
	})
}
