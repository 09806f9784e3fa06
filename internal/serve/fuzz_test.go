package serve

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/worldtest"
)

// FuzzBody sends any body to any path that moves something. Whatever it is, the answer is JSON
// with a status that is documented; a refused one changes nothing, and what was done can be
// undone.
func FuzzBody(f *testing.F) {
	for i, body := range []string{
		`{"turn":4,"scope":"both"}`, `{}`, `{"turn":3}`, `{"session":"-"}`, `{"operation":"1"}`, `{"turn":2,"paths":["a.txt"],"force":true}`,
		`{"turn":1,"scope":"code","skip_conflicts":true}`, `{"turn":-1}`, `{"turn":null}`, `[`, `{"turn":1,"turn":2}`, `{"paths":[{"b64":"Lg=="}],"turn":0}`,
		`{"prompt":"x"}`, "\xff\x00", `{"turn":1e3}`, `{"turn":2,"name":"x","code":true}`, `{"turn":4,"plan":"x"}`,
	} {
		f.Add(uint8(i), body)
	}
	w := newWorld(f)
	s := New(Options{Capture: w.Capture, Engine: w.Engine})
	paths := []string{"/rewind", "/undo-rewind", "/redo-rewind", "/fork", "/switch", "/submit", "/cancel"}
	post := func(path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		return rec
	}
	f.Fuzz(func(t *testing.T, to uint8, body string) {
		before := worldtest.Files(t, w.Dir)
		path := paths[int(to)%len(paths)]
		rec := post(path, body)
		var object map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &object); err != nil {
			t.Fatalf("POST %s %q: %d, no JSON: %s", path, body, rec.Code, rec.Body)
		}
		switch rec.Code {
		case 200:
			if object["operation"] == nil || object["kind"] == "fork" || object["kind"] == "switch" {
				return
			}
			if back := post("/undo-rewind", `{"session":"`+object["session"].(string)+`"}`); back.Code != 200 {
				t.Fatalf("POST %s %q cannot be undone: %s", path, body, back.Body)
			}
		case 400, 404, 409, 413:
			if object["error"] == nil {
				t.Fatalf("POST %s %q: %d without an error: %s", path, body, rec.Code, rec.Body)
			}
		default:
			t.Fatalf("POST %s %q: %d %s", path, body, rec.Code, rec.Body)
		}
		if d := cmp.Diff(before, worldtest.Files(t, w.Dir)); d != "" && object["kind"] != "undo" && object["kind"] != "redo" {
			t.Fatalf("POST %s %q: %d, and files differ:\n%s", path, body, rec.Code, d)
		}
	})
}

// FuzzQuery asks for anything. The answer is never a fault of the server.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"/checkpoints?limit=2&before=3", "/checkpoints/1/diff?to=disk&path=a.txt", "/messages?at=1&from=0", "/operations?limit=1", "/checkpoints/latest?session=abcd1234", "/?token=x", "/page/%2e%2e/x", "/checkpoints?q=%00", "/tree?x"} {
		f.Add(q)
	}
	w := newWorld(f)
	s := New(Options{Capture: w.Capture, Engine: w.Engine})
	f.Fuzz(func(t *testing.T, target string) {
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		u, err := r.URL.Parse(target)
		if err != nil || strings.HasPrefix(u.Path, "/events") || !strings.HasPrefix(u.Path, "/") {
			return
		}
		r.URL = u
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if rec.Code >= 500 || strings.Contains(rec.Body.String(), "goroutine ") {
			t.Fatalf("GET %q: %d %s", target, rec.Code, rec.Body)
		}
	})
}
