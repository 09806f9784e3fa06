package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// maxEvent bounds one event of a stream, in bytes: a server that never ends a line must not fill
// the memory.
const maxEvent = 32 << 20

var errTooLong = fmt.Errorf("an event of more than %d MiB", maxEvent>>20)

// events yields the data of each server-sent event: its data lines joined by newlines. Comments,
// which servers send as signs of life, and other fields are passed over. Lines may end in LF,
// CR LF or CR. An event that the stream ends in without an empty line is yielded too, since some
// servers leave out the last newline; the caller can tell a cut stream by what it lacks.
func events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
		lines.Split(splitLines)
		var data []byte
		some := false
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if some && !yield(data, nil) {
					return
				}
				data, some = data[:0], false
				continue
			}
			field, value, _ := bytes.Cut(line, []byte(":"))
			if string(field) != "data" {
				continue
			}
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
			if len(data) > maxEvent {
				yield(nil, errTooLong)
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errTooLong
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if some {
			yield(data, nil)
		}
	}
}

// splitLines ends lines at LF, CR LF and CR. A CR at the end of what was read so far ends its
// line only once the next byte is known, so that an event is not held back by that: servers that
// end lines by CR alone do not exist among those we talk to, and would only be late by a byte.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0:
		return 0, nil, nil
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i+1 < len(data) || atEOF:
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}
