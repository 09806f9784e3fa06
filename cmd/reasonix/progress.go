package main

import (
	"fmt"
	"strings"
	"time"
)

// progress shows on a terminal how far a long work is, from its first second on; nil elsewhere.
// The total of a work of unknown length is -1; done comes to it when the work is over. The known
// libraries for this bring net/http with them, which costs every start, and so every hook, half a
// millisecond.
func (a *app) progress(what string) func(done, total int64) {
	if a.quiet || !onTerminal(a.stderr) {
		return nil
	}
	began, last := a.now(), time.Time{}
	return func(done, total int64) {
		now := a.now()
		switch {
		case done == total && !last.IsZero():
			fmt.Fprint(a.stderr, "\r\x1b[K") // the result takes its place
		case done == total, now.Sub(began) < time.Second, now.Sub(last) < 100*time.Millisecond:
		default:
			last = now
			fmt.Fprintf(a.stderr, "\r%s %s\x1b[K", what, bar(done, total))
		}
	}
}

// bar draws how much is done.
func bar(done, total int64) string {
	const width = 24
	if total <= 0 {
		return fmt.Sprint(done)
	}
	full := int(min(done, total) * width / total)
	return fmt.Sprintf("[%s%s] %d of %d", strings.Repeat("#", full), strings.Repeat(".", width-full), done, total)
}
