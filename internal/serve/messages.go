package serve

import (
	"bytes"
	"net/http"
	"strconv"

	"reasonix/internal/view"
	"reasonix/store"
)

// Messages go out in pieces, each read in a transaction of its own, so that a slow client never
// holds one open. A line does not change once it is written.
const (
	pieceMessages = 500
	pieceBytes    = 4 << 20
)

// messages answers with one message a line, as the command line prints them.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "session", "at", "from", "limit", "effective")
	if err != nil {
		return err
	}
	effective, err := flag(q, "effective")
	if err != nil {
		return err
	}
	from, err := number(q, "from", 0, 0, maxTurn)
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", maxTurn, 1, maxTurn)
	if err != nil {
		return err
	}
	one, err := s.session(r, q.Get("session"))
	if err != nil {
		return err
	}
	at := -1
	if q.Has("at") {
		if at, err = turnOf(q.Get("at"), one, true); err != nil {
			return err
		}
	}
	if effective {
		return s.effective(w, r, one, at)
	}
	end, err := s.lengthAt(r, one, at)
	if err != nil {
		return err
	}
	w.Header().Set("Reasonix-Messages", strconv.FormatInt(end, 10))
	if next := int64(from) + int64(limit); next < end {
		w.Header().Set("Link", nextPage(r.URL, "from", int(next)))
		end = next
	}
	return s.stream(w, r, one, int64(from), end)
}

// lengthAt is the number of messages before a turn; of all when it is -1 or the tip.
func (s *Server) lengthAt(r *http.Request, one store.Session, at int) (end int64, err error) {
	if at < 0 || at == one.Turns {
		return one.Messages, nil
	}
	err = s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error {
		t, err := tx.Turn(one.Head, at)
		end = t.MsgIndex
		return err
	})
	return end, err
}

// stream writes the messages [from, end) of a line.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, one store.Session, from, end int64) error {
	w.Header().Set("Content-Type", "application/jsonl")
	var b bytes.Buffer
	for from < end {
		b.Reset()
		err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error {
			for m, err := range tx.Messages(one.Head, from, min(end, from+pieceMessages)) {
				if err != nil {
					return err
				}
				writeMessage(&b, m)
				from++
				if b.Len() > pieceBytes {
					break
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if b.Len() == 0 { // collection dropped the line meanwhile
			return errInternal
		}
		s.deadline(w)
		if _, err := w.Write(b.Bytes()); err != nil {
			return nil //nolint:nilerr // the client went away
		}
	}
	return nil
}

// effective writes what a model would be sent.
func (s *Server) effective(w http.ResponseWriter, r *http.Request, one store.Session, at int) error {
	if r.URL.Query().Has("from") || r.URL.Query().Has("limit") {
		return badRequest("from and limit count messages of the full line: they do not go with effective")
	}
	var b bytes.Buffer
	err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error {
		all, err := view.Conversation(tx, one, at, true)
		if err != nil {
			return err
		}
		for m, err := range all {
			if err != nil {
				return err
			}
			writeMessage(&b, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.send(w, http.StatusOK, "application/jsonl", b.Bytes())
	return nil
}

// writeMessage writes one line. In a valid JSON string a newline is escaped, so each one is
// between tokens.
func writeMessage(b *bytes.Buffer, m store.Message) {
	for _, c := range m.JSON {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		b.WriteByte(c)
	}
	b.WriteByte('\n')
}
