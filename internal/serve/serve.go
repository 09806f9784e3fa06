// Package serve answers over HTTP what the command line prints, and moves what it moves, for one
// workspace: a JSON API, a stream of events, and a page that stands on both. docs/http.md is the
// contract. It holds no rules of its own about history: views, moves and shapes come from the
// packages that the command line uses.
//
// Terms: a route is a path with its method; a guard refuses a request before any route sees it;
// a stream is an open GET /events.
package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"reasonix/internal/capture"
	"reasonix/internal/move"
	"reasonix/internal/view"
	"reasonix/rewind"
	"reasonix/store"
)

// Agent runs turns. Its methods are called by many goroutines.
type Agent interface {
	// Submit begins a turn with a prompt and returns its number; the turn then goes on by itself,
	// and calls tell, one call at a time, with what it does. It returns an error that is
	// rewind.ErrBusy while one runs.
	Submit(ctx context.Context, prompt string, tell func(Progress)) (turn int, err error)
	// Cancel stops the turn that runs and reports whether there was one.
	Cancel(ctx context.Context) (bool, error)
}

// Progress is a piece of what an agent does in a turn: what nobody reads in the history, or not yet.
type Progress struct {
	Session store.SessionID `json:"session"`
	Turn    int             `json:"turn"`
	// Kind is text or reasoning for a piece of the answer, discarded when the pieces since the last
	// message are void, notice for what a person should know, error for what ended the turn.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Options say what is served and to whom.
type Options struct {
	Capture *capture.Capturer // the workspace and its store; not closed by the server
	Engine  *rewind.Engine
	// Agent runs what is submitted; nil means that the server only shows recorded sessions.
	Agent Agent
	// Policy is what the agent may do, for people to know: ask, auto-edit or full; "" without one.
	Policy string
	// Token is asked of every request but GET /healthz; "" means that nothing is asked.
	Token string
	// Hosts are names that the server answers to besides localhost and the address of the
	// connection, without ports.
	Hosts []string
	// Nested are other workspaces in or around this one.
	Nested  []string
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log takes what only the person who runs the server should read; nil drops it. It is called
	// by many goroutines.
	Log    func(format string, args ...any)
	Limits Limits
}

// Limits bound what clients can take. Zero fields mean the values for every day.
type Limits struct {
	Header, Read, Idle time.Duration // for the head of a request, for all of it, between two: 5 s, 30 s, 60 s
	Write              time.Duration // for a response, and for each piece of a stream: 30 s
	Move               time.Duration // for a move, which goes on when the client leaves: 5 min
	Drain              time.Duration // for requests in progress when the server ends: 10 s
	Wait               time.Duration // that a request waits for its turn: 10 s
	Ping               time.Duration // between two signs of life of a stream: 15 s
	Poll               time.Duration // between two looks at what others changed: 250 ms
	Body               int64         // bytes of a request's body: 1 MiB
	Running            int           // requests at work at once: 16
	Waiting            int           // requests that wait for their turn: 256
	Streams            int           // open streams: 256
	Events             int           // events that are kept for streams that come back: 4096
}

func (l Limits) orDefaults() Limits {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	count := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&l.Header, 5*time.Second)
	def(&l.Read, 30*time.Second)
	def(&l.Idle, 60*time.Second)
	def(&l.Write, 30*time.Second)
	def(&l.Move, 5*time.Minute)
	def(&l.Drain, 10*time.Second)
	def(&l.Wait, 10*time.Second)
	def(&l.Ping, 15*time.Second)
	def(&l.Poll, 250*time.Millisecond)
	count(&l.Running, 16)
	count(&l.Waiting, 256)
	count(&l.Streams, 256)
	count(&l.Events, 4096)
	if l.Body <= 0 {
		l.Body = 1 << 20
	}
	return l
}

// Server serves one workspace. It is safe for concurrent use.
type Server struct {
	o       Options
	view    *view.Viewer
	mover   move.Mover
	auth    auth
	hosts   map[string]bool
	cross   *http.CrossOriginProtection
	limit   *limiter
	hub     *hub
	watcher *watcher
	metrics *metrics
	routes  map[string]map[string]route // by path pattern, then by method
	mux     *http.ServeMux
	ended   atomic.Bool
}

// New makes a server.
func New(o Options) *Server {
	o.Limits = o.Limits.orDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	s := &Server{
		o: o, view: view.New(o.Capture), mover: move.Mover{Capture: o.Capture, Engine: o.Engine},
		auth: newAuth(o.Token), hosts: hostsOf(o.Hosts), cross: http.NewCrossOriginProtection(),
		limit: newLimiter(o.Limits), hub: newHub(instance(), o.Limits.Events), metrics: newMetrics(o.Now()),
	}
	s.watcher = newWatcher(o.Capture.Store, s.hub)
	s.route()
	return s
}

// instance tells one run of the server from another in the ids of events.
func instance() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails, it ends the process instead
	return hex.EncodeToString(b[:])
}

// Serve answers on ln until ctx is done. It then takes no new request, ends the streams, waits
// for requests in progress as long as Limits.Drain allows, and returns nil. ln is closed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	l, opened := s.o.Limits, &fresh{conns: map[net.Conn]bool{}}
	srv := &http.Server{
		Handler:           s,
		ConnState:         opened.state,
		ReadHeaderTimeout: l.Header, ReadTimeout: l.Read, IdleTimeout: l.Idle,
		WriteTimeout:   l.Move + l.Wait + l.Write, // each response sets a nearer one when it begins
		MaxHeaderBytes: 32 << 10,
		ErrorLog:       logger(s.o.Log),
		// What was begun is ended, also when ctx is done.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watcher.run(watching, l.Poll, s.o.Log)
	}()
	defer func() { stop(); <-watched }()

	drained := make(chan error, 1)
	end := context.AfterFunc(ctx, func() { drained <- s.drain(srv, opened) })
	err := srv.Serve(ln)
	if end() { // it was not asked to end
		s.hub.close()
		return errors.Join(fmt.Errorf("serve: %w", err), srv.Close())
	}
	return <-drained
}

func (s *Server) drain(srv *http.Server, opened *fresh) error {
	s.ended.Store(true)
	s.hub.close()
	opened.close()
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Limits.Drain)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		s.o.Log("requests were still in progress after %v and were cut off", s.o.Limits.Drain)
		return srv.Close()
	}
	return nil
}
