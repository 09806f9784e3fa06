package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
)

// The headers of every response. Nothing is loaded from elsewhere, nothing is put into frames,
// and scripts cannot turn text into markup where the browser knows trusted types.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for k, v := range headers {
		w.Header().Set(k, v)
	}
	t := &tracked{ResponseWriter: w}
	path, rt, err := s.find(r)
	done := s.metrics.begin(r.Method, path)
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // the very value; net/http cuts the connection
				done(t.status)
				panic(p)
			}
			s.o.Log("panic in %s %s: %v\n%s", r.Method, path, p, debug.Stack())
			s.fail(t, r, errInternal)
		}
		done(t.status)
	}()
	if guarded := s.guard(t, r, rt); guarded != nil {
		err = guarded
	}
	if err == nil {
		err = s.handle(t, r, rt)
	}
	if err != nil {
		s.fail(t, r, err)
	}
}

// guard refuses what no route is to see, in the order from what costs least.
func (s *Server) guard(w http.ResponseWriter, r *http.Request, rt route) error {
	if !s.answers(r) {
		return refuse(http.StatusMisdirectedRequest, "misdirected", "this server does not answer to that host name",
			"use localhost, or name the host with --host when the server is started")
	}
	if err := s.cross.Check(r); err != nil {
		return refuse(http.StatusForbidden, "forbidden", "the request comes from another site", "")
	}
	if !rt.open && !s.auth.passes(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="reasonix"`)
		return refuse(http.StatusUnauthorized, "unauthorized", "no token, or a wrong one",
			"open the URL that reasonix serve printed, or send the header Authorization: Bearer TOKEN")
	}
	if s.ended.Load() {
		w.Header().Set("Retry-After", "1")
		return refuse(http.StatusServiceUnavailable, "unavailable", "the server is ending", "try again once it was started anew")
	}
	return nil
}

// handle reads the body and calls the route, when it is this request's turn.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, rt route) error {
	// A body is read before the request waits for its turn: a slow client holds up nobody.
	if err := s.readBody(w, r); err != nil {
		return err
	}
	if rt.free {
		return rt.do(w, r)
	}
	release, ok := s.limit.acquire(r.Context())
	if !ok {
		w.Header().Set("Retry-After", "1")
		return refuse(http.StatusServiceUnavailable, "unavailable", "too many requests at once", "try again in a second")
	}
	defer release()
	return rt.do(w, r)
}

// readBody replaces the body by its bytes in memory.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "a body must be JSON",
			"send the header Content-Type: application/json")
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.Limits.Body))
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is longer than %d bytes", large.Limit), "")
	case errors.As(err, &slow) && slow.Timeout():
		return refuse(http.StatusRequestTimeout, "timeout", "the body took too long", "")
	case err != nil:
		return refuse(http.StatusBadRequest, "bad_request", "the body ended too early", "")
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return nil
}

// hostsOf are the names that a server answers to wherever it listens.
func hostsOf(more []string) map[string]bool {
	all := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	for _, h := range more {
		all[strings.ToLower(h)] = true
	}
	return all
}

// answers reports whether the request was meant for this server. A name that somebody else's DNS
// lets point here is refused, so that no foreign page reads by it. The port may be another one,
// that of a tunnel, and the very address of the connection is no name.
func (s *Server) answers(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if s.hosts[host] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ip := net.ParseIP(host)
	return ok && ip != nil && ip.Equal(local.IP)
}

// tracked remembers the status of a response.
type tracked struct {
	http.ResponseWriter
	status int // 0 while nothing was sent
}

func (t *tracked) WriteHeader(status int) {
	if t.status == 0 {
		t.status = status
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracked) Write(b []byte) (int, error) {
	if t.status == 0 {
		t.status = http.StatusOK
	}
	return t.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }
