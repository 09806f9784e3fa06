package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// loadTime is how long the load test runs: REASONIX_CLIENTS, in seconds.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("REASONIX_CLIENTS"))
	if err != nil {
		n = 3
	}
	return time.Duration(n) * time.Second
}

// load counts what clients got.
type load struct {
	s        *served
	requests atomic.Int64
	refused  atomic.Int64 // 409 and 503, as documented
	mu       sync.Mutex
	wrong    []string
}

// ask sends one request and says which status it got; it is no test method, since many do it.
func (l *load) ask(ctx context.Context, method, path, body string) int {
	r, err := http.NewRequestWithContext(ctx, method, l.s.base+path, strings.NewReader(body))
	if err != nil {
		l.fail("%v", err)
		return 0
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := l.s.client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			l.fail("%s %s: %v", method, path, err)
		}
		return 0
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.fail("%s %s: %v", method, path, err)
	case res.StatusCode == 409 || res.StatusCode == 503 && res.Header.Get("Retry-After") != "":
		l.refused.Add(1)
	case res.StatusCode != 200:
		l.fail("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	l.requests.Add(1)
	return res.StatusCode
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 10 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// TestLoadManyClients has 50 clients that read and 4 that move, while streams are open. Nothing
// fails but what is documented to be refused, and neither memory nor goroutines grow.
func TestLoadManyClients(t *testing.T) {
	s := newServed(t, nil)
	l := &load{s: s}
	span := loadTime(t)
	reads := []string{
		"/checkpoints?limit=50", "/checkpoints/0", "/checkpoints/0/diff", "/sessions", "/tree", "/operations?limit=20", "/messages",
		"/status", "/metrics", "/healthz", "/", "/page/app.js", "/checkpoints?q=prompt",
	}
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 50 {
		clients.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.ask(ctx, "GET", reads[n%len(reads)], "")
			}
		})
	}
	for i := range 4 {
		clients.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.ask(ctx, "POST", "/rewind", `{"turn":2,"dry_run":true,"force":true}`)
				// Who has rewound can undo, whosever rewind that then takes back.
				if l.ask(ctx, "POST", "/rewind", fmt.Sprintf(`{"turn":%d,"scope":"code","force":true}`, n%5)) == http.StatusOK {
					for l.ask(ctx, "POST", "/undo-rewind", `{"force":true}`) != http.StatusOK && ctx.Err() == nil {
					}
				}
			}
		})
	}
	for range 5 {
		clients.Go(func() { l.ask(ctx, "GET", "/events", "") })
	}
	early := sample(ctx, span/3)
	late := sample(ctx, span/2)
	clients.Wait()
	if len(l.wrong) > 0 {
		t.Errorf("failed:\n%s", strings.Join(l.wrong, "\n"))
	}
	if n, r := l.requests.Load(), l.refused.Load(); n < 100 || r > n/2 {
		t.Errorf("%d requests, %d of them refused", n, r)
	}
	t.Logf("%d requests, %d refused, heap %d KiB, then %d KiB", l.requests.Load(), l.refused.Load(), early>>10, late>>10)
	if late > 2*early+16<<20 {
		t.Errorf("memory grew from %d to %d bytes", early, late)
	}
	s.end()
	waitFor(t, "the goroutines of requests to end", func() bool { return s.server.hub.open() == 0 && runtime.NumGoroutine() < 30 })
}

// sample is the live memory after a while.
func sample(ctx context.Context, after time.Duration) uint64 {
	wait := time.NewTimer(after)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
