package tui

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Screen is a terminal that is drawn on as a whole.
type Screen struct {
	Out   io.Writer
	Size  func() (columns, rows int)
	Color bool
}

// enter takes the whole screen; leave gives back what was on it.
func (s *Screen) enter() { fmt.Fprint(s.Out, "\x1b[?1049h\x1b[?25l") }
func (s *Screen) leave() { fmt.Fprint(s.Out, "\x1b[?25h\x1b[?1049l") }

func (s *Screen) size() (columns, rows int) {
	columns, rows = s.Size()
	return max(columns, 20), max(rows, 6)
}

// draw shows as many lines as the screen has, cut at the edges.
func (s *Screen) draw(lines []string) {
	columns, rows := s.size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, l := range lines[:min(len(lines), rows)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[K") // first: after a full line it would erase the last column
		b.WriteString(cut(l, columns))
	}
	_, _ = io.WriteString(s.Out, b.String()) // a terminal that is gone is noticed by its keys
}

// style paints a text where there is colour.
func (s *Screen) style(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// The styles, as SGR codes.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// Safe is text without what a terminal would take for a command, on one line. What comes from outside
// passes through it.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == unicode.ReplacementChar, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// SafeLines is Safe for a text of several lines; tabs become blanks.
func SafeLines(text string) []string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		all = append(all, Safe(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")))
	}
	return all
}

// columnsOf is how wide a rune is on a terminal.
func columnsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	if unicode.Is(unicode.Mn, r) {
		return 0
	}
	return 1
}

// widthOf is how wide a text is, without the sequences in it.
func widthOf(text string) int {
	n := 0
	for _, part := range parts(text) {
		if part[0] != 0x1b {
			for _, r := range part {
				n += columnsOf(r)
			}
		}
	}
	return n
}

// parts splits a text into SGR sequences and what lies between.
func parts(text string) (all []string) {
	for text != "" {
		i := strings.IndexByte(text, 0x1b)
		if i < 0 {
			return append(all, text)
		}
		if i > 0 {
			all = append(all, text[:i])
		}
		end := strings.IndexByte(text[i:], 'm')
		if end < 0 {
			return all
		}
		all = append(all, text[i:i+end+1])
		text = text[i+end+1:]
	}
	return all
}

// cut is text of at most columns, with … where something was left out.
func cut(text string, columns int) string {
	if widthOf(text) <= columns {
		return text
	}
	var b strings.Builder
	n := 0
	for _, part := range parts(text) {
		if part[0] == 0x1b {
			b.WriteString(part)
			continue
		}
		for _, r := range part {
			if n+columnsOf(r) > columns-1 {
				b.WriteString("…")
				if strings.Contains(text, "\x1b") {
					b.WriteString("\x1b[0m")
				}
				return b.String()
			}
			n += columnsOf(r)
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wrap is a text without sequences in lines of at most columns, which end at a blank where they can.
func wrap(text string, columns int) (lines []string) {
	for {
		n, blank, end := 0, 0, len(text)
		for i, r := range text {
			if n += columnsOf(r); n > columns {
				end = i
				break
			}
			if r == ' ' && strings.TrimSpace(text[:i]) != "" {
				blank = i
			}
		}
		switch {
		case end == len(text):
			return append(lines, text)
		case blank > 0:
			lines, text = append(lines, text[:blank]), text[blank+1:]
		default:
			lines, text = append(lines, text[:end]), text[end:]
		}
	}
}

// pad fills a text up with blanks.
func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-widthOf(text), 0))
}
