package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// turnsOf are the numbers of a page of checkpoints.
func turnsOf(all []checkpointJSON) (turns []int) {
	for _, c := range all {
		turns = append(turns, c.Turn)
	}
	return turns
}

// Pages run from the newest to the oldest, each oldest first, linked to the next.
func TestCheckpointPages(t *testing.T) {
	s := newServed(t, nil)
	path, got := "/checkpoints?limit=2", [][]int{}
	for path != "" {
		a := s.do("GET", path, "")
		got = append(got, turnsOf(read[[]checkpointJSON](s, a)))
		if a.header.Get("Reasonix-Turns") != "5" || a.header.Get("Reasonix-Session") != string(s.ID) {
			t.Errorf("headers: %v", a.header)
		}
		link := a.header.Get("Link")
		path = ""
		if link != "" {
			next, ok := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
			if !ok {
				t.Fatalf("Link: %s", link)
			}
			path = next
		}
	}
	if d := cmp.Diff([][]int{{3, 4}, {1, 2}, {0}}, got); d != "" {
		t.Error(d)
	}
	one := read[[]checkpointJSON](s, s.do("GET", "/checkpoints?before=1&stat=true", ""))
	if len(one) != 1 || one[0].Time == "" || one[0].FileCount != 3 || *one[0].Files[0].Added != 1 {
		t.Errorf("turn 0: %+v", one)
	}
	if _, err := fmt.Sscanf(one[0].Time, "%d-", new(int)); err != nil || !strings.HasSuffix(one[0].Time, "Z") {
		t.Errorf("time %s", one[0].Time)
	}
}

// A search finds texts of prompts and names of files, pages too, and nothing else.
func TestSearch(t *testing.T) {
	s := newServed(t, nil)
	for q, want := range map[string][]int{
		"PROMPT+3": {3}, "f2.txt": {2}, "D%2F": {0, 1, 2, 3, 4}, "nothing+like+it": nil, "text+of": nil,
	} {
		if got := turnsOf(read[[]checkpointJSON](s, s.do("GET", "/checkpoints?q="+q, ""))); !cmp.Equal(got, want) {
			t.Errorf("q=%s: %v, want %v", q, got, want)
		}
	}
	a := s.do("GET", "/checkpoints?q=a.txt&limit=2", "")
	if got := turnsOf(read[[]checkpointJSON](s, a)); !cmp.Equal(got, []int{3, 4}) || !strings.Contains(a.header.Get("Link"), "before=3&limit=2&q=a.txt") {
		t.Errorf("a page of a search: %v, Link %s", got, a.header.Get("Link"))
	}
}

// One checkpoint has all its files; turns that are not there are not found.
func TestCheckpoint(t *testing.T) {
	s := newServed(t, nil)
	for _, ref := range []string{"4", "latest"} {
		one := read[turnJSON](s, s.do("GET", "/checkpoints/"+ref, ""))
		if one.Turn.Turn != 4 || len(one.Turn.Files) != 2 || one.FileCount != 2 || one.Turn.Files[1].After.Size != 2 {
			t.Errorf("turn %s: %+v", ref, one)
		}
	}
	s.want(s.do("GET", "/checkpoints/5", ""), 404, "not_found", "no_turn")
	s.want(s.do("GET", "/checkpoints/0?session=nobody", ""), 404, "not_found", "no_session")
	for _, ref := range []string{"-1", "x", "1e3", "%2e%2e", "0x1", "+1", "1%2Fdiff", "99999999999999999999"} {
		s.want(s.do("GET", "/checkpoints/"+ref, ""), 400, "bad_request")
	}
}

// Differences: what a turn did, between any two sides, of some paths, with the disk.
func TestDiff(t *testing.T) {
	s := newServed(t, nil)
	names := func(path string) (all []string) {
		for _, f := range read[diffJSON](s, s.do("GET", path, "")).Files {
			all = append(all, f.Path)
		}
		return all
	}
	s.Put("d/f0.txt", "by hand\n", 0o644)
	for path, want := range map[string][]string{
		"/checkpoints/2/diff":                     {"a.txt", "d/f2.txt"},
		"/checkpoints/2/diff?to=4":                {"a.txt", "d/f2.txt", "d/f3.txt"},
		"/checkpoints/4/diff?to=2":                {"a.txt", "d/f2.txt", "d/f3.txt"},
		"/checkpoints/4/diff?to=disk":             {"a.txt", "d/f0.txt", "d/f4.txt"},
		"/checkpoints/5/diff":                     {"d/f0.txt"},
		"/checkpoints/2/diff?path=d":              {"d/f2.txt"},
		"/checkpoints/2/diff?path=a.txt&path=d":   {"a.txt", "d/f2.txt"},
		"/checkpoints/0/diff?to=latest&path=./d/": {"d/", "d/f0.txt", "d/f1.txt", "d/f2.txt", "d/f3.txt"},
	} {
		if got := names(path); !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	lines := read[diffJSON](s, s.do("GET", "/checkpoints/2/diff?path=a.txt", "")).Files[0].Hunks[0].Lines
	if len(lines) != 2 || lines[0].Op != "-" || lines[0].Text != "text of turn 1" || lines[1].Text != "text of turn 2" {
		t.Errorf("lines: %+v", lines)
	}
	s.want(s.do("GET", "/checkpoints/2/diff?path=never", ""), 404, "not_found", "no_path")
	s.want(s.do("GET", "/checkpoints/2/diff?path=../x", ""), 404, "not_found", "outside_workspace")
	s.want(s.do("GET", "/checkpoints/2/diff?to=9", ""), 404, "not_found", "no_turn")
	s.want(s.do("GET", "/checkpoints/2/diff?to=here", ""), 400, "bad_request")
}

// A difference with too many lines is cut, and says so.
func TestDiffIsCapped(t *testing.T) {
	w := newWorld(t)
	w.Turn("many lines", nil, func() {
		w.Write("big.txt", strings.Repeat("a line\n", maxDiffLines+100), 0o644)
		w.Write("small.txt", "x\n", 0o644)
	})
	s := serveWorld(t, w, nil)
	d := read[diffJSON](s, s.do("GET", "/checkpoints/5/diff?to=6", ""))
	n := 0
	for _, f := range d.Files {
		for _, h := range f.Hunks {
			n += len(h.Lines)
		}
	}
	if !d.Truncated || n != maxDiffLines || len(d.Files) != 1 || d.Files[0].Added != maxDiffLines+100 {
		t.Errorf("truncated %v, %d lines, %d files", d.Truncated, n, len(d.Files))
	}
	if small := read[diffJSON](s, s.do("GET", "/checkpoints/5/diff?to=6&path=small.txt", "")); small.Truncated || len(small.Files) != 1 {
		t.Errorf("one path: %+v", small)
	}
}

// Messages come byte for byte, in parts where that is asked for.
func TestMessages(t *testing.T) {
	s := newServed(t, nil)
	line := func(i int) string {
		return fmt.Sprintf(`{"content":"prompt %d \u003cscript\u003ealert(1)\u003c/script\u003e","role":"user"}`+"\n", i)
	}
	a := s.want(s.do("GET", "/messages", ""), 200)
	if a.body != line(0)+line(1)+line(2)+line(3)+line(4) || a.header.Get("Reasonix-Messages") != "5" || a.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("all: %s %v", a.body, a.header)
	}
	for path, want := range map[string]string{
		"/messages?at=2": line(0) + line(1), "/messages?from=1&limit=2": line(1) + line(2), "/messages?at=0": "", "/messages?from=9": "",
		"/messages?at=5": a.body, "/messages?effective=true": a.body, "/messages?effective=true&at=1": line(0), "/messages?effective=true&at=0": "",
	} {
		if a := s.want(s.do("GET", path, ""), 200); a.body != want {
			t.Errorf("%s: %q, want %q", path, a.body, want)
		}
	}
	if link := s.do("GET", "/messages?from=1&limit=2", "").header.Get("Link"); link != `</messages?from=3&limit=2>; rel="next"` {
		t.Errorf("Link: %s", link)
	}
	s.want(s.do("GET", "/messages?effective=true&from=1", ""), 400, "bad_request")
	s.want(s.do("GET", "/messages?at=-1", ""), 400, "bad_request")
	s.want(s.do("GET", "/messages?at=6", ""), 404, "not_found")
}

// The page and its files: their types, that they are checked against what a browser has, and that
// nothing else of the program is there.
func TestPage(t *testing.T) {
	s := newServed(t, nil)
	a := s.want(s.do("GET", "/", ""), 200)
	if a.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(a.body, "/page/app.js") {
		t.Errorf("page: %v", a.header)
	}
	csp := a.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(csp, part) || strings.Contains(csp, "unsafe") {
			t.Errorf("Content-Security-Policy: %s", csp)
		}
	}
	if again := s.do("GET", "/", "", "If-None-Match", a.header.Get("ETag")); again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("not changed: %d %q", again.status, again.body)
	}
	if js := s.want(s.do("GET", "/page/app.js", ""), 200); js.header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("app.js: %v", js.header)
	}
	if head := s.want(s.do("HEAD", "/page/app.js", ""), 200); head.body != "" || head.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %v", head)
	}
	for _, path := range []string{"/page/", "/page", "/page/nothing.js", "/page/../serve.go", "/page/%2e%2e/serve.go", "/page/..%2fserve.go", "/page//app.js", "/openapi", "/x", "//", "/checkpoints/"} {
		s.want(s.do("GET", path, ""), 404, "not_found", "no_such_path")
	}
	a = s.do("DELETE", "/checkpoints", "")
	s.want(a, 405, "method_not_allowed")
	if a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %v", a.header)
	}
}

// What looks changes nothing: neither files nor history.
func TestLookingChangesNothing(t *testing.T) {
	s := newServed(t, nil)
	s.Put("a.txt", "by hand\n", 0o644)
	files := s.files()
	for range 2 {
		before := s.do("GET", "/operations", "").body + s.do("GET", "/sessions", "").body + s.do("GET", "/messages", "").body
		for _, rt := range s.server.table() {
			if rt.method == "GET" && rt.path != "/events" {
				path := strings.NewReplacer("{turn}", "1", "{file...}", "app.js", "{$}", "").Replace(rt.path)
				s.want(s.do("GET", path, ""), 200)
			}
		}
		if after := s.do("GET", "/operations", "").body + s.do("GET", "/sessions", "").body + s.do("GET", "/messages", "").body; after != before {
			t.Errorf("it was %s, is %s", before, after)
		}
	}
	s.same("looking", files)
}

// Numbers of the server tell what was asked, whatever the client calls its methods.
func TestMetrics(t *testing.T) {
	s := newServed(t, nil)
	s.do("GET", "/checkpoints", "")
	s.do("BREW", "/checkpoints", "")
	s.do("GET", "/no/such/thing", "")
	a := s.want(s.do("GET", "/metrics", ""), 200)
	for _, line := range []string{
		`reasonix_requests_total{method="GET",path="/checkpoints",status="200"} 1`,
		`reasonix_requests_total{method="other",path="/checkpoints",status="405"} 1`,
		`reasonix_requests_total{method="GET",path="other",status="404"} 1`,
		"reasonix_requests_running 1", "reasonix_sessions 1", "reasonix_event_streams 0",
	} {
		if !strings.Contains(a.body, line+"\n") {
			t.Errorf("no line %s in\n%s", line, a.body)
		}
	}
}
