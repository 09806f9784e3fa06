package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

// provocation is how a status is got: a request to one of several servers.
type provocation struct {
	server, path, body string
	header             []string
	slow               bool // the body does not come
}

const testToken = "a-token-of-the-test"

// provokable are servers in several states.
func provokable(t *testing.T) map[string]*served {
	t.Helper()
	plain := func(o *Options) { o.Token = testToken; o.Limits.Read = 300 * time.Millisecond }
	agent := func(stub *agentStub) func(*Options) {
		return func(o *Options) { plain(o); o.Agent = stub }
	}
	broken := errors.New("out of order")
	all := map[string]*served{
		"good": newServed(t, plain), "moved": newServed(t, plain), "undone": newServed(t, plain), "forked": newServed(t, plain), "ended": newServed(t, plain),
		"able": newServed(t, agent(&agentStub{
			submit: func(string) (int, error) { return 5, nil }, cancel: func() (bool, error) { return true, nil },
		})),
		"broken": serveWorld(t, lostWorld(t), agent(&agentStub{
			submit: func(string) (int, error) { return 0, broken }, cancel: func() (bool, error) { return false, broken },
		})),
	}
	for _, name := range []string{"moved", "undone"} {
		all[name].want(all[name].do("POST", "/rewind", `{"turn":3}`), 200)
	}
	all["undone"].want(all["undone"].do("POST", "/undo-rewind", ""), 200)
	all["forked"].want(all["forked"].do("POST", "/fork", `{"turn":3}`), 200)
	all["ended"].server.ended.Store(true)
	return all
}

// lostWorld is a workspace whose store cannot be read any more.
func lostWorld(t *testing.T) *worldtest.World {
	t.Helper()
	w := &worldtest.World{T: t, Dir: t.TempDir()}
	root, err := workspace.Open(w.Dir, workspace.Options{})
	w.Must(err)
	t.Cleanup(func() { _ = root.Close() })
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{Create: &store.Workspace{Root: root.Path()}})
	w.Must(err)
	w.Must(s.Close())
	w.Dir, w.Capture = root.Path(), &capture.Capturer{Store: s, Root: root}
	w.Engine = rewind.New(w.Capture, rewind.Options{})
	return w
}

// provoke knows how to get a status of a path; the zero value when it does not.
func provoke(method, path, status string) provocation {
	at := strings.NewReplacer("{turn}", "1", "{file}", "app.js").Replace(path)
	ok := map[string]provocation{
		"/rewind": {"good", at, `{"turn":4,"dry_run":true}`, nil, false}, "/fork": {"good", at, `{"turn":4,"dry_run":true}`, nil, false},
		"/undo-rewind": {"moved", at, `{"dry_run":true}`, nil, false}, "/redo-rewind": {"undone", at, `{"dry_run":true}`, nil, false},
		"/switch": {"forked", at, `{"session":"-","dry_run":true}`, nil, false},
		"/submit": {"able", at, `{"prompt":"x"}`, nil, false}, "/cancel": {"able", at, ``, nil, false},
	}
	good, special := ok[path]
	if !special {
		good = provocation{server: "good", path: at}
	}
	with := func(change func(*provocation)) provocation { p := good; change(&p); return p }
	switch status {
	case "200", "202":
		return good
	case "303":
		return provocation{server: "good", path: "/?token=" + testToken, header: []string{"Authorization", ""}}
	case "304":
		return with(func(p *provocation) { p.header = []string{"If-None-Match", "*"} })
	case "400":
		if method == "GET" {
			return provocation{server: "good", path: at + "?nonsense=1"}
		}
		return provocation{server: "good", path: at, body: `{"nonsense":1}`}
	case "401":
		return with(func(p *provocation) { p.header = []string{"Authorization", "Bearer of bad news"} })
	case "403":
		return with(func(p *provocation) { p.header = []string{"Sec-Fetch-Site", "cross-site"} })
	case "404":
		return missing(method, path, at)
	case "408":
		return provocation{server: "good", path: at, slow: true}
	case "409":
		return with(func(p *provocation) {
			p.body = strings.Replace(p.body, `"dry_run":true`, `"plan":"0"`, 1)
			if p.server == "able" {
				p.server = "good" // has no agent
			}
		})
	case "413":
		return with(func(p *provocation) { p.body = `{"session":"` + strings.Repeat("x", 1<<20) + `"}` })
	case "415":
		return with(func(p *provocation) { p.body, p.header = "{}", []string{"Content-Type", "text/plain"} })
	case "421":
		return with(func(p *provocation) { p.header = []string{"Host", "evil.example"} })
	case "500":
		return with(func(p *provocation) { p.server = "broken" })
	case "503":
		return with(func(p *provocation) { p.server = "ended" })
	}
	return provocation{}
}

// missing asks for what is not there.
func missing(method, path, at string) provocation {
	switch {
	case path == "/page/{file}":
		return provocation{server: "good", path: "/page/nothing.js"}
	case method == "GET":
		return provocation{server: "good", path: at + "?session=nobody"}
	case path == "/rewind" || path == "/fork":
		return provocation{server: "good", path: at, body: `{"turn":99}`}
	}
	return provocation{server: "good", path: at, body: `{"session":"nobody"}`}
}

func (s *served) provoked(method string, p provocation) answer {
	s.T.Helper()
	switch {
	case p.slow:
		return s.slowly(method, p.path)
	case p.path == "/events" && p.server == "good" && p.header == nil:
		st := s.listen()
		defer st.close()
		return answer{st.res.StatusCode, st.res.Header, ""}
	}
	return s.do(method, p.path, p.body, p.header...)
}

// slowly sends a head that promises a body, and no body.
func (s *served) slowly(method, path string) answer {
	s.T.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.T.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	s.Must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{", method, path, s.token)
	s.Must(err)
	raw, err := io.ReadAll(conn)
	s.Must(err)
	return s.parse(raw)
}

// parse reads what came over a socket.
func (s *served) parse(raw []byte) answer {
	s.T.Helper()
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	s.Must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	s.Must(err)
	return answer{res.StatusCode, res.Header, string(b)}
}
