package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// maxLog is the size at which hook.log becomes hook.log.1, in bytes; an older one is dropped.
const maxLog = 1 << 20

// maxLine bounds a line of the log, in bytes: it names problems, it does not repeat events.
const maxLine = 500

// Log appends one line to hook.log beside the stores. It fails silently: there is nobody to
// tell. The caller sees to it that lines never hold prompts, messages, contents, the
// environment or whole events.
func (w Where) Log(now time.Time, text string) {
	name := filepath.Join(w.State, "hook.log")
	if w.allowed(name) != nil {
		return
	}
	if err := os.MkdirAll(w.State, 0o700); err != nil {
		return
	}
	if fi, err := os.Stat(name); err == nil && fi.Size() >= maxLog {
		_ = os.Rename(name, name+".1") // two processes may both do it: the second log is short then
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	// One write of a short line with O_APPEND is not mixed with another process's.
	_, _ = io.WriteString(f, line(now, text))
	_ = f.Close()
}

func line(now time.Time, text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	return fmt.Sprintf("%s %s\n", now.UTC().Format("2006-01-02T15:04:05.000Z"), text)
}
