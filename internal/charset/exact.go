package charset

import (
	"io"

	"golang.org/x/text/encoding"
)

// Exact reports whether the text of a content of size bytes, written again in its encoding, gives
// the same bytes: of what is no text at all it does not.
func (e Encoding) Exact(r io.ReaderAt, size int64) (bool, error) {
	from := min(e.mark(), size)
	section := io.NewSectionReader(r, from, size-from)
	if c := e.charset(); c != encoding.Nop {
		return roundTrips(section, size-from, c), nil
	}
	return isUTF8(section)
}
