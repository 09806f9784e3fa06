package serve

import (
	"errors"
	"net/http"
	"strconv"

	"reasonix/internal/report"
	"reasonix/internal/view"
	"reasonix/store"
)

// ok answers with a value.
func (s *Server) ok(w http.ResponseWriter, v any) error {
	s.write(w, http.StatusOK, v)
	return nil
}

func (s *Server) sessions(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var all []store.Session
	err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) (err error) { all, err = tx.Sessions(); return err })
	if err != nil {
		return err
	}
	return s.ok(w, report.NewSessions(s.o.Capture.Root.Path(), all, s.o.Nested))
}

func (s *Server) tree(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	roots, err := s.view.Tree(r.Context())
	if err != nil {
		return err
	}
	return s.ok(w, report.Tree{Tree: roots})
}

func (s *Server) operations(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "session", "limit")
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", 0, 1, 10_000)
	if err != nil {
		return err
	}
	var all []store.Operation
	err = s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error {
		id := store.SessionID("")
		if ref := q.Get("session"); ref != "" {
			one, err := tx.FindSession(ref)
			if err != nil {
				return err
			}
			id = one.ID
		}
		all, err = tx.Operations(id)
		return err
	})
	if err != nil {
		return err
	}
	return s.ok(w, report.NewOperations(all, limit))
}

// maxDiff bounds what one answer shows of differences: lines of hunks, bytes of their text, and
// files whose contents are compared.
const (
	maxDiffLines = 20_000
	maxDiffBytes = 4 << 20
	maxDiffFiles = 1_000
)

// diffJSON is a difference that may have been cut.
type diffJSON struct {
	report.Diff
	Truncated bool `json:"truncated"` // some files have no hunks, or not all
}

func (s *Server) diff(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "session", "to", "path*")
	if err != nil {
		return err
	}
	one, err := s.session(r, q.Get("session"))
	if err != nil {
		return err
	}
	n, err := turnOf(r.PathValue("turn"), one, true)
	if err != nil {
		return err
	}
	from, to := view.Side{Session: one.ID, Turn: n}, view.Side{Session: one.ID, Turn: n + 1}
	switch ref := q.Get("to"); {
	case ref == "disk" || !q.Has("to") && n == one.Turns:
		to = view.Side{Disk: true}
	case q.Has("to"):
		if to.Turn, err = turnOf(ref, one, true); err != nil {
			return err
		}
	}
	only, err := s.paths(q["path"])
	if err != nil {
		return err
	}
	pairs, err := s.view.Pairs(r.Context(), from, to, only)
	if err != nil {
		return err
	}
	out := diffJSON{Diff: report.Diff{From: report.NewSide(from), To: report.NewSide(to), Files: []view.File{}}}
	if err := s.compare(r, &out, pairs); err != nil {
		return err
	}
	return s.ok(w, out)
}

// compare fills in the files, and stops comparing contents where it gets too much.
func (s *Server) compare(r *http.Request, out *diffJSON, pairs []view.Pair) error {
	lines, size := maxDiffLines, maxDiffBytes
	for i, p := range pairs {
		if i == maxDiffFiles || lines <= 0 || size <= 0 {
			out.Truncated = true
			return nil
		}
		f, err := s.view.File(r.Context(), p)
		if err != nil {
			return err
		}
		for j, h := range f.Hunks {
			for k, l := range h.Lines {
				lines--
				size -= len(l.Text)
				if lines < 0 || size < 0 {
					f.Hunks[j].Lines = h.Lines[:k]
					f.Hunks = f.Hunks[:j+1]
					out.Truncated = true
					break
				}
			}
			if out.Truncated {
				break
			}
		}
		out.Files = append(out.Files, f)
	}
	return nil
}

// statusJSON says what this server is.
type statusJSON struct {
	Version   string          `json:"version"`
	Workspace string          `json:"workspace"`
	Session   store.SessionID `json:"session"` // the current one; "" when there is none
	Agent     bool            `json:"agent"`   // prompts can be submitted
	Policy    string          `json:"policy"`  // what the agent may do: ask, auto-edit, full; "" without one
	Token     bool            `json:"token"`   // a token is asked for
	TimeMS    int64           `json:"time_ms"` // the server's clock
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	out := statusJSON{
		Version: s.o.Version, Workspace: report.Text(s.o.Capture.Root.Path()), Agent: s.o.Agent != nil, Policy: s.o.Policy, Token: s.auth.asked,
		TimeMS: s.o.Now().UnixMilli(),
	}
	cur, err := s.session(r, "")
	if err != nil && !errors.Is(err, store.ErrNoSession) {
		return err
	}
	out.Session = cur.ID
	return s.ok(w, out)
}

func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error { _, err := tx.Workspace(); return err })
	if err != nil {
		if r.Context().Err() == nil {
			s.o.Log("the store cannot be read: %v", err)
		}
		w.Header().Set("Retry-After", strconv.Itoa(5))
		return refuse(http.StatusServiceUnavailable, "unavailable", "the store cannot be read", "")
	}
	return s.ok(w, map[string]string{"status": "ok"})
}
