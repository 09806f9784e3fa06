package hook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// name is the name of a file in an event: a JSON string, or {"b64":"…"} for one that is not
// UTF-8. Names are bytes, and encoding/json would turn what is not Unicode into U+FFFD: another
// name. So a string is read here: raw bytes stay, and a lone surrogate from U+DC80 to U+DCFF
// is the byte that it stands for in Python's file names (PEP 383).
type name string

var errName = errors.New("a path is neither a string nor {\"b64\":…}, or is not Unicode")

// UnmarshalJSON implements json.Unmarshaler; b is valid JSON.
func (n *name) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] == '"' {
		s, ok := unquote(b[1 : len(b)-1])
		if !ok {
			return errName
		}
		*n = name(s)
		return nil
	}
	var exact struct {
		B64 *string `json:"b64"`
	}
	if b[0] != '{' || json.Unmarshal(b, &exact) != nil || exact.B64 == nil {
		return errName
	}
	raw, err := base64.StdEncoding.DecodeString(*exact.B64)
	if err != nil {
		return errName
	}
	*n = name(raw)
	return nil
}

// unquote decodes the inside of a JSON string.
func unquote(b []byte) (string, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		i++
		switch b[i] {
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
			r := hex4(b[i+1:])
			i += 4
			switch {
			case !utf16.IsSurrogate(r):
				out = utf8.AppendRune(out, r)
			case i+6 < len(b) && b[i+1] == '\\' && b[i+2] == 'u' && utf16.DecodeRune(r, hex4(b[i+3:])) != utf8.RuneError:
				out = utf8.AppendRune(out, utf16.DecodeRune(r, hex4(b[i+3:])))
				i += 6
			case r >= 0xdc80 && r <= 0xdcff:
				out = append(out, byte(r-0xdc00))
			default:
				return "", false
			}
		default: // quote, backslash, slash
			out = append(out, b[i])
		}
	}
	return string(out), true
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(v)
}
