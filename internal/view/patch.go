package view

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"reasonix/store"
)

// Paint colours a piece of text; kind is one of "header", "hunk", "add", "remove", "note".
type Paint func(kind, text string) string

// Plain is a Paint without colours.
func Plain(_, text string) string { return text }

// WritePatch writes a file's difference as a unified diff that patch -p1 applies. Modes and
// links stand in lines that a patch program which does not know them passes over; folders,
// binary and large files are told in words. A renamed file is one removed and one created, so
// the pair must not be joined.
func WritePatch(w io.Writer, f File, paint Paint) error {
	b := bufio.NewWriter(w)
	p := patch{b: b, paint: paint, f: f}
	before, after := f.Pair.Before, f.Pair.After
	switch {
	case f.Unreadable != "":
		p.note("Cannot compare %s: %s", quoted("", f.Pair.Path), f.Unreadable)
	case before.Kind == store.Dir && after.Kind == store.Dir:
		p.note("Folder %s: mode %04o became %04o", quoted("", f.Pair.Path), before.Mode, after.Mode)
	case before.Kind == store.Dir || after.Kind == store.Dir:
		p.folder(before, after)
	case f.Change.Change == Kind:
		// Removed as one thing, created as the other.
		p.section(before, store.AbsentState, onlyOp(f.Hunks, "-"))
		p.section(store.AbsentState, after, onlyOp(f.Hunks, "+"))
	default:
		p.section(before, after, f.Hunks)
	}
	return b.Flush()
}

type patch struct {
	b     *bufio.Writer
	paint Paint
	f     File
}

// The errors of the buffered writer stay and come back from Flush.

func (p patch) line(kind, format string, args ...any) {
	_, _ = p.b.WriteString(p.paint(kind, fmt.Sprintf(format, args...)) + "\n")
}

func (p patch) note(format string, args ...any) { p.line("note", format, args...) }

// folder tells of a folder that came or went; what the path was before or after that, if it
// was anything, is told as a file is.
func (p patch) folder(before, after store.State) {
	name := quoted("", p.f.Pair.Path)
	if before.Kind == store.Dir {
		p.note("Folder %s: deleted", name)
		if after.Kind != store.Absent {
			p.section(store.AbsentState, after, p.f.Hunks)
		}
		return
	}
	if before.Kind != store.Absent {
		p.section(before, store.AbsentState, p.f.Hunks)
	}
	p.note("Folder %s: created, mode %04o", name, after.Mode)
}

func gitMode(s store.State) string {
	if s.Kind == store.Symlink {
		return "120000"
	}
	return fmt.Sprintf("100%03o", s.Mode)
}

// section writes what became of a file or link.
func (p patch) section(before, after store.State, hunks []Hunk) {
	a, b := quoted("a/", p.f.Pair.Path), quoted("b/", p.f.Pair.Path)
	from, to := a, b
	if before.Kind == store.Absent {
		from = "/dev/null"
	}
	if after.Kind == store.Absent {
		to = "/dev/null"
	}
	if p.f.Binary || p.f.Large {
		// No header: with one, patch would make an empty file.
		what := "Binary files"
		if p.f.Large {
			what = "Large files"
		}
		p.note("%s %s and %s differ", what, from, to)
		if before.Kind == after.Kind && before.Mode != after.Mode {
			p.header(a, b, before, after)
		}
		return
	}
	p.header(a, b, before, after)
	if len(hunks) == 0 {
		return
	}
	p.line("header", "--- %s", tabbed(from))
	p.line("header", "+++ %s", tabbed(to))
	for _, h := range hunks {
		p.line("hunk", "@@ -%s +%s @@", lineRange(h.FromLine, h.FromCount), lineRange(h.ToLine, h.ToCount))
		for _, l := range h.Lines {
			kind := ""
			switch l.Op {
			case "+":
				kind = "add"
			case "-":
				kind = "remove"
			}
			p.line(kind, "%s%s", l.Op, l.Text)
			if l.NoNewline {
				p.line("", `\ No newline at end of file`)
			}
		}
	}
}

// emptyBlob is git's name of the empty file. GNU patch 2.7 takes the removal of one for a
// mistake, and asks, unless it is told by this that the file was empty.
const emptyBlob = "e69de29"

// header writes the extended header lines, which name modes.
func (p patch) header(a, b string, before, after store.State) {
	p.line("header", "diff --git %s %s", a, b)
	switch {
	case before.Kind == store.Absent:
		p.line("header", "new file mode %s", gitMode(after))
		if after.Size == 0 {
			p.line("header", "index 0000000..%s", emptyBlob)
		}
	case after.Kind == store.Absent:
		p.line("header", "deleted file mode %s", gitMode(before))
		if before.Size == 0 {
			p.line("header", "index %s..0000000", emptyBlob)
		}
	case before.Mode != after.Mode:
		p.line("header", "old mode %s", gitMode(before))
		p.line("header", "new mode %s", gitMode(after))
	case after.Kind == store.Symlink:
		p.line("header", "index %s..%s %s", before.Blob.Short(), after.Blob.Short(), gitMode(after))
	}
}

func lineRange(line, count int) string {
	if count == 1 {
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

// onlyOp are hunks with the lines of one side alone.
func onlyOp(hunks []Hunk, op string) []Hunk {
	var out Hunk
	for _, h := range hunks {
		for _, l := range h.Lines {
			if l.Op == op || l.Op == " " {
				l.Op = op
				out.Lines = append(out.Lines, l)
			}
		}
	}
	if len(out.Lines) == 0 {
		return nil
	}
	if op == "-" {
		out.FromLine, out.FromCount = 1, len(out.Lines)
	} else {
		out.ToLine, out.ToCount = 1, len(out.Lines)
	}
	return []Hunk{out}
}

// tabbed ends a name that holds a space as patch wants it: otherwise it would end there.
func tabbed(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return name + "\t"
	}
	return name
}

// quoted is a name as git and patch write it: in quotes, with octal escapes, when it holds
// anything odd.
func quoted(prefix string, p store.Path) string {
	s := prefix + string(p)
	odd := func(c byte) bool { return c < 0x20 || c >= 0x7f || c == '"' || c == '\\' }
	var b strings.Builder
	b.WriteByte('"')
	plain := true
	for i := range len(s) {
		c := s[i]
		if !odd(c) {
			b.WriteByte(c)
			continue
		}
		plain = false
		switch c {
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	if plain {
		return s
	}
	b.WriteByte('"')
	return b.String()
}
