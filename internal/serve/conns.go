package serve

import (
	"net"
	"net/http"
	"sync"
)

// fresh knows the connections on which no request has begun. Browsers open some in advance;
// http.Server.Shutdown would wait five seconds for each.
type fresh struct {
	mu    sync.Mutex // guards what follows
	conns map[net.Conn]bool
	ended bool // others that still come are closed at once
}

// state is http.Server.ConnState.
func (f *fresh) state(c net.Conn, s http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case s != http.StateNew:
		delete(f.conns, c)
	case f.ended:
		_ = c.Close() // nobody has sent anything on it
	default:
		f.conns[c] = true
	}
}

// close closes them.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for c := range f.conns {
		_ = c.Close() // nobody has sent anything on it
	}
}
