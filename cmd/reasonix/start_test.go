package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Every hook is a start of the program, so packages must not prepare at init what most commands
// never need. What they allocate there shows it: a regular expression with counted repetitions
// takes a hundred thousand bytes and more.
func TestStartPreparesLittle(t *testing.T) {
	const most = 100_000 // bytes of one package
	cmd := exec.Command("reasonix", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, trace.Bytes())
	}
	ours := 0
	for line := range strings.Lines(trace.String()) {
		// init reasonix/cmd/reasonix @3.1 ms, 1.6 ms clock, 2485536 bytes, 1888 allocs
		f := strings.Fields(line)
		if len(f) < 8 || f[0] != "init" || !strings.HasPrefix(f[1], "reasonix/") {
			continue
		}
		ours++
		if n, err := strconv.Atoi(f[7]); err != nil || n > most {
			t.Errorf("it prepares too much, or the trace has another form: %s", line)
		}
	}
	if ours == 0 {
		t.Errorf("no package of ours in\n%s", trace.Bytes())
	}
}
