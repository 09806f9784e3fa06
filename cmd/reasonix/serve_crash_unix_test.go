//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A process that dies in the middle of a rewind, beside a server that runs or before one that
// starts, leaves no mixture: the next that looks takes the operation back.
func TestServeAfterADeath(t *testing.T) {
	h := newHooked(t)
	h.sixTurns()
	before := manifest(h.dir)
	s := h.serve("--auth", "none")
	h.die("written") // as a command line would
	if manifest(h.dir) == before {
		t.Fatal("the operation was not cut off in the middle")
	}
	var move struct{ Deleted []string }
	s.answer("POST", "/rewind", `{"turn":4,"scope":"code"}`, &move)
	if fmt.Sprint(move.Deleted) != "[added4 added5]" {
		t.Errorf("rewind: %+v", move)
	}
	s.answer("POST", "/undo-rewind", `{}`, &move)
	if got := manifest(h.dir); got != before {
		t.Errorf("undo:\n%s\nwant\n%s", got, before)
	}
	s.end()
	h.die("written")
	s = h.serve("--auth", "none")
	if got := manifest(h.dir); got != before {
		t.Errorf("after a start:\n%s\nwant\n%s", got, before)
	}
	s.end()
	if !strings.Contains(s.stderr.String(), "was interrupted; it was taken back") {
		t.Errorf("the server says %q", s.stderr.String())
	}
}

// A server that is killed while it rewinds has done all of it or, once there is another one,
// nothing.
func TestServeKilled(t *testing.T) {
	h := newHooked(t)
	var paths []string
	for i := range 300 {
		paths = append(paths, fmt.Sprintf("f%d", i))
	}
	for turn := range 2 {
		h.event("begin-turn", nil)
		h.event("before-edit", map[string]any{"call": "c", "paths": paths})
		for _, p := range paths {
			if err := os.WriteFile(filepath.Join(h.dir, p), fmt.Appendf(nil, "%s of turn %d\n", p, turn), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		h.event("after-edit", map[string]any{"call": "c"})
		h.event("end-turn", nil)
	}
	before := manifest(h.dir)
	s := h.serve("--auth", "none")
	go func() { // nobody is there any more to answer
		if res, err := http.Post(s.base+"/rewind", "application/json", strings.NewReader(`{"turn":1,"scope":"both"}`)); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	for end := time.Now().Add(20 * time.Second); manifest(h.dir) == before; {
		if time.Now().After(end) {
			t.Fatal("no file was ever written")
		}
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s = h.serve("--auth", "none")
	_, text := s.curl("GET", "/operations", "")
	var log struct{ Operations []struct{ State string } }
	if err := json.Unmarshal([]byte(text), &log); err != nil || len(log.Operations) != 1 {
		t.Fatalf("operations: %s, %v", text, err)
	}
	switch state := log.Operations[0].State; state {
	case "rolled_back":
	case "applied":
		if status, text := s.curl("POST", "/undo-rewind", ""); status != 200 {
			t.Fatalf("undo: %d %s", status, text)
		}
	default:
		t.Errorf("the operation is %s", state)
	}
	if manifest(h.dir) != before {
		t.Error("files are a mixture")
	}
	s.end()
}
