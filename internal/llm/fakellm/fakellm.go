// Package fakellm is a server that speaks the protocol of internal/llm and answers from a script:
// for tests, and for running the agent without a network. It is as strict as a real one: it
// refuses conversations whose tool calls are not all answered, or whose reasoning was lost. And it
// is as awkward: texts split anywhere, calls interleaved, silence, cut connections.
package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Options change a server; the zero value is a friendly one without a script.
type Options struct {
	// Replies are given in order; one with When is given only to a request that fits it.
	Replies []Reply
	// Key is the key that requests must bring; "" takes any.
	Key string
	// Chunk is how many bytes of a text go into one event; 0 means 7, which splits most things in
	// the middle of something.
	Chunk int
	// Answer, when set, is asked where no scripted reply fits.
	Answer func(Request) (Reply, bool)
}

// Request is a request that came, for assertions.
type Request struct {
	Body     []byte            `json:"-"` // exactly as it came
	Model    string            `json:"model"`
	Messages []json.RawMessage `json:"messages"`
	Tools    json.RawMessage   `json:"tools"`
	Stream   bool              `json:"stream"`
	Thinking struct {
		Type string `json:"type"`
	} `json:"thinking"`
	Hit   int64 `json:"-"` // tokens of the messages that an earlier request began with too
	Total int64 `json:"-"` // tokens of all messages
}

// Last is the text of the newest message.
func (r Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	var m struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(r.Messages[len(r.Messages)-1], &m) // one without a text has none
	return m.Content
}

// Server answers from its script. It is an http.Handler, safe for concurrent use.
type Server struct {
	o      Options
	gone   chan struct{}
	inside *inside

	mu       sync.Mutex // guards what follows
	replies  []Reply
	requests []Request
	refused  []string
}

// New makes a server. It listens nowhere by itself: it is a handler, and Client reaches it
// without a network.
func New(o Options) *Server {
	if o.Chunk == 0 {
		o.Chunk = 7
	}
	s := &Server{o: o, replies: slices.Clone(o.Replies), gone: make(chan struct{})}
	s.inside = newInside(s)
	return s
}

// Close ends answers that are silent on purpose, and connections made by Client.
func (s *Server) Close() {
	close(s.gone)
	s.inside.close()
}

// Client is an HTTP client whose requests, to whatever address, are answered by s within this
// process.
func (s *Server) Client() *http.Client { return s.inside.client() }

// Add appends replies to the script.
func (s *Server) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Drop forgets the replies that were not asked for.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = nil
}

// Requests are those that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refused says why requests were refused as malformed; a client that keeps to the protocol has
// none of these.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Left is how many scripted replies were not asked for.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replies)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		fail(w, http.StatusNotFound, "no such address: "+r.Method+" "+r.URL.Path)
		return
	}
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); s.o.Key != "" && (!ok || key != s.o.Key) {
		fail(w, http.StatusUnauthorized, "Authentication fails: the key "+key+" is invalid")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	req := Request{Body: body}
	if err := json.Unmarshal(body, &req); err != nil {
		s.refuse(w, "the body is malformed: "+err.Error())
		return
	}
	if why := check(req); why != "" {
		s.refuse(w, why)
		return
	}
	reply, ok := s.take(&req)
	if !ok {
		s.refuse(w, "the script is at its end: no line is left for this request")
		return
	}
	s.give(w, r, req, reply)
}

// take records a request and picks its reply.
func (s *Server) take(req *Request) (Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range req.Messages {
		req.Total += tokens(m)
	}
	for _, old := range s.requests {
		if bytes.Equal(old.Tools, req.Tools) && old.Model == req.Model {
			req.Hit = max(req.Hit, common(old.Messages, req.Messages))
		}
	}
	s.requests = append(s.requests, *req)
	for i, r := range s.replies {
		if r.When == "" || strings.Contains(req.Last(), r.When) {
			s.replies = slices.Delete(s.replies, i, i+1)
			return r, true
		}
	}
	if s.o.Answer != nil {
		return s.o.Answer(*req)
	}
	return Reply{}, false
}

func (s *Server) refuse(w http.ResponseWriter, why string) {
	s.mu.Lock()
	s.refused = append(s.refused, why)
	s.mu.Unlock()
	fail(w, http.StatusBadRequest, why)
}

// tokens is what a message costs here: a quarter of its bytes.
func tokens(m json.RawMessage) int64 { return int64(len(m)+3) / 4 }

// common is what the messages cost with which both conversations begin.
func common(a, b []json.RawMessage) (n int64) {
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			break
		}
		n += tokens(a[i])
	}
	return n
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "error", "param": nil, "code": fmt.Sprint(status)}})
	_, _ = w.Write(b)
}
