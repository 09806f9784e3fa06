package serve

import (
	"net/http"
	"slices"
	"strings"
)

// route is what answers a method of a path.
type route struct {
	method, path string // path is a pattern of http.ServeMux
	do           func(w http.ResponseWriter, r *http.Request) error
	open         bool // without a token
	free         bool // does not wait for its turn: it costs nothing, or counts by itself
}

// table is all routes. openapi.json describes each.
func (s *Server) table() []route {
	return []route{
		{method: "GET", path: "/checkpoints", do: s.checkpoints},
		{method: "GET", path: "/checkpoints/{turn}", do: s.checkpoint},
		{method: "GET", path: "/checkpoints/{turn}/diff", do: s.diff},
		{method: "GET", path: "/sessions", do: s.sessions},
		{method: "GET", path: "/tree", do: s.tree},
		{method: "GET", path: "/operations", do: s.operations},
		{method: "GET", path: "/messages", do: s.messages},
		{method: "GET", path: "/status", do: s.status},
		{method: "POST", path: "/rewind", do: s.rewind},
		{method: "POST", path: "/undo-rewind", do: s.undo},
		{method: "POST", path: "/redo-rewind", do: s.redo},
		{method: "POST", path: "/fork", do: s.fork},
		{method: "POST", path: "/switch", do: s.switchTo},
		{method: "POST", path: "/submit", do: s.submit},
		{method: "POST", path: "/cancel", do: s.cancel, free: true},
		{method: "GET", path: "/events", do: s.events, free: true},
		{method: "GET", path: "/healthz", do: s.healthz, open: true},
		{method: "GET", path: "/metrics", do: s.showMetrics},
		{method: "GET", path: "/openapi.json", do: s.openAPI, free: true},
		{method: "GET", path: "/page/{file...}", do: s.asset, free: true},
		{method: "GET", path: "/{$}", do: s.page, free: true},
	}
}

// route fills the tables in which find looks.
func (s *Server) route() {
	s.routes, s.mux = map[string]map[string]route{}, http.NewServeMux()
	for _, rt := range s.table() {
		if s.routes[rt.path] == nil {
			s.routes[rt.path] = map[string]route{}
			s.mux.HandleFunc(rt.path, func(w http.ResponseWriter, _ *http.Request) { w.(*finder).path = rt.path })
		}
		s.routes[rt.path][rt.method] = rt
	}
}

// finder takes from http.ServeMux which pattern a request fits. What the mux itself would answer,
// a redirect to a cleaned path or a text, is dropped.
type finder struct {
	path   string
	header http.Header
}

func (f *finder) Header() http.Header         { return f.header }
func (f *finder) Write(b []byte) (int, error) { return len(b), nil }
func (f *finder) WriteHeader(int)             {}

// find finds the route of a request, sets the request's path values, and gives the path as a
// pattern, "" when there is none.
func (s *Server) find(r *http.Request) (string, route, error) {
	f := &finder{header: http.Header{}}
	s.mux.ServeHTTP(f, r)
	methods, ok := s.routes[f.path]
	if !ok {
		return "", route{}, notFound("no_such_path", "there is nothing at this path", "GET /openapi.json lists the paths")
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http drops the body
	}
	rt, ok := methods[method]
	if !ok {
		allow := allowed(methods)
		return f.path, route{}, &refusal{
			status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "this path takes " + allow, allow: allow,
		}
	}
	return f.path, rt, nil
}

func allowed(methods map[string]route) string {
	var all []string
	for m := range methods {
		all = append(all, m)
		if m == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
