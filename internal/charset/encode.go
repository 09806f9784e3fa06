package charset

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// ErrEncode is returned when a text has something that the bytes of a kind cannot say.
var ErrEncode = errors.New("the text cannot be written in this encoding")

// Known reports whether e is one of the kinds.
func (e Encoding) Known() bool { return e <= GBK }

// Encode is the reverse of Text: the bytes of a file of kind e that holds text, with the mark of the
// kind. ErrEncode when they cannot say all of it.
func (e Encoding) Encode(text string) ([]byte, error) {
	if !e.Known() {
		return nil, fmt.Errorf("encoding %d: %w", e, ErrEncode)
	}
	c := e.charset()
	out := append([]byte{}, e.bytesOfMark()...)
	if c == encoding.Nop {
		return append(out, text...), nil
	}
	if !utf8.ValidString(text) {
		return nil, ErrEncode
	}
	b, err := c.NewEncoder().Bytes([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEncode, err)
	}
	// What could not be decoded became U+FFFD, which GB18030 can write: as other bytes.
	back, err := c.NewDecoder().Bytes(b)
	if err != nil || string(back) != text {
		return nil, ErrEncode
	}
	return append(out, b...), nil
}

func (e Encoding) bytesOfMark() string {
	switch e {
	case UTF8BOM:
		return "\xef\xbb\xbf"
	case UTF16LEBOM:
		return "\xff\xfe"
	case UTF16BEBOM:
		return "\xfe\xff"
	case UTF8, GB18030, Lossy, UTF16LE, UTF16BE, GBK:
	}
	return ""
}
