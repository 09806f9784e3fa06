package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reasonix/internal/worldtest"
)

// Nothing may be left running by any test: no stream, no watcher, no connection.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a world with five turns behind a real server on a real socket.
type served struct {
	*worldtest.World
	base   string
	token  string
	server *Server
	client *http.Client
	end    func() // ends the server and waits for it; may be called twice
}

func newServed(t *testing.T, change func(*Options)) *served {
	t.Helper()
	return serveWorld(t, newWorld(t), change)
}

func serveWorld(t *testing.T, w *worldtest.World, change func(*Options)) *served {
	t.Helper()
	o := Options{Capture: w.Capture, Engine: w.Engine, Version: "test", Log: t.Logf, Limits: Limits{Poll: 5 * time.Millisecond}}
	if change != nil {
		change(&o)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.Must(err)
	s := &served{World: w, base: "http://" + ln.Addr().String(), token: o.Token, server: New(o)}
	s.client = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, ln) }()
	ended := false
	s.end = func() {
		cancel()
		if !ended {
			ended = true
			if err := <-done; err != nil {
				t.Errorf("serve: %v", err)
			}
		}
		s.client.CloseIdleConnections()
	}
	t.Cleanup(s.end)
	return s
}

// newWorld plays five turns: a.txt changes in each, and each adds a file.
func newWorld(t testing.TB) *worldtest.World {
	w := worldtest.New(t)
	for i := range 5 {
		prompt := fmt.Sprintf("prompt %d <script>alert(1)</script>", i)
		message, err := json.Marshal(map[string]string{"role": "user", "content": prompt})
		w.Must(err)
		w.Turn(prompt, []json.RawMessage{message}, func() {
			w.Write("a.txt", fmt.Sprintf("text of turn %d\n", i), 0o644)
			w.Write(fmt.Sprintf("d/f%d.txt", i), "x\n", 0o644)
		})
	}
	return w
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; body "" means none. It checks what holds for every answer.
func (s *served) do(method, path, body string, header ...string) answer {
	s.T.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(s.T.Context(), method, s.base+path, from)
	s.Must(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	res, err := s.client.Do(r)
	s.Must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	s.Must(err)
	a := answer{res.StatusCode, res.Header, string(b)}
	s.check(method, path, a)
	return a
}

// check is what holds for every answer: the headers of security are there, an error says what it
// is, and nothing names the folder of the workspace but those who are asked for it.
func (s *served) check(method, path string, a answer) {
	s.T.Helper()
	for name := range headers {
		if a.header.Get(name) == "" {
			s.T.Errorf("%s %s: no header %s", method, path, name)
		}
	}
	if a.status >= 400 && method != http.MethodHead && !strings.Contains(a.header.Get("Content-Type"), "text/html") {
		var e errorJSON
		if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
			s.T.Errorf("%s %s: %d without an error: %s", method, path, a.status, a.body)
		}
		if strings.Contains(a.body, s.Dir) || strings.Contains(a.body, s.Capture.Store.Path()) || strings.Contains(a.body, "goroutine") {
			s.T.Errorf("%s %s: the error tells too much: %s", method, path, a.body)
		}
	}
}

// want ends the test unless an answer has a status and, as its error, a code and a reason.
func (s *served) want(a answer, status int, words ...string) answer {
	s.T.Helper()
	var e errorJSON
	_ = json.Unmarshal([]byte(a.body), &e)
	got := []string{e.Error.Code, e.Error.Reason}
	for i, w := range words {
		if got[i] != w {
			s.T.Fatalf("%s in place of %s: %d %s", got[i], w, a.status, a.body)
		}
	}
	if a.status != status {
		s.T.Fatalf("%d in place of %d: %s", a.status, status, a.body)
	}
	return a
}

// read decodes an answer.
func read[T any](s *served, a answer) (v T) {
	s.T.Helper()
	s.want(a, http.StatusOK)
	d := json.NewDecoder(strings.NewReader(a.body))
	s.Must(d.Decode(&v))
	return v
}

// stream is an open event stream.
type stream struct {
	s     *served
	res   *http.Response
	lines *bufio.Scanner
	close func()
}

// sent is an event as a client reads it.
type sent struct {
	id, name, data string
	comment        string
}

func (s *served) listen(header ...string) *stream {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, "GET", s.base+"/events", nil)
	s.Must(err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := s.client.Do(r)
	s.Must(err)
	st := &stream{s: s, res: res, lines: bufio.NewScanner(res.Body)}
	st.close = func() { cancel(); _ = res.Body.Close() }
	s.T.Cleanup(st.close)
	return st
}

// next reads to the end of the next block; ok is false at the end of the stream.
func (st *stream) next() (e sent, ok bool) {
	for st.lines.Scan() {
		name, value, _ := strings.Cut(st.lines.Text(), ": ")
		switch name {
		case "":
			if value == "" && st.lines.Text() == "" {
				return e, true
			}
			e.comment = value
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		}
	}
	return e, false
}

// until reads events up to the first one of a name.
func (st *stream) until(name string) sent {
	st.s.T.Helper()
	for {
		e, ok := st.next()
		if !ok {
			st.s.T.Fatalf("the stream ended before %s: %v", name, st.lines.Err())
		}
		if e.name == name {
			return e
		}
	}
}

// agentStub is an agent that does what a test says.
type agentStub struct {
	submit func(string) (int, error)
	cancel func() (bool, error)
}

func (a *agentStub) Submit(_ context.Context, prompt string, tell func(Progress)) (int, error) {
	tell(Progress{Session: "abcd1234", Turn: 5, Kind: "text", Text: "<b>" + prompt})
	return a.submit(prompt)
}

func (a *agentStub) Cancel(context.Context) (bool, error) { return a.cancel() }
