package blob

// Contents of more than ChunkSize are cut where their bytes say so, so that an insertion moves the
// cuts behind it along and all other chunks stay what they were: a rolling sum over the last 64
// bytes (gear hashing, as in FastCDC) ends a chunk where its upper bits are zero. The bytes before
// minChunk are not looked at, so cutting costs a fraction of hashing.
//
// Where chunks are cut decides only what is found again, never whether a content can be read.
const (
	minChunk = ChunkSize / 2

	// cutBits makes a cut after 128 KiB on average: chunks are 640 KiB long on average, and one in
	// fifty is ended by ChunkSize.
	cutBits = 17
)

// gear is a random number for each byte. It must not change: contents are found again by their cuts.
var gear = func() (g [256]uint64) {
	x := uint64(0x9e3779b97f4a7c15)
	for i := range g {
		x = x*6364136223846793005 + 1442695040888963407
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		g[i] = z ^ z>>31
	}
	return g
}()

// cut is the length of the first chunk of b, of which there is at least a byte. b is the rest of the
// content or at least ChunkSize long.
func cut(b []byte) int {
	b = b[:min(len(b), ChunkSize)]
	if len(b) <= minChunk {
		return len(b)
	}
	sum := uint64(0)
	for _, c := range b[minChunk-64 : minChunk] {
		sum = sum<<1 + gear[c]
	}
	for i, c := range b[minChunk:] {
		if sum>>(64-cutBits) == 0 {
			return minChunk + i
		}
		sum = sum<<1 + gear[c]
	}
	return len(b)
}
