//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// serving is a process of the program that serves a workspace.
type serving struct {
	*hooked
	cmd    *exec.Cmd
	stderr bytes.Buffer
	url    string // as it was printed
	base   string
}

// serve starts the program and waits until it says where it listens.
func (h *hooked) serve(args ...string) *serving {
	h.t.Helper()
	s := &serving{hooked: h, cmd: exec.Command("reasonix", append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = h.dir, h.env, &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatalf("%v: %s", err, s.stderr.String())
	}
	s.url = strings.TrimSpace(line)
	s.base, _, _ = strings.Cut(s.url, "/?")
	s.base = strings.TrimSuffix(strings.Replace(s.base, "127.0.0.1", "localhost", 1), "/")
	return s
}

// end asks the process to end, which it does at once and without complaint.
func (s *serving) end() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("serve: %v\n%s", err, s.stderr.String())
	}
	s.run(nil, "verify", "--deep")
}

// curl is what curl does with a method, a path and, when it is not empty, JSON.
func (s *serving) curl(method, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "curl/8.14.1")
	r.Header.Set("Accept", "*/*")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// answer is curl for what must succeed.
func (s *serving) answer(method, path, body string, into any) {
	s.t.Helper()
	status, text := s.curl(method, path, body)
	if status != 200 {
		s.t.Fatalf("%s %s %s: %d %s", method, path, body, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

// sixTurns plays turns that change a file and add one, by processes of the program.
func (h *hooked) sixTurns() {
	h.t.Helper()
	for i := range 6 {
		added := fmt.Sprintf("added%d", i)
		h.event("begin-turn", map[string]any{"prompt": fmt.Sprintf("turn %d", i)}, fmt.Sprintf(`{"role":"user","content":"turn %d"}`, i))
		h.event("before-edit", map[string]any{"call": "c", "paths": []string{"main.go", added}})
		for _, name := range []string{"main.go", added} {
			if err := os.WriteFile(filepath.Join(h.dir, name), fmt.Appendf(nil, "package main // %d\n", i), 0o644); err != nil {
				h.t.Fatal(err)
			}
		}
		h.event("after-edit", map[string]any{"call": "c"})
		h.event("end-turn", nil)
	}
}

// The plain calls, as curl sends them to a real process with --auth none; undo and redo; and the
// command line and a browser's stream see each other's operations.
func TestServePlainCalls(t *testing.T) {
	h := newHooked(t)
	h.sixTurns()
	before := manifest(h.dir)
	s := h.serve("--auth", "none")
	stream, err := http.Get(s.base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	events := bufio.NewScanner(stream.Body)
	until := func(words ...string) {
		t.Helper()
		for events.Scan() {
			has := true
			for _, w := range words {
				has = has && strings.Contains(events.Text(), w)
			}
			if has {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", words, events.Err())
	}

	var checkpoints []struct {
		Turn   int
		Prompt string
		Files  []struct{ Path, Change string }
	}
	s.answer("GET", "/checkpoints", "", &checkpoints)
	if len(checkpoints) != 6 || checkpoints[0].Turn != 0 || checkpoints[5].Prompt != "turn 5" || checkpoints[4].Files[0].Change != "created" {
		t.Errorf("checkpoints: %+v", checkpoints)
	}

	var move struct {
		Operation, Undoes string
		Written, Deleted  []string
		Messages          int
		DryRun            bool `json:"dry_run"`
	}
	s.answer("POST", "/rewind", `{"turn":4,"scope":"both"}`, &move)
	until(`"kind":"rewind"`, `"turn":4`)
	if fmt.Sprint(move.Written, move.Deleted) != "[main.go] [added4 added5]" || move.Messages != 4 {
		t.Errorf("rewind: %+v", move)
	}
	if b, err := os.ReadFile(filepath.Join(h.dir, "main.go")); err != nil || string(b) != "package main // 3\n" {
		t.Errorf("main.go: %q, %v", b, err)
	}
	after := manifest(h.dir)

	var fork struct {
		BranchID string `json:"branchId"`
		Parent   string
		Messages int
	}
	s.answer("POST", "/fork", `{"turn":3}`, &fork)
	until(`"kind":"fork"`, fork.BranchID)
	if fork.BranchID == "" || fork.Parent == "" || fork.Messages != 3 || manifest(h.dir) != after {
		t.Errorf("fork: %+v", fork)
	}
	if tree := h.run(nil, "tree"); !bytes.Contains(tree, []byte(fork.BranchID)) {
		t.Errorf("the command line does not know the fork:\n%s", tree)
	}
	h.run(nil, "switch", "-")
	until(`"kind":"switch"`)

	s.answer("POST", "/undo-rewind", `{}`, &move)
	if got := manifest(h.dir); got != before {
		t.Errorf("undo:\n%s\nwant\n%s", got, before)
	}
	s.answer("POST", "/redo-rewind", `{}`, &move)
	if got := manifest(h.dir); got != after {
		t.Errorf("redo:\n%s\nwant\n%s", got, after)
	}
	h.run(nil, "undo-rewind") // what HTTP did, the command line takes back
	until(`"kind":"undo"`)
	until(`"kind":"redo"`)
	until(`"kind":"undo"`)
	if got := manifest(h.dir); got != before {
		t.Errorf("undo by the command line:\n%s\nwant\n%s", got, before)
	}
	h.event("begin-turn", map[string]any{"prompt": "of another process"})
	until(`"prompt":"of another process"`)
	if status, text := s.curl("POST", "/rewind", `{"turn":2}`); status != 409 || !strings.Contains(text, `"busy"`) {
		t.Errorf("while a turn runs: %d %s", status, text)
	}
	h.event("end-turn", nil)
	until(`"status":"done"`)
	s.end()
	if events.Scan() && strings.Contains(events.Text(), "event") {
		t.Errorf("after the end: %s", events.Text())
	}
}

// By default a token is asked; the printed URL has it, and it is another one at each start.
func TestServeToken(t *testing.T) {
	h := newHooked(t)
	h.sixTurns()
	s := h.serve()
	if status, _ := s.curl("GET", "/checkpoints", ""); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	if status, _ := s.curl("GET", "/healthz", ""); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	_, token, ok := strings.Cut(s.url, "/?token=")
	if !ok || len(token) < 40 {
		t.Fatalf("printed: %s", s.url)
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.base+"/checkpoints", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != 200 {
		t.Errorf("with the token: %v, %v", res, err)
	}
	_ = res.Body.Close()
	s.end()
	if strings.Contains(s.stderr.String(), token) {
		t.Error("the token is on standard error too")
	}
	other := h.serve("--json")
	var printed struct{ URL, Addr, Token string }
	if err := json.Unmarshal([]byte(other.url), &printed); err != nil || printed.Token == token || !strings.HasSuffix(printed.URL, printed.Token) {
		t.Errorf("printed: %s, %v", other.url, err)
	}
	other.end()
}
