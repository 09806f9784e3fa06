//go:build unix

package main

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A prompt that is submitted over HTTP runs a turn: in a folder without a store, told live,
// refused while another one runs, cancelled, and rewound like any other.
func TestServeSubmit(t *testing.T) {
	h := newHooked(t)
	script := filepath.Join(filepath.Dir(h.dir), "script.jsonl")
	lines := `{"text":"Working.","tool_calls":[{"name":"write_file","arguments":{"path":"made.txt","content":"hello\n"}}]}
{"text":"made it"}
{"tool_calls":[{"name":"bash","arguments":{"command":"echo x > half.txt; sleep 600"}}]}
{"text":"said in the fork"}
`
	if err := os.WriteFile(script, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	s := h.serve("--auth", "none", "--script", script, "--approve", "full")
	res, err := http.Get(s.base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := bufio.NewScanner(res.Body)
	until := func(name, word string) {
		t.Helper()
		var seen []string
		for last := ""; events.Scan(); {
			text := events.Text()
			seen = append(seen, text)
			if event, ok := strings.CutPrefix(text, "event: "); ok {
				last = event
			} else if last == name && strings.HasPrefix(text, "data: ") && strings.Contains(text, word) {
				return
			}
		}
		t.Fatalf("the stream ended before %s %s: %v\n%s\n%s", name, word, events.Err(), strings.Join(seen, "\n"), s.stderr.String())
	}
	submit := func(prompt string, status int, word string) {
		t.Helper()
		if got, text := s.curl("POST", "/submit", `{"prompt":"`+prompt+`"}`); got != status || !strings.Contains(text, word) {
			t.Fatalf("submit %s: %d %s\n%s", prompt, got, text, s.stderr.String())
		}
	}
	submit("make it", 202, `{"turn":0}`)
	until("progress", `"kind":"text"`)
	until("turn_ended", `"status":"done"`)
	if b, err := os.ReadFile(filepath.Join(h.dir, "made.txt")); err != nil || string(b) != "hello\n" {
		t.Errorf("made.txt: %q, %v", b, err)
	}
	if status, text := s.curl("GET", "/messages", ""); status != 200 || !strings.Contains(text, "made it") {
		t.Errorf("messages: %d %s", status, text)
	}

	submit("run it", 202, `{"turn":1}`)
	until("tool", `"state":"started"`)
	submit("another", 409, `"busy"`)
	if status, text := s.curl("POST", "/rewind", `{"turn":0}`); status != 409 {
		t.Errorf("rewind while a turn runs: %d %s", status, text)
	}
	if status, text := s.curl("POST", "/cancel", `{}`); status != 200 || !strings.Contains(text, `"cancelled":true`) {
		t.Errorf("cancel: %d %s", status, text)
	}
	until("turn_ended", `"status":"interrupted"`)
	if status, text := s.curl("POST", "/rewind", `{"turn":0}`); status != 200 {
		t.Errorf("rewind: %d %s", status, text)
	}
	if left := manifest(h.dir); strings.Contains(left, "made.txt") || strings.Contains(left, "half.txt") {
		t.Errorf("after the rewind:\n%s", left)
	}
	h.run(nil, "undo-rewind")
	h.run(nil, "fork", "1") // by another process: the next prompt goes on there
	submit("go on", 202, `{"turn":1}`)
	until("turn_ended", `"status":"done"`)
	if out := string(h.run(nil, "messages")); !strings.Contains(out, "said in the fork") || strings.Contains(out, "run it") {
		t.Errorf("the fork's messages:\n%s", out)
	}
	s.end()
}
