package serve

import (
	"net"
	"net/http"
	"sync"
)

// fresh knows the connections on which no request has begun. Browsers open some in advance;
// http.Server.Shutdown would wait five seconds for each.
type fresh struct {
	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// state is http.Server.ConnState.
func (f *fresh) state(c net.Conn, s http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == http.StateNew {
		f.conns[c] = true
	} else {
		delete(f.conns, c)
	}
}

// close closes them.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
}
