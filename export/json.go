package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"unicode/utf8"
)

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

// writeString writes text as a JSON string, escaped as encoding/json escapes it, without
// holding it. Bytes that are no UTF-8 become U+FFFD.
func writeString(w *bufio.Writer, text io.Reader) error {
	const hex = "0123456789abcdef"
	r := readers.Get().(*bufio.Reader)
	defer readers.Put(r)
	r.Reset(text)
	_ = w.WriteByte('"') // an error of w stays and is returned by Flush
	for {
		c, size, err := r.ReadRune()
		if errors.Is(err, io.EOF) {
			return w.WriteByte('"')
		}
		if err != nil {
			return err
		}
		switch {
		case c == '"' || c == '\\':
			_, err = w.Write([]byte{'\\', byte(c)})
		case c == '\n':
			_, err = w.WriteString(`\n`)
		case c == '\r':
			_, err = w.WriteString(`\r`)
		case c == '\t':
			_, err = w.WriteString(`\t`)
		case c == '\b':
			_, err = w.WriteString(`\b`)
		case c == '\f':
			_, err = w.WriteString(`\f`)
		case c < 0x20 || c == '<' || c == '>' || c == '&':
			_, err = w.Write([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
		case c == '\u2028' || c == '\u2029':
			_, err = w.WriteString(`\u202` + string(hex[c&15]))
		case c == utf8.RuneError && size == 1:
			_, err = w.WriteString(`\ufffd`)
		default:
			_, err = w.WriteRune(c)
		}
		if err != nil {
			return err
		}
	}
}

// writeFields writes the fields of a struct, without the braces, so that one object can be
// written in parts. v must not marshal to an empty object.
func writeFields(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(b[1 : len(b)-1])
	return err
}
