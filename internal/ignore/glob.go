package ignore

import (
	"strings"
	"unicode/utf8"
)

// translate rewrites one component of a pattern from git's language into that of
// filepath.Match, which go-git uses: classes are negated by "^", hold no named classes, and a
// "]" or "-" in them needs a backslash. It works on bytes, as git does, where filepath.Match
// takes characters: bytes above ASCII are widened in patterns and names alike. false means that
// nothing matches the component.
func translate(c string) (string, bool) {
	if c == "" {
		return "", false
	}
	var out strings.Builder
	for i := 0; i < len(c); {
		switch c[i] {
		case '*':
			for i < len(c) && c[i] == '*' { // go-git knows two in a row as something else
				i++
			}
			out.WriteByte('*')
		case '?':
			out.WriteByte('?')
			i++
		case '[':
			n, ok := translateClass(&out, c[i:])
			if !ok {
				return "", false
			}
			i += n
		case '\\':
			if i++; i == len(c) {
				return "", false
			}
			fallthrough
		default:
			literal(&out, c[i])
			i++
		}
	}
	return out.String(), true
}

// literal writes the byte b so that it stands for itself.
func literal(out *strings.Builder, b byte) {
	switch b {
	case ' ', '*', '?', '[': // a space at the end go-git would drop; a "\\" Windows takes for a slash
		out.Write([]byte{'[', b, ']'})
	case '\\':
		out.WriteString(`\\`)
	default:
		out.WriteRune(rune(b))
	}
}

// translateClass rewrites the class at the start of c and returns its length in c.
func translateClass(out *strings.Builder, c string) (int, bool) {
	out.WriteByte('[')
	i := 1
	if i < len(c) && (c[i] == '!' || c[i] == '^') {
		out.WriteByte('^')
		i++
	}
	empty := out.Len()
	for first := true; ; first = false {
		if i >= len(c) {
			return 0, false // never closed
		}
		if c[i] == ']' && !first {
			if out.Len() == empty {
				inClass(out, 0, 0) // what no name has, for filepath.Match knows no empty class
			}
			out.WriteByte(']')
			return i + 1, true
		}
		if name, ok := className(c[i:]); ok {
			ranges, known := classes[name]
			if !known {
				return 0, false
			}
			for j := 0; j < len(ranges); j += 2 {
				inClass(out, ranges[j], ranges[j+1])
			}
			i += len("[::]") + len(name)
			continue
		}
		low, n, ok := member(c[i:])
		if !ok {
			return 0, false
		}
		i += n
		high := low
		if i+1 < len(c) && c[i] == '-' && c[i+1] != ']' {
			if high, n, ok = member(c[i+1:]); !ok {
				return 0, false
			}
			i += 1 + n
		}
		inClass(out, low, high)
	}
}

// member reads one character of a class and how long it is written.
func member(c string) (b byte, n int, ok bool) {
	if c[0] != '\\' {
		return c[0], 1, true
	}
	if len(c) < 2 {
		return 0, 0, false
	}
	return c[1], 2, true
}

// className returns the name in a "[:name:]" at the start of c.
func className(c string) (string, bool) {
	rest, ok := strings.CutPrefix(c, "[:")
	if !ok {
		return "", false
	}
	end := strings.IndexByte(rest, ']')
	if end < 1 || rest[end-1] != ':' {
		return "", false
	}
	return rest[:end-1], true
}

// classes are pairs of the first and the last byte of a range.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09",
	"graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
	"xdigit": "09AFaf",
}

func inClass(out *strings.Builder, low, high byte) {
	// No name has a slash, and go-git would split the pattern there.
	switch {
	case low == '/' && high == '/':
		return
	case low == '/':
		low++
	case high == '/':
		high--
	}
	for i, b := range []byte{low, high} {
		if i == 1 {
			out.WriteByte('-')
		}
		if b < utf8.RuneSelf && strings.IndexByte(`\-]^[*?`, b) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteRune(rune(b))
	}
}

// widen makes a character of each byte above ASCII, so that "?" and classes match bytes.
func widen(s string) string {
	if isASCII(s) {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		out.WriteRune(rune(s[i]))
	}
	return out.String()
}

// narrow undoes widen.
func narrow(s string) string {
	if isASCII(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	for _, c := range s {
		out = append(out, byte(c))
	}
	return string(out)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func widenAll(path []string) []string {
	for i, name := range path {
		if !isASCII(name) {
			wide := append([]string(nil), path...)
			for j := i; j < len(wide); j++ {
				wide[j] = widen(wide[j])
			}
			return wide
		}
	}
	return path
}
