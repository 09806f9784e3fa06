package tui

import (
	"context"
	"io"
	"strings"
	"time"

	"golang.org/x/term"
)

// doubleEsc is how long the second Esc may come after the first.
const doubleEsc = 600 * time.Millisecond

// escEsc is what stands for two of them in what the line editor reads.
const escEsc = 0x1c

// typed is what the line editor reads: keys, with Esc Esc as one of them, and without what would end
// the program.
type typed struct {
	keys *Keys
	ctx  context.Context //nolint:containedctx // io.Reader has no place for one
}

func (t *typed) Read(p []byte) (int, error) {
	for {
		c, _, err := t.keys.next(t.ctx, -1)
		if err != nil {
			return 0, err
		}
		switch c {
		case 0x03: // Ctrl-C takes the line back; Ctrl-D leaves
			c = 0x15
		case 0x1b:
			next, ok, err := t.keys.next(t.ctx, doubleEsc)
			if err != nil {
				return 0, err
			}
			switch {
			case ok && next == 0x1b:
				c = escEsc
				t.keys.Type("\r") // the line is over
			case ok && (next == '[' || next == 'O'):
				t.keys.Type(string(rune(next)))
			case ok:
				t.keys.Type(string([]byte{next}))
				continue
			default:
				continue
			}
		}
		p[0] = c
		return 1, nil
	}
}

// editor is the line in which a person writes.
type editor struct {
	*term.Terminal
	picks bool // Esc Esc was pressed
}

func newEditor(ctx context.Context, keys *Keys, out io.Writer, names []string) *editor {
	e := &editor{Terminal: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&typed{keys, ctx}, out}, prompt)}
	e.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		switch {
		case key == escEsc:
			e.picks = true
			return "", 0, true
		case key == '\t' && pos == len(line) && strings.HasPrefix(line, "/"):
			done := complete(line, names)
			return done, len(done), true
		}
		return line, pos, key == '\t'
	}
	return e
}

// complete finishes the name of a command as far as it is clear.
func complete(line string, names []string) string {
	var fits []string
	for _, n := range names {
		if strings.HasPrefix(n, line) {
			fits = append(fits, n)
		}
	}
	switch len(fits) {
	case 0:
		return line
	case 1:
		return fits[0] + " "
	}
	common := fits[0]
	for _, f := range fits[1:] {
		for !strings.HasPrefix(f, common) {
			common = common[:len(common)-1]
		}
	}
	return common
}
