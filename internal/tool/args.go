package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxArgs bounds the arguments of a call, in bytes.
const maxArgs = 16 << 20

// decode reads the arguments of a call: one object with the members that the schema names.
func decode(raw json.RawMessage, to any) error {
	if len(raw) > maxArgs {
		return fmt.Errorf("%w: they have %d bytes, more than %d", ErrArguments, len(raw), maxArgs)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%w: %w; send one JSON object as the schema says", ErrArguments, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: there is something behind the object", ErrArguments)
	}
	return nil
}

func badArgs(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArguments, fmt.Sprintf(format, args...))
}

// limited cuts a text that is too long for the model, at the end of a line where one is near.
func limited(text string, most int, more string) string {
	if len(text) <= most {
		return text
	}
	cut := text[:most]
	if i := bytes.LastIndexByte([]byte(cut), '\n'); i > most/2 {
		cut = cut[:i+1]
	}
	return valid(cut) + fmt.Sprintf("\n(%d of %d bytes; %s)", len(cut), len(text), more)
}

// valid is text as UTF-8.
func valid(text string) string { return string(bytes.ToValidUTF8([]byte(text), []byte("\uFFFD"))) }
