package blob

import (
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/blake3"
)

var digestBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// Digest reads r to its end and only names the content: for plans, which store nothing. Bind
// refuses the result with ErrGone.
func Digest(r io.Reader) (*Prepared, error) {
	h := blake3.New()
	buf := digestBuffers.Get().(*[]byte)
	defer digestBuffers.Put(buf)
	n, err := io.CopyBuffer(h, struct{ io.Reader }{r}, *buf) // hides WriteTo, which would not use buf
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	p := &Prepared{size: n, digest: true}
	h.Sum(p.hash[:0])
	return p, nil
}
