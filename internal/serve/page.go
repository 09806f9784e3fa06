package serve

import (
	"crypto/sha256"
	"embed"
	_ "embed" // openapi.json
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// files is the page: plain HTML, CSS and ES modules.
//
//go:embed page
var files embed.FS

//go:embed openapi.json
var openAPIDocument []byte

// kinds are the files that a page may consist of. Their types are not left to the system's tables.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json",
}

// page answers with the page, or takes the token of the printed URL.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Has("token") {
		s.auth.enter(w, r)
		return nil
	}
	return s.file(w, r, "index.html")
}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	return s.file(w, r, r.PathValue("file"))
}

func (s *Server) file(w http.ResponseWriter, r *http.Request, name string) error {
	kind, known := kinds[path.Ext(name)]
	b, err := fs.ReadFile(files, "page/"+name)
	if err != nil || !known || !fs.ValidPath(name) {
		return notFound("no_such_path", "there is no such file", "")
	}
	return s.static(w, r, kind, b)
}

// static answers with bytes that change with the program only.
func (s *Server) static(w http.ResponseWriter, r *http.Request, kind string, b []byte) error {
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("ETag", tag)
	if has := r.Header.Get("If-None-Match"); has == "*" || strings.Contains(has, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	s.send(w, http.StatusOK, kind, b)
	return nil
}

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	return s.static(w, r, "application/json", openAPIDocument)
}
