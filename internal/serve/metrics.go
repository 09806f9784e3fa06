package serve

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"reasonix/store"
)

// metrics counts requests.
type metrics struct {
	began time.Time

	mu      sync.Mutex // guards what follows
	counts  map[counted]int64
	running int
}

type counted struct {
	method, path string
	status       int
}

func newMetrics(now time.Time) *metrics { return &metrics{began: now, counts: map[counted]int64{}} }

// begin counts a request in progress; done is called with its status.
func (m *metrics) begin(method, path string) (done func(status int)) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead:
	default:
		method = "other" // a client could make up any number of names
	}
	if path == "" {
		path = "other"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running++
	return func(status int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running--
		m.counts[counted{method, path, status}]++
	}
}

// showMetrics answers in the text form that Prometheus reads.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var size, free int64
	var sessions []store.Session
	err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) (err error) {
		if size, free, err = tx.Size(); err != nil {
			return err
		}
		sessions, err = tx.Sessions()
		return err
	})
	if err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var b bytes.Buffer
	gauge := func(name, help string, v any) {
		fmt.Fprintf(&b, "# HELP reasonix_%s %s\n# TYPE reasonix_%s gauge\nreasonix_%s %v\n", name, help, name, name, v)
	}
	s.metrics.write(&b)
	gauge("uptime_seconds", "Seconds since the server began.", s.o.Now().Sub(s.metrics.began).Seconds())
	gauge("event_streams", "Open event streams.", s.hub.open())
	gauge("events", "Events since the server began.", s.hub.newest())
	gauge("requests_waiting", "Requests that wait for their turn.", s.limit.waiting.Load())
	gauge("sessions", "Sessions of the workspace.", len(sessions))
	gauge("store_bytes", "Size of the store.", size)
	gauge("store_free_bytes", "Part of the store that is free for reuse.", free)
	gauge("goroutines", "Goroutines of the server.", runtime.NumGoroutine())
	gauge("heap_bytes", "Memory of live and not yet collected objects.", memory.HeapAlloc)
	s.send(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
	return nil
}

func (m *metrics) write(b *bytes.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.counts), func(x, y counted) int {
		return cmp.Or(cmp.Compare(x.path, y.path), cmp.Compare(x.method, y.method), cmp.Compare(x.status, y.status))
	})
	fmt.Fprintf(b, "# HELP reasonix_requests_total Requests that were answered.\n# TYPE reasonix_requests_total counter\n")
	for _, k := range keys {
		fmt.Fprintf(b, "reasonix_requests_total{method=%q,path=%q,status=\"%d\"} %d\n", k.method, k.path, k.status, m.counts[k])
	}
	fmt.Fprintf(b, "# HELP reasonix_requests_running Requests in progress, streams among them.\n# TYPE reasonix_requests_running gauge\nreasonix_requests_running %d\n", m.running)
}
