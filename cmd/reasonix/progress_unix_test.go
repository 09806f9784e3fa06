//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestBar(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		want        string
	}{
		{0, 10, "[........................] 0 of 10"},
		{5, 10, "[############............] 5 of 10"},
		{12, 10, "[########################] 12 of 10"},
		{7, -1, "7"},
	} {
		if got := bar(c.done, c.total); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.done, c.total, got, c.want)
		}
	}
}

// TestProgress draws on a terminal, and only once a work has taken a second.
func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		total int64
		took  time.Duration
		quiet bool
		draws bool
	}{
		"a bar": {100, 2 * time.Second, false, true}, "unknown length": {-1, 2 * time.Second, false, true},
		"soon over": {100, 100 * time.Millisecond, false, false}, "quiet": {100, 2 * time.Second, true, false},
	} {
		screen, tty, err := pty.Open()
		if err != nil {
			t.Skipf("there are no terminals here: %v", err)
		}
		now := time.Unix(1_800_000_000, 0)
		a := &app{stderr: tty, quiet: c.quiet, now: func() time.Time { return now }}
		progress := a.progress("checking")
		if (progress == nil) != c.quiet {
			t.Fatalf("%s: %v", name, progress == nil)
		}
		if progress != nil {
			now = now.Add(c.took)
			progress(40, c.total)
			progress(c.total, c.total)
		}
		if _, err := tty.WriteString("END"); err != nil {
			t.Fatal(err)
		}
		var drawn strings.Builder
		for buf := make([]byte, 4096); !strings.Contains(drawn.String(), "END"); {
			n, err := screen.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			drawn.Write(buf[:n])
		}
		want := "END"
		if c.draws {
			want = "\rchecking " + bar(40, c.total) + "\x1b[K\r\x1b[KEND"
		}
		if drawn.String() != want {
			t.Errorf("%s: %q, want %q", name, drawn.String(), want)
		}
		tty.Close()
		screen.Close()
	}
	if progress := (&app{stderr: &strings.Builder{}, now: time.Now}).progress("x"); progress != nil {
		t.Error("there is a bar where there is no terminal")
	}
}
