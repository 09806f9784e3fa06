package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// transcript is a conversation that is being read. It lies in a temporary file, so that memory does not
// grow with it.
type transcript struct {
	file *os.File
	ends []int64 // of each message in file
	user []bool  // whose message it is
}

func newTranscript() (*transcript, error) {
	f, err := os.CreateTemp("", "reasonix-import-")
	if err != nil {
		return nil, err
	}
	return &transcript{file: f}, nil
}

func (t *transcript) close() error {
	return errors.Join(t.file.Close(), os.Remove(t.file.Name()))
}

func (t *transcript) len() int { return len(t.ends) }

func (t *transcript) end() int64 {
	if len(t.ends) == 0 {
		return 0
	}
	return t.ends[len(t.ends)-1]
}

// cut forgets the messages from n on.
func (t *transcript) cut(n int) { t.ends, t.user = t.ends[:n], t.user[:n] }

// add takes a message: a JSON object.
func (t *transcript) add(raw []byte) error {
	var head struct {
		Role string `json:"role"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || raw[0] != '{' {
		return errNoMessage
	}
	at := t.end()
	if _, err := t.file.WriteAt(raw, at); err != nil {
		return err
	}
	t.ends, t.user = append(t.ends, at+int64(len(raw))), append(t.user, head.Role == "user")
	return nil
}

var errNoMessage = errors.New("it is no message")

// at reads a message.
func (t *transcript) at(n int) (json.RawMessage, error) {
	from := int64(0)
	if n > 0 {
		from = t.ends[n-1]
	}
	b := make([]byte, t.ends[n]-from)
	_, err := t.file.ReadAt(b, from)
	return b, err
}

// damaged stands for a message that cannot be read, so that those after it keep their places.
var damaged = []byte(`{"role":"system","content":"(a damaged message was here)"}`)

// readMessages reads the log of events where that is whole, else the transcript.
func (i *importer) readMessages() error {
	if i.from.events != "" {
		switch ok, err := i.readEvents(); {
		case err != nil:
			return err
		case ok:
			return nil
		}
		i.talk.cut(0)
	}
	if i.from.jsonl == "" {
		return nil
	}
	f, err := os.Open(i.from.jsonl)
	if err != nil {
		return err
	}
	defer f.Close()
	name := filepath.Base(i.from.jsonl)
	for line, err := range lines(f) {
		if errors.Is(err, errLong) {
			i.warn(Warning{Code: WarnLimit, File: name, Turn: -1, Detail: fmt.Sprintf("message %d has more than %d bytes", i.talk.len(), maxLine)})
			line = damaged
		} else if err != nil {
			return err
		}
		if i.talk.len() == maxMessages {
			i.warn(Warning{Code: WarnLimit, File: name, Turn: -1, Detail: fmt.Sprintf("there are more than %d messages", maxMessages)})
			return nil
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := i.talk.add(line); errors.Is(err, errNoMessage) {
			i.warn(Warning{Code: WarnCorrupt, File: name, Turn: -1, Detail: fmt.Sprintf("message %d is no JSON object", i.talk.len())})
			err = i.talk.add(damaged)
			if err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

var errLong = errors.New("the line is too long")

// lines yields the lines of r; a line that is too long gives errLong, and those after it come.
func lines(r io.Reader) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			var line []byte
			long := false
			for {
				part, err := in.ReadSlice('\n')
				if long = long || len(line)+len(part) > maxLine; !long {
					line = append(line, part...)
				}
				if errors.Is(err, bufio.ErrBufferFull) {
					continue
				}
				switch {
				case errors.Is(err, io.EOF):
					if long {
						yield(nil, errLong)
					} else if len(line) > 0 {
						yield(line, nil)
					}
					return
				case err != nil:
					yield(nil, err)
					return
				}
				break
			}
			var err error
			if long {
				line, err = nil, errLong
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// event is a line of the log of events.
type event struct {
	SchemaVersion int               `json:"schema_version"`
	Type          string            `json:"type"`
	MessageIndex  int               `json:"message_index"`
	Messages      []json.RawMessage `json:"messages"`
}

// readEvents replays the log. ok is false when it is not to be used: it is then as if it were not there.
// A damaged tail is left out, as the other program does it.
func (i *importer) readEvents() (ok bool, err error) {
	name := filepath.Base(i.from.events)
	ignore := func(detail string) { i.warn(Warning{Code: WarnEvents, File: name, Turn: -1, Detail: detail}) }
	f, err := os.Open(i.from.events)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxEvents {
		ignore(fmt.Sprintf("it has more than %d bytes", maxEvents))
		return false, nil
	}
	n := 0
	for line, err := range lines(f) {
		if err != nil && !errors.Is(err, errLong) {
			return false, err
		}
		var e event
		if err != nil || json.Unmarshal(line, &e) != nil {
			if n == 0 {
				ignore("its first record cannot be read")
				return false, nil
			}
			i.warn(Warning{Code: WarnCorrupt, File: name, Turn: -1, Detail: fmt.Sprintf("record %d is damaged; what follows was left out", n)})
			return true, nil
		}
		switch {
		case e.SchemaVersion > 1:
			return false, fmt.Errorf("%s has version %d: %w", name, e.SchemaVersion, ErrTooNew)
		case n == 0 && e.SchemaVersion != 1:
			ignore("its first record is of another kind")
			return false, nil
		case n == maxMessages:
			ignore(fmt.Sprintf("it has more than %d records", maxMessages))
			return false, nil
		}
		if done, err := i.replay(e); err != nil {
			return false, err
		} else if !done {
			i.warn(Warning{Code: WarnCorrupt, File: name, Turn: -1, Detail: fmt.Sprintf("record %d does not continue the ones before; what follows was left out", n)})
			return n > 0, nil
		}
		if i.talk.len() > maxMessages {
			i.talk.cut(maxMessages)
			ignore(fmt.Sprintf("it has more than %d messages", maxMessages))
			return false, nil
		}
		n++
	}
	return n > 0, nil
}

// replay makes the step of one record; false when it cannot be made.
func (i *importer) replay(e event) (bool, error) {
	was := i.talk.len()
	switch {
	case e.Type == "replace":
		i.talk.cut(0)
	case e.Type == "append" && e.MessageIndex == was:
	default:
		return false, nil
	}
	for _, m := range e.Messages {
		if err := i.talk.add(bytes.TrimSpace(m)); errors.Is(err, errNoMessage) {
			err = i.talk.add(damaged)
			if err != nil {
				return false, err
			}
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}
