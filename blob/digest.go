package blob

import (
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/blake3"
)

// digester is a hasher with the buffer that feeds it: together they are larger than most files.
type digester struct {
	hash *blake3.Hasher
	buf  [64 << 10]byte
}

var digesters = sync.Pool{New: func() any { return &digester{hash: blake3.New()} }}

// Digest reads r to its end and only names the content: for plans, which store nothing. Bind
// refuses the result with ErrGone.
func Digest(r io.Reader) (*Prepared, error) {
	d := digesters.Get().(*digester)
	defer digesters.Put(d)
	d.hash.Reset()
	n, err := io.CopyBuffer(d.hash, struct{ io.Reader }{r}, d.buf[:]) // hides WriteTo, which would not use buf
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	p := &Prepared{piece: piece{size: n}, digest: true}
	d.hash.Sum(p.hash[:0])
	return p, nil
}
