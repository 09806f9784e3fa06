package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Names that a foreign DNS may let point here are refused, on every path, and tell nothing; names
// of this machine are not.
func TestForeignHost(t *testing.T) {
	s := newServed(t, func(o *Options) { o.Hosts = []string{"proxy.example"} })
	for _, host := range []string{"evil.example", "localhost.evil.example", "evil.example:8080", "127.0.0.2", "[::2]", "0.0.0.0", "10.0.0.1:8080", "localhost@evil.example"} {
		for _, path := range []string{"/", "/checkpoints", "/events", "/healthz", "/metrics", "/nothing"} {
			s.want(s.do("GET", path, "", "Host", host), 421, "misdirected")
		}
		s.want(s.do("POST", "/rewind", `{"turn":0}`, "Host", host), 421, "misdirected")
	}
	for _, host := range []string{"localhost", "LOCALHOST:1234", "127.0.0.1", "127.0.0.1:9", "[::1]:8080", "proxy.example", "Proxy.Example:443"} {
		s.want(s.do("GET", "/checkpoints", "", "Host", host), 200)
	}
}

// Pages of other sites can make browsers send requests; they are refused, with and without a
// token, and change nothing.
func TestCrossSite(t *testing.T) {
	s := newServed(t, nil)
	before := s.files()
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "http://evil.example"},
		{"Origin", "null"},
		{"Origin", "http://localhost:1"},
	} {
		for _, path := range []string{"/rewind", "/undo-rewind", "/fork", "/switch", "/submit", "/cancel"} {
			s.want(s.do("POST", path, `{"turn":0}`, header...), 403, "forbidden")
			s.want(s.do("POST", path, "", header...), 403, "forbidden")
		}
	}
	s.same("requests of other sites", before)
	// What forms can send without asking is no JSON.
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonp", "json"} {
		s.want(s.do("POST", "/rewind", `{"turn":0}`, "Content-Type", kind), 415, "unsupported_media_type")
	}
	s.same("forms", before)
	a := s.do("OPTIONS", "/rewind", "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST")
	for name := range a.header {
		if strings.HasPrefix(name, "Access-Control") {
			t.Errorf("a preflight is answered: %v", a.header)
		}
	}
	// The page's own requests pass.
	s.want(s.do("POST", "/rewind", `{"turn":0,"dry_run":true}`, "Origin", s.base, "Sec-Fetch-Site", "same-origin"), 200)
	s.want(s.do("POST", "/rewind", `{"turn":0,"dry_run":true}`, "Content-Type", "application/json; charset=utf-8"), 200)
}

// Without the token nothing but the sign of life is answered.
func TestToken(t *testing.T) {
	s := newServed(t, func(o *Options) { o.Token = testToken })
	before := s.files()
	cookie := "reasonix-" + s.base[strings.LastIndex(s.base, ":")+1:] + "="
	for _, header := range [][]string{
		{"Authorization", ""},
		{"Authorization", testToken},
		{"Authorization", "Bearer"},
		{"Authorization", "Bearer " + testToken + "x"},
		{"Authorization", "Bearer " + testToken[1:]},
		{"Authorization", "Basic " + testToken},
		{"Authorization", "", "Cookie", cookie + "wrong"},
		{"Authorization", "", "Cookie", "reasonix=" + testToken},
		{"Authorization", "Bearer wrong", "Cookie", cookie + testToken},
	} {
		for _, rt := range s.server.table() {
			path := strings.NewReplacer("{turn}", "1", "{file...}", "app.js", "{$}", "").Replace(rt.path)
			if rt.path == "/healthz" {
				s.want(s.do(rt.method, path, "", header...), 200)
				continue
			}
			a := s.want(s.do(rt.method, path, "", header...), 401, "unauthorized")
			if a.header.Get("WWW-Authenticate") == "" || a.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %v", path, a.header)
			}
		}
		s.want(s.do("GET", "/checkpoints?token="+testToken, "", header...), 401)
		s.want(s.do("GET", "/nothing", "", header...), 401)
	}
	s.same("requests without the token", before)

	s.want(s.do("GET", "/?token=wrong", "", "Authorization", ""), 401)
	if a := s.do("GET", "/", "", "Authorization", "", "Accept", "text/html"); a.status != 401 || !strings.Contains(a.body, "reasonix serve") {
		t.Errorf("a person without a token: %d %s", a.status, a.body)
	}
	a := s.want(s.do("GET", "/?token="+testToken, "", "Authorization", ""), 303)
	set := a.header.Get("Set-Cookie")
	if a.header.Get("Location") != "/" || set != cookie+testToken+"; Path=/; HttpOnly; SameSite=Strict" {
		t.Errorf("the printed URL: %v", a.header)
	}
	has := []string{"Authorization", "", "Cookie", cookie + testToken}
	s.want(s.do("GET", "/", "", has...), 200)
	s.want(s.do("GET", "/checkpoints", "", has...), 200)
	s.want(s.do("POST", "/rewind", `{"turn":4,"dry_run":true}`, has...), 200)
	s.want(s.do("POST", "/rewind", `{"turn":4}`, append(has, "Sec-Fetch-Site", "cross-site")...), 403)
}

// Ids and paths that point elsewhere find nothing, and no file of the system is ever shown.
func TestTraversal(t *testing.T) {
	s := newServed(t, nil)
	ids := []string{"../../etc", "../../etc/passwd", "%2e%2e%2fetc%2fpasswd", "a%00b", "'%20OR%201=1--", "%25", "*", strings.Repeat("a", 5000), "\u202e"}
	for _, id := range ids {
		for _, path := range []string{"/checkpoints?session=", "/operations?session=", "/messages?session=", "/checkpoints/0/diff?session="} {
			a := s.do("GET", path+id, "")
			s.want(a, 404, "not_found", "no_session")
		}
		s.want(s.do("GET", "/checkpoints?id="+id, ""), 400, "bad_request")
		for _, path := range []string{"/page/" + id, "/" + id, "/checkpoints/" + id, "/checkpoints/" + id + "/diff"} {
			if a := s.do("GET", path, ""); a.status != 404 && a.status != 400 || strings.Contains(a.body, "root:") {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
	for _, p := range []string{"../secret", "/etc/passwd", "d/../../x", "..", "%2e%2e/x", ".git/config", "d/.git/x"} {
		if a := s.do("GET", "/checkpoints/0/diff?to=disk&path="+p, ""); a.status != 404 {
			t.Errorf("path=%s: %d %s", p, a.status, a.body)
		}
	}
	s.want(s.do("GET", "/checkpoints/0/diff?path=a%00b", ""), 400)
	// As raw as it gets: http.Client would clean these.
	for _, path := range []string{"/page/../../../etc/passwd", "/../etc/passwd", "/page/..\\..\\x", "//etc/passwd", "/page/./app.js", "/checkpoints/../../x"} {
		a := s.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// raw sends bytes and reads what comes until the server closes.
func (s *served) raw(text string) answer {
	s.T.Helper()
	conn := s.dial()
	defer conn.Close()
	_, err := io.WriteString(conn, text)
	s.Must(err)
	b, err := io.ReadAll(conn)
	s.Must(err)
	return s.parse(b)
}

func (s *served) dial() net.Conn {
	s.T.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.T.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	s.Must(err)
	return conn
}

// Bodies over the limit are refused, whether they tell their length or not; the longest allowed
// one is read.
func TestLargeBody(t *testing.T) {
	s := newServed(t, nil)
	const most = 1 << 20
	body := func(n int) string {
		b := `{"turn":4,"dry_run":true,"session":""}`
		return b + strings.Repeat(" ", n-len(b))
	}
	s.want(s.do("POST", "/rewind", body(most)), 200)
	for _, n := range []int{most + 1, 3 * most} {
		s.want(s.do("POST", "/rewind", body(n)), 413, "too_large")
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.base+"/rewind", io.MultiReader(strings.NewReader(body(2*most)))) // chunked
	s.Must(err)
	r.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(r)
	s.Must(err)
	defer res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("chunked: %d", res.StatusCode)
	}
	head := "GET /checkpoints HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("a", 64<<10) + "\r\n\r\n"
	if a := s.raw(head); a.status != 431 {
		t.Errorf("a long head: %d", a.status)
	}
}

// Clients that send slowly, or nothing, are cut off, and meanwhile hold up nobody.
func TestSlowLoris(t *testing.T) {
	s := newServed(t, func(o *Options) {
		o.Limits.Header, o.Limits.Read, o.Limits.Running, o.Limits.Waiting = 300*time.Millisecond, 500*time.Millisecond, 2, 2
	})
	var slow []net.Conn
	for i := range 90 {
		conn := s.dial()
		defer conn.Close()
		slow = append(slow, conn)
		text := [...]string{"", "GET /checkpoints HTTP/1.1\r\nHost: loc", "POST /rewind HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"}[i%3]
		_, err := io.WriteString(conn, text)
		s.Must(err)
	}
	for range 20 {
		s.want(s.do("GET", "/checkpoints", ""), 200)
	}
	for i, conn := range slow {
		s.Must(conn.SetDeadline(time.Now().Add(time.Minute)))
		b, err := io.ReadAll(conn) // ends when the server closes
		if err != nil {
			t.Fatalf("connection %d is still open: %v", i, err)
		}
		if i%3 == 2 && !strings.HasPrefix(string(b), "HTTP/1.1 408") {
			t.Errorf("a slow body: %.100q", b)
		}
	}
	s.want(s.do("POST", "/rewind", `{"turn":4}`), 200)
}

// A client that does not read its answer is cut off too.
func TestSlowReader(t *testing.T) {
	w := newWorld(t)
	w.Turn("much", nil, func() { w.Write("big.txt", strings.Repeat("a line that is rather long\n", 200_000/27*10), 0o644) })
	s := serveWorld(t, w, func(o *Options) { o.Limits.Write, o.Limits.Running = 300*time.Millisecond, 1 })
	conn := s.dial()
	defer conn.Close()
	s.Must(conn.(*net.TCPConn).SetReadBuffer(4096))
	for range 20 {
		_, err := io.WriteString(conn, "GET /checkpoints/5/diff HTTP/1.1\r\nHost: localhost\r\n\r\n")
		s.Must(err)
	}
	for range 5 {
		s.want(s.do("GET", "/checkpoints", ""), 200)
	}
	waitFor(t, "the server to close the connection", func() bool {
		_, err := io.WriteString(conn, "x") // fails once the other side is closed
		return err != nil
	})
}

// 200 open streams get their events and hold up nobody; past the limit another one is refused.
func TestManyStreams(t *testing.T) {
	const streams = 200
	s := newServed(t, func(o *Options) { o.Limits.Streams, o.Limits.Running = streams, 2 })
	var all []*stream
	for range streams {
		st := s.listen()
		if st.res.StatusCode != 200 {
			t.Fatalf("stream %d: %d", len(all), st.res.StatusCode)
		}
		if e, ok := st.next(); !ok || e.id == "" {
			t.Fatalf("a stream begins with %+v", e)
		}
		all = append(all, st)
	}
	a := s.want(s.do("GET", "/events", ""), 503, "unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for range 20 {
		s.want(s.do("GET", "/checkpoints", ""), 200)
	}
	s.want(s.do("POST", "/rewind", `{"turn":4}`), 200)
	for i, st := range all {
		if e := st.until("rewound"); !strings.Contains(e.data, `"turn":4`) {
			t.Errorf("stream %d: %+v", i, e)
		}
	}
	all[0].close()
	waitFor(t, "the closed stream to be given free", func() bool { return s.server.hub.open() < streams })
	s.listen()
}

// waitFor waits for something that another goroutine does.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// Past the limit of requests at once the others wait, and past that limit they are told to come
// again.
func TestTooManyRequests(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 8)
	stub := &agentStub{submit: func(string) (int, error) { held <- struct{}{}; <-hold; return 1, nil }}
	s := newServed(t, func(o *Options) { o.Agent, o.Limits.Running, o.Limits.Waiting = stub, 2, 3 })
	statuses := make(chan int, 5)
	for range 5 {
		go func() {
			r, _ := http.NewRequest("POST", s.base+"/submit", strings.NewReader(`{"prompt":"x"}`))
			r.Header.Set("Content-Type", "application/json")
			res, err := s.client.Do(r)
			if err != nil {
				statuses <- -1
				return
			}
			_ = res.Body.Close()
			statuses <- res.StatusCode
		}()
	}
	<-held
	<-held
	waitFor(t, "three to wait", func() bool { return s.server.limit.waiting.Load() == 3 })
	a := s.want(s.do("GET", "/checkpoints", ""), 503, "unavailable")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %v", a.header)
	}
	s.want(s.do("GET", "/openapi.json", ""), 200) // costs nothing, so it need not wait
	close(hold)
	for range 5 {
		if status := <-statuses; status != http.StatusAccepted {
			t.Errorf("one that waited: %d", status)
		}
	}
	s.want(s.do("GET", "/checkpoints", ""), 200)
}

// A panic is answered as a fault, is told to the one who runs the server, and ends nothing.
func TestPanic(t *testing.T) {
	told := make(chan string, 8)
	s := newServed(t, func(o *Options) {
		o.Agent = &agentStub{submit: func(string) (int, error) { panic("a bug") }}
		o.Log = func(format string, args ...any) { told <- fmt.Sprintf(format, args...) }
	})
	s.want(s.do("POST", "/submit", `{"prompt":"x"}`), 500, "internal")
	if text := <-told; !strings.Contains(text, "a bug") || !strings.Contains(text, "attack_test.go") {
		t.Errorf("told: %s", text)
	}
	s.want(s.do("GET", "/checkpoints", ""), 200)
}
