package retain

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// redacted is what takes the place of a text that was purged.
const redacted = "[purged]"

// needles are the texts that a conversation may have repeated of a purged content: its lines.
type needles struct {
	lines []string
	all   *strings.Replacer
}

// minLine is the length, in bytes, under which a line is too common to be looked for.
const minLine = 8

// linesOf are the lines of a content that are worth looking for, without the blanks around them; none
// of one that is no text.
func linesOf(content []byte) []string {
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	var all []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			all = append(all, line)
		}
	}
	return all
}

func newNeedles(lines map[string]bool) *needles {
	n := &needles{}
	var pairs []string
	for l := range lines {
		n.lines = append(n.lines, l)
		pairs = append(pairs, l, redacted)
	}
	n.all = strings.NewReplacer(pairs...)
	return n
}

// text replaces what is to go in a plain text.
func (n *needles) text(s string) string {
	if len(n.lines) == 0 {
		return s
	}
	return n.all.Replace(s)
}

// json replaces what is to go in the strings of a JSON text, also in strings that are JSON
// themselves, as arguments of tools are. Every other byte stays as it is.
func (n *needles) json(raw []byte) ([]byte, bool) {
	var (
		out     []byte
		from    int
		changed bool
	)
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := stringEnd(raw, i)
		if end < 0 {
			break // not JSON: left as it is
		}
		var s string
		if json.Unmarshal(raw[i:end], &s) == nil {
			if now := n.inner(s); now != s {
				quoted, err := json.Marshal(now)
				if err == nil {
					out, changed = append(append(out, raw[from:i]...), quoted...), true
					from = end
				}
			}
		}
		i = end - 1
	}
	if !changed {
		return raw, false
	}
	return append(out, raw[from:]...), true
}

func (n *needles) inner(s string) string {
	if t := strings.TrimSpace(s); len(t) > 1 && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
		now, _ := n.json([]byte(s))
		return string(now)
	}
	return n.text(s)
}

// stringEnd is where the JSON string that begins at i ends, behind its quote; -1 when it does not.
func stringEnd(raw []byte, i int) int {
	for j := i + 1; j < len(raw); j++ {
		switch raw[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return -1
}
