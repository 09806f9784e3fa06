package charset_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"reasonix/internal/charset"
)

func TestEncodeIsTheReverseOfText(t *testing.T) {
	for _, in := range []string{
		"", "plain\r\n", "\xef\xbb\xbfmarked", "\xff\xfea\x00b\x00", "\xfe\xff\x00a\x00b", "\xb5\xda\xd2\xbb\xd0\xd0\r\n",
		"a\x00b\x00c\x00d\x00e\x00f\x00g\x00h\x00i\x00", "\x00a\x00b\x00c\x00d\x00e\x00f\x00g\x00h\x00i", "\x80abc",
	} {
		kind, text := decode(t, []byte(in))
		out, err := kind.Encode(text)
		if err != nil || string(out) != in {
			t.Errorf("%q, kind %d, text %q: %q, %v", in, kind, text, out, err)
		}
	}
	for kind, text := range map[charset.Encoding]string{charset.GBK: "\U0001F600", charset.UTF16LE: "\xff", 99: "a"} {
		if out, err := kind.Encode(text); !errors.Is(err, charset.ErrEncode) {
			t.Errorf("kind %d, text %q: %q, %v", kind, text, out, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "a", "\xff\xfea\x00", "\xb5\xda", "\x00\xff\x80", "\xef\xbb\xbf\xef\xbf\xbd"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		kind, text := decode(t, in)
		out, err := kind.Encode(text)
		if err != nil {
			return
		}
		back, err := io.ReadAll(kind.Text(bytes.NewReader(out), int64(len(out))))
		if err != nil || string(back) != text {
			t.Errorf("%q, kind %d: %q came back as %q, %v", in, kind, text, back, err)
		}
	})
}
