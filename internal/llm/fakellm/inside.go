package fakellm

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// inside is an HTTP server that is reached by pipes within this process.
type inside struct {
	conns  chan net.Conn
	done   chan struct{}
	begin  func()
	ending sync.Once
	server *http.Server
}

func newInside(h http.Handler) *inside {
	in := &inside{conns: make(chan net.Conn), done: make(chan struct{})}
	in.server = &http.Server{Handler: h} //nolint:gosec // only this process reaches it
	in.begin = sync.OnceFunc(func() { go func() { _ = in.server.Serve(in) }() })
	return in
}

func (in *inside) client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		in.begin()
		there, here := net.Pipe()
		select {
		case in.conns <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-in.done:
			return nil, net.ErrClosed
		}
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial, DisableKeepAlives: true}}
}

func (in *inside) close() {
	in.ending.Do(func() { close(in.done) })
	_ = in.server.Close() // of a fake
}

// Accept gives the connections that the client dials.
func (in *inside) Accept() (net.Conn, error) {
	select {
	case c := <-in.conns:
		return c, nil
	case <-in.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (in *inside) Close() error {
	in.ending.Do(func() { close(in.done) })
	return nil
}

// Addr names the server.
func (in *inside) Addr() net.Addr { return &net.UnixAddr{Name: "fakellm", Net: "pipe"} }
