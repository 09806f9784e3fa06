// Package charset tells how the bytes of a file become text and the reverse: the nine kinds that
// the checkpoint files of the public program Reasonix number, detected as that program does.
package charset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Encoding is how a file's bytes become text in a checkpoint. The numbers are the format's.
type Encoding uint8

// The kinds of the format, in its own order.
const (
	UTF8       Encoding = 0 // the bytes as they are; the empty file too
	UTF8BOM    Encoding = 1
	UTF16LEBOM Encoding = 2
	UTF16BEBOM Encoding = 3
	GB18030    Encoding = 4 // also nearly everything that is no text at all
	Lossy      Encoding = 5 // the bytes as they are, although they are no UTF-8
	UTF16LE    Encoding = 6
	UTF16BE    Encoding = 7
	GBK        Encoding = 8 // what GB18030 would write back as other bytes and GBK would not
)

// window is how much of a file is looked at to tell UTF-16 without a mark, in bytes.
const window = 64 << 10

// Detect tells the kind of a content of size bytes: marks first, then UTF-16 by its zeros,
// then what decodes. At most a few kilobytes of it are held.
func Detect(r io.ReaderAt, size int64) (Encoding, error) {
	head := make([]byte, min(size, window))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("detect encoding: %w", err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return UTF8BOM, nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return UTF16LEBOM, nil
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return UTF16BEBOM, nil
	}
	if k, ok := wide(head); ok {
		return k, nil
	}
	switch ok, err := isUTF8(io.NewSectionReader(r, 0, size)); {
	case err != nil:
		return 0, fmt.Errorf("detect encoding: %w", err)
	case ok:
		return UTF8, nil
	}
	for _, k := range []Encoding{GB18030, GBK} {
		if roundTrips(r, size, k.charset()) {
			return k, nil
		}
	}
	// Its decoder puts U+FFFD where it cannot decode and so takes any bytes.
	return GB18030, nil
}

// wide tells UTF-16 without a mark: in text that is mostly of one script, one byte of each
// pair is often zero and the other hardly ever.
func wide(head []byte) (Encoding, bool) {
	n := len(head) &^ 1
	if n < 16 {
		return 0, false
	}
	even, odd := 0, 0
	for i := 0; i < n; i += 2 {
		if head[i] == 0 {
			even++
		}
		if head[i+1] == 0 {
			odd++
		}
	}
	half := n / 2
	switch {
	case odd*10 >= half*3 && even*20 <= half:
		return UTF16LE, true
	case even*10 >= half*3 && odd*20 <= half:
		return UTF16BE, true
	}
	return 0, false
}

func isUTF8(r io.Reader) (bool, error) {
	buf := make([]byte, 32<<10)
	kept := 0
	for {
		n, err := r.Read(buf[kept:])
		b := buf[:kept+n]
		for len(b) > 0 && (len(b) >= utf8.UTFMax || utf8.FullRune(b) || err != nil) {
			c, size := utf8.DecodeRune(b)
			if c == utf8.RuneError && size <= 1 {
				return false, nil
			}
			b = b[size:]
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buf, b)
	}
}

// roundTrips reports whether decoding and encoding again gives the same bytes.
func roundTrips(r io.ReaderAt, size int64, e encoding.Encoding) bool {
	again := transform.NewReader(transform.NewReader(io.NewSectionReader(r, 0, size), e.NewDecoder()), e.NewEncoder())
	same := io.NewSectionReader(r, 0, size)
	a, b := make([]byte, 8<<10), make([]byte, 8<<10)
	for {
		n, err := again.Read(a)
		if _, short := io.ReadFull(same, b[:n]); short != nil || !bytes.Equal(a[:n], b[:n]) {
			return false
		}
		if errors.Is(err, io.EOF) {
			_, rest := same.Read(b[:1])
			return errors.Is(rest, io.EOF)
		}
		if err != nil {
			return false // not encodable
		}
	}
}

func (e Encoding) charset() encoding.Encoding {
	switch e {
	case UTF16LEBOM, UTF16LE:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case UTF16BEBOM, UTF16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case GB18030:
		return simplifiedchinese.GB18030
	case GBK:
		return simplifiedchinese.GBK
	case UTF8, UTF8BOM, Lossy:
	}
	return encoding.Nop
}

// mark is the length of the byte order mark that the kind strips, in bytes.
func (e Encoding) mark() int64 {
	switch e {
	case UTF8BOM:
		return 3
	case UTF16LEBOM, UTF16BEBOM:
		return 2
	case UTF8, GB18030, Lossy, UTF16LE, UTF16BE, GBK:
	}
	return 0
}

// Text decodes a content of size bytes. What cannot be decoded becomes U+FFFD, and an odd last
// byte of UTF-16 is dropped: the text of such a file does not give its bytes back.
func (e Encoding) Text(r io.ReaderAt, size int64) io.Reader {
	from := min(e.mark(), size)
	length := size - from
	switch e {
	case UTF16LEBOM, UTF16BEBOM, UTF16LE, UTF16BE:
		length &^= 1
	case UTF8, UTF8BOM, GB18030, Lossy, GBK:
	}
	section := io.NewSectionReader(r, from, length)
	if c := e.charset(); c != encoding.Nop {
		return transform.NewReader(section, c.NewDecoder())
	}
	return section
}
