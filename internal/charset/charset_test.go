package charset_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"

	"reasonix/internal/charset"
)

func decode(t testing.TB, b []byte) (charset.Encoding, string) {
	t.Helper()
	r := bytes.NewReader(b)
	k, err := charset.Detect(r, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(k.Text(r, int64(len(b))))
	if err != nil {
		t.Fatal(err)
	}
	return k, string(text)
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		in   string
		kind charset.Encoding
		text string
	}{
		{"", charset.UTF8, ""},
		{"a\x00b", charset.UTF8, "a\x00b"},
		{"héllo\r\n", charset.UTF8, "héllo\r\n"},
		{"\xef\xbb\xbfa", charset.UTF8BOM, "a"},
		{"\xff\xfea\x00", charset.UTF16LEBOM, "a"},
		{"\xff\xfea\x00b", charset.UTF16LEBOM, "a"}, // the odd byte is dropped
		{"\xfe\xff\x00a", charset.UTF16BEBOM, "a"},
		{"\xfe\xff\xd8\x00", charset.UTF16BEBOM, "\ufffd"}, // a lone surrogate
		{strings.Repeat("a\x00", 8), charset.UTF16LE, "aaaaaaaa"},
		{strings.Repeat("\x00a", 8), charset.UTF16BE, "aaaaaaaa"},
		{strings.Repeat("a\x00", 7), charset.UTF8, strings.Repeat("a\x00", 7)}, // too short to tell
		{"\xb5\xda\xd2\xbb", charset.GB18030, "第一"},
		{"\x80abc", charset.GBK, "€abc"},
		{"\xff\x00\xfe\x80\x81\xff\n", charset.GB18030, "\ufffd\x00䜣\ufffd\ufffd\n"},
		{strings.Repeat("é", 40_000) + "\xff", charset.GB18030, ""},
	} {
		kind, text := decode(t, []byte(c.in))
		if kind != c.kind || c.text != "" && text != c.text {
			t.Errorf("%.20q is of kind %d, text %.20q; want %d, %.20q", c.in, kind, text, c.kind, c.text)
		}
	}
}

// What the kinds decode without loss, encodes to the same bytes again.
func FuzzDetect(f *testing.F) {
	for _, s := range []string{"", "a", "\xef\xbb\xbfx", "\xff\xfea\x00", "\xfe\xff\x00a", "\xb5\xda", "\x80", "\xff\x00\xfe", strings.Repeat("a\x00", 9), strings.Repeat("\x00a", 9)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, text := decode(t, b)
		if strings.Contains(text, "\ufffd") && kind != charset.UTF8 {
			return // lossy, or cannot be told from it
		}
		var back []byte
		switch kind {
		case charset.UTF8:
			back = []byte(text)
		case charset.UTF8BOM:
			if !utf8.ValidString(text) {
				return
			}
			back = []byte("\xef\xbb\xbf" + text)
		case charset.UTF16LEBOM, charset.UTF16BEBOM, charset.UTF16LE, charset.UTF16BE:
			if len(b)%2 != 0 {
				return
			}
			back = wide(text, kind)
		case charset.GB18030:
			var err error
			if back, err = simplifiedchinese.GB18030.NewEncoder().Bytes([]byte(text)); err != nil || !bytes.Equal(back, b) {
				return // binary
			}
		case charset.GBK:
			back, _ = simplifiedchinese.GBK.NewEncoder().Bytes([]byte(text))
		case charset.Lossy:
			t.Fatalf("%q is lossy", b)
		}
		if !bytes.Equal(back, b) {
			t.Errorf("kind %d: %q became %q", kind, b, back)
		}
	})
}

func wide(text string, kind charset.Encoding) []byte {
	var b []byte
	units := utf16.Encode([]rune(text))
	if kind == charset.UTF16LEBOM || kind == charset.UTF16BEBOM {
		units = append([]uint16{0xfeff}, units...)
	}
	for _, u := range units {
		if kind == charset.UTF16LEBOM || kind == charset.UTF16LE {
			b = append(b, byte(u), byte(u>>8))
		} else {
			b = append(b, byte(u>>8), byte(u))
		}
	}
	return b
}
