package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// BenchmarkDispatch is what a command costs before it does anything of its own.
func BenchmarkDispatch(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, now: time.Now, env: os.Getenv}
		if code := a.run([]string{"version"}); code != exitOK {
			b.Fatal(code)
		}
	}
}
