package charset

import (
	"strings"
	"testing"
)

func TestExactOfEachKind(t *testing.T) {
	for _, c := range []struct {
		name, content string
		kind          Encoding
		exact         bool
	}{
		{"empty", "", UTF8, true},
		{"text", "one\r\nzwei\x00 dré", UTF8, true},
		{"mark", "\xef\xbb\xbfone", UTF8BOM, true},
		{"mark, then no UTF-8", "\xef\xbb\xbfo\xffe", UTF8BOM, false},
		{"little endian", "\xff\xfeh\x00i\x00", UTF16LEBOM, true},
		{"little endian, odd", "\xff\xfeh\x00i", UTF16LEBOM, false},
		{"big endian, lone surrogate", "\xfe\xff\xd8\x00\x00h", UTF16BEBOM, false},
		{"without a mark", strings.Repeat("h\x00", 20), UTF16LE, true},
		{"without a mark, big endian", strings.Repeat("\x00h", 20), UTF16BE, true},
		{"chinese", "\xb5\xda\xd2\xbb\xd0\xd0\r\n", GB18030, true},
		{"noise", "\xff\x00\xfe\x80\x81\xff\n", GB18030, false},
		{"euro", "\x80abc", GBK, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := strings.NewReader(c.content)
			kind, err := Detect(r, r.Size())
			if err != nil || kind != c.kind {
				t.Fatalf("kind %d, %v", kind, err)
			}
			if exact, err := kind.Exact(r, r.Size()); err != nil || exact != c.exact {
				t.Errorf("exact %v, %v", exact, err)
			}
		})
	}
}
