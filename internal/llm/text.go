package llm

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A server may split a text between two chunks anywhere: within the bytes of a character, or
// between the halves of a surrogate pair. Each part alone is no valid string, and encoding/json
// would replace it. So parts are unquoted here into bytes that, put together, are the text again.

// unquote gives the bytes of a JSON string, given with its quotes and known to be well formed.
// Bytes that are no UTF-8 stay; half a surrogate pair becomes the three bytes that UTF-8 would
// have for it.
func unquote(quoted []byte) []byte {
	if len(quoted) < 2 || quoted[0] != '"' {
		return nil // null, or no string
	}
	s := quoted[1 : len(quoted)-1]
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			if i+5 > len(s) {
				return out
			}
			n, err := strconv.ParseUint(string(s[i+1:i+5]), 16, 16)
			if err != nil {
				return out
			}
			out = appendUnit(out, uint16(n))
			i += 4
		default:
			out = append(out, s[i])
		}
	}
	return out
}

func appendUnit(out []byte, u uint16) []byte {
	if !utf16.IsSurrogate(rune(u)) {
		return utf8.AppendRune(out, rune(u))
	}
	return append(out, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
}

// whole is a text put together from parts: the halves of surrogate pairs are joined, and what is
// no character in the end is replaced.
func whole(parts []byte) string {
	if utf8.Valid(parts) {
		return string(parts)
	}
	var b strings.Builder
	for len(parts) > 0 {
		hi, okHi := half(parts)
		if okHi && len(parts) >= 6 {
			if lo, ok := half(parts[3:]); ok {
				if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
					b.WriteRune(r)
					parts = parts[6:]
					continue
				}
			}
		}
		if okHi {
			b.WriteRune(utf8.RuneError)
			parts = parts[3:]
			continue
		}
		r, n := utf8.DecodeRune(parts)
		b.WriteRune(r)
		parts = parts[n:]
	}
	return b.String()
}

// half is the half of a surrogate pair that three bytes stand for.
func half(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
}
