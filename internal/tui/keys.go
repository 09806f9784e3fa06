// Package tui is what is seen and pressed on a terminal: the picker of turns and the chat. It holds
// no rules of history: what can be done, what it would do and doing it come through small interfaces.
//
// It draws by itself, with a few escape sequences that every terminal knows. The known libraries for
// this cost every start of the program, and so every hook, more than all of it takes.
package tui

import (
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"
)

// Key is a key that was pressed: a character, or one of the named ones.
type Key struct {
	Rune rune   // 0 of a named one
	Name string // "up", "down", "pgup", "pgdn", "home", "end", "enter", "esc", "tab", "backspace", "ctrl-c", "ctrl-d", "other"
}

// escWait is how long what follows an ESC may take to come: a key sends all of it at once.
const escWait = 60 * time.Millisecond

// Keys reads a terminal that is in raw mode. It begins to read when it is made and never stops, so
// there is one for a terminal.
type Keys struct {
	bytes chan byte
	err   error // why bytes was closed
	back  []byte
}

// NewKeys reads from in.
func NewKeys(in io.Reader) *Keys {
	k := &Keys{bytes: make(chan byte, 4096)}
	go func() {
		defer close(k.bytes)
		var b [256]byte
		for {
			n, err := in.Read(b[:])
			for _, c := range b[:n] {
				k.bytes <- c
			}
			if err != nil {
				k.err = err
				return
			}
		}
	}()
	return k
}

// Type puts text in front of what is typed, as if somebody had typed it.
func (k *Keys) Type(text string) { k.back = append([]byte(text), k.back...) }

// unread gives back a key that came too late for the one who waited for it.
func (k *Keys) unread(key Key) {
	for c, name := range controls {
		if key.Name == name && c != '\n' && c != 0x08 {
			k.Type(string(rune(c)))
		}
	}
	if key.Rune != 0 {
		k.Type(string(key.Rune))
	}
}

// next is the next byte; ok is false when wait is over first. A wait below 0 has no end.
func (k *Keys) next(ctx context.Context, wait time.Duration) (c byte, ok bool, err error) {
	if len(k.back) > 0 {
		c, k.back = k.back[0], k.back[1:]
		return c, true, nil
	}
	var over <-chan time.Time
	if wait >= 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	select {
	case c, open := <-k.bytes:
		if !open {
			return 0, false, errors.Join(io.EOF, ignoreEOF(k.err))
		}
		return c, true, nil
	case <-over:
		return 0, false, nil
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

var controls = map[byte]string{
	'\r': "enter", '\n': "enter", '\t': "tab", 0x7f: "backspace", 0x08: "backspace", 0x03: "ctrl-c", 0x04: "ctrl-d",
}

// Next is the next key. Errors: io.EOF, and that of ctx.
func (k *Keys) Next(ctx context.Context) (Key, error) {
	c, _, err := k.next(ctx, -1)
	if err != nil {
		return Key{}, err
	}
	switch name := controls[c]; {
	case name != "":
		return Key{Name: name}, nil
	case c == 0x1b:
		return k.escape(ctx)
	case c < 0x20:
		return Key{Name: "other"}, nil
	case c < utf8.RuneSelf:
		return Key{Rune: rune(c)}, nil
	}
	b := []byte{c}
	for !utf8.FullRune(b) && len(b) < utf8.UTFMax {
		c, ok, err := k.next(ctx, escWait)
		if err != nil || !ok {
			break
		}
		b = append(b, c)
	}
	r, _ := utf8.DecodeRune(b)
	return Key{Rune: r}, nil
}

var sequences = map[string]string{
	"[A": "up", "[B": "down", "OA": "up", "OB": "down", "[H": "home", "[F": "end", "OH": "home", "OF": "end",
	"[1~": "home", "[4~": "end", "[5~": "pgup", "[6~": "pgdn",
}

// escape reads what follows an ESC: nothing, or the rest of a key's sequence.
func (k *Keys) escape(ctx context.Context) (Key, error) {
	c, ok, err := k.next(ctx, escWait)
	if err != nil || !ok {
		return Key{Name: "esc"}, ignoreEOF(err)
	}
	if c != '[' && c != 'O' {
		k.back = append([]byte{c}, k.back...)
		return Key{Name: "esc"}, nil
	}
	text := []byte{c}
	for len(text) < 16 {
		c, ok, err := k.next(ctx, escWait)
		if err != nil || !ok {
			break
		}
		text = append(text, c)
		if c >= 0x40 && c <= 0x7e {
			break
		}
	}
	if name := sequences[string(text)]; name != "" {
		return Key{Name: name}, nil
	}
	return Key{Name: "other"}, nil
}
