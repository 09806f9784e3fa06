package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// events streams what happens, in the form of server-sent events. A client that comes back with
// the id of the last event that it saw gets what it missed or, when that is not known any more,
// the event "reset": it then has to read everything anew.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "after")
	if err != nil {
		return err
	}
	leave, ok := s.hub.join(s.o.Limits.Streams)
	if !ok {
		w.Header().Set("Retry-After", "5")
		return refuse(http.StatusServiceUnavailable, "unavailable", "too many event streams are open", "close one, or try again later")
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	// The time for reading a request would end a stream.
	_ = control.SetReadDeadline(time.Time{})
	ref := r.Header.Get("Last-Event-ID")
	if ref == "" {
		ref = q.Get("after")
	}
	return s.follow(w, r, control, ref)
}

// follow writes events until the client goes away, does not read any more, or the server ends.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, control *http.ResponseController, ref string) error {
	var b bytes.Buffer
	at := s.hub.newest()
	b.WriteString("retry: 1000\n")
	if ref == "" {
		fmt.Fprintf(&b, "id: %s\n\n", s.hub.name(at)) // no event, but a place to come back to
	} else {
		b.WriteString("\n")
		if id, ours := s.hub.parse(ref); ours {
			at = id
		} else {
			s.reset(&b, at)
		}
	}
	ping := time.NewTicker(s.o.Limits.Ping)
	defer ping.Stop()
	for {
		all, missed, closed, wake := s.hub.after(at)
		if missed {
			at = s.hub.newest()
			s.reset(&b, at)
		}
		for _, e := range all {
			fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", s.hub.name(e.id), e.name, e.data)
			at = e.id
		}
		s.deadline(w)
		if _, err := w.Write(b.Bytes()); err != nil || control.Flush() != nil || closed {
			return nil //nolint:nilerr // the client went away
		}
		b.Reset()
		select {
		case <-wake:
		case <-ping.C:
			b.WriteString(": ping\n\n")
		case <-r.Context().Done():
			return nil
		}
	}
}

func (s *Server) reset(b *bytes.Buffer, at uint64) {
	fmt.Fprintf(b, "id: %s\nevent: reset\ndata: {}\n\n", s.hub.name(at))
}
