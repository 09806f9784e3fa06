package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"reasonix/store"
)

// Rules of output. Results go to stdout, all else to stderr. With --json stdout is one object
// (lines of them where the command says so), errors included. Colour only on a terminal, or
// when --color=always asks; NO_COLOR wins over auto. Names and prompts come from outside: they
// are printed without control characters.

// emit prints a result: one JSON object, or what human writes.
func (a *app) emit(v any, human func(w io.Writer) error) error {
	if a.json {
		return a.writeJSON(v)
	}
	return human(a.stdout)
}

// emitPaged is emit for long texts: on a terminal they go through a pager.
func (a *app) emitPaged(v any, human func(w io.Writer) error) error {
	if a.json {
		return a.writeJSON(v)
	}
	return a.page(human)
}

func (a *app) writeJSON(v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(b)
	return err
}

// encode is a value as JSON, with a newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// page lets write fill a pager when stdout is a terminal, else stdout.
func (a *app) page(write func(w io.Writer) error) error {
	if a.noPager || !onTerminal(a.stdout) {
		return write(a.stdout)
	}
	words := strings.Fields(a.env("PAGER"))
	if len(words) == 0 {
		words = []string{"less", "-FRX"}
	}
	if words[0] == "cat" {
		return write(a.stdout)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = a.stdout, a.stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return write(a.stdout) // no such pager
	}
	werr := write(&untilClosed{w: in})
	_ = in.Close()
	_ = cmd.Wait() // how the reader left the pager is no matter of ours
	return werr
}

// untilClosed swallows what comes after the reader went away.
type untilClosed struct {
	w    io.Writer
	gone bool
}

func (u *untilClosed) Write(p []byte) (int, error) {
	if !u.gone {
		if _, err := u.w.Write(p); err != nil {
			u.gone = true
		}
	}
	return len(p), nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// The colours, as SGR codes.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	bold   = "1"
	dim    = "2"
)

// paint colours text for a stream.
func (a *app) paint(stream io.Writer, code, text string) string {
	if !a.colored(stream) {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (a *app) colored(stream io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	if _, paged := stream.(*untilClosed); paged {
		stream = a.stdout
	}
	return a.env("NO_COLOR") == "" && a.env("TERM") != "dumb" && onTerminal(stream)
}

// printable is text without what would move the cursor or colour the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) && r != ' ' {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// shown is a path for a person.
func shown(p store.Path) string { return printable(string(p)) }

// quote is a word of the user's in an error message.
func quote(word string) string { return fmt.Sprintf("%q", word) }

// firstLine is the beginning of a text in at most n characters, for lists.
func firstLine(text string, n int) string {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i] + " …"
	}
	text = printable(strings.ReplaceAll(text, "\t", " "))
	if runes := []rune(text); len(runes) > n {
		text = string(runes[:n-1]) + "…"
	}
	return text
}

// ago is a time as seen from now, for lists.
func (a *app) ago(t time.Time) string {
	d := a.now().Sub(t)
	switch {
	case t.IsZero():
		return "-"
	case d < 2*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 7*24*time.Hour:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
	return t.Local().Format("2006-01-02 15:04")
}

// count is a number with its noun: "1 file", "3 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// table writes rows in aligned columns; no line ends in blanks.
func table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], visible(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for len(row) > 0 && visible(row[len(row)-1]) == 0 {
			row = row[:len(row)-1]
		}
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(strings.TrimRight(cell, " "))
				break
			}
			b.WriteString(cell + strings.Repeat(" ", widths[i]-visible(cell)+2))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// visible is the number of characters of a cell without its colours.
func visible(cell string) int {
	n, escape := 0, false
	for _, r := range cell {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}
