package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"reasonix/internal/view"
	"reasonix/store"
)

const (
	pageSize = 200
	maxPage  = 500
	maxFiles = 100 // of one turn in a list
)

// checkpointJSON is a checkpoint in a list: as log prints it, with its time as text, and no more
// than maxFiles of its files.
type checkpointJSON struct {
	Turn int    `json:"turn"`
	Time string `json:"time"`
	view.Checkpoint
	FileCount  int `json:"file_count"`
	OtherCount int `json:"other_count"`
}

func newCheckpoint(c view.Checkpoint) checkpointJSON {
	out := checkpointJSON{Turn: c.Turn, Time: timeText(c.TimeMS), Checkpoint: c, FileCount: len(c.Files), OtherCount: len(c.Others)}
	out.Files = c.Files[:min(len(c.Files), maxFiles)]
	out.Others = c.Others[:min(len(c.Others), maxFiles)]
	return out
}

// checkpoints answers with one page, oldest first within it.
func (s *Server) checkpoints(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "session", "limit", "before", "q", "stat")
	if err != nil {
		return err
	}
	page := view.Page{}
	if page.Limit, err = number(q, "limit", pageSize, 1, maxPage); err != nil {
		return err
	}
	if page.Before, err = number(q, "before", -1, 0, maxTurn); err != nil {
		return err
	}
	if page.Count, err = flag(q, "stat"); err != nil {
		return err
	}
	one, err := s.session(r, q.Get("session"))
	if err != nil {
		return err
	}
	found, next, err := s.search(r, one, page, q.Get("q"))
	if err != nil {
		return err
	}
	w.Header().Set("Reasonix-Session", string(one.ID))
	w.Header().Set("Reasonix-Turns", strconv.Itoa(one.Turns))
	if next >= 0 {
		w.Header().Set("Link", nextPage(r.URL, "before", next))
	}
	out := make([]checkpointJSON, 0, len(found))
	for _, c := range slices.Backward(found) {
		out = append(out, newCheckpoint(c))
	}
	return s.ok(w, out)
}

// maxSearched is how many turns one request looks through; the next page goes on from there.
const maxSearched = 5_000

// search reads a page of the turns that a text fits, newest first, and the turn before which the
// next page begins; -1 when there is none.
func (s *Server) search(r *http.Request, one store.Session, page view.Page, text string) (found []view.Checkpoint, next int, err error) {
	if text == "" {
		all, err := s.view.Checkpoints(r.Context(), one.ID, page)
		if err != nil || !all.More || len(all.Checkpoints) == 0 {
			return all.Checkpoints, -1, err
		}
		return all.Checkpoints, all.Checkpoints[len(all.Checkpoints)-1].Turn, nil
	}
	before := one.Turns
	if page.Before >= 0 {
		before = min(page.Before, before)
	}
	last := max(before-maxSearched, 0)
	for text = strings.ToLower(text); before > last; {
		all, err := s.view.Checkpoints(r.Context(), one.ID, view.Page{Before: before, Limit: min(pageSize, before-last), Count: page.Count})
		if err != nil || len(all.Checkpoints) == 0 {
			return found, -1, err
		}
		for _, c := range all.Checkpoints {
			before = c.Turn
			if !fits(c, text) {
				continue
			}
			found = append(found, c)
			if len(found) == page.Limit && before > 0 {
				return found, before, nil
			}
		}
	}
	if before == 0 {
		before = -1
	}
	return found, before, nil
}

// fits reports whether a text is part of a turn's prompt, or of the name of one of its files, in
// lower case.
func fits(c view.Checkpoint, text string) bool {
	in := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return in(c.Prompt) ||
		slices.ContainsFunc(c.Files, func(f view.Change) bool { return in(f.Path) || in(f.From) }) ||
		slices.ContainsFunc(c.Others, func(f view.Sourced) bool { return in(f.Path) })
}

// nextPage is the Link header of a page, which names the same request from another place on.
func nextPage(u *url.URL, name string, from int) string {
	q := u.Query()
	q.Set(name, strconv.Itoa(from))
	return fmt.Sprintf(`<%s?%s>; rel="next"`, u.EscapedPath(), q.Encode())
}

// turnJSON is one checkpoint in full.
type turnJSON struct {
	Time string `json:"time"`
	view.Turn
	FileCount int `json:"file_count"`
}

func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "session")
	if err != nil {
		return err
	}
	one, err := s.session(r, q.Get("session"))
	if err != nil {
		return err
	}
	n, err := turnOf(r.PathValue("turn"), one, false)
	if err != nil {
		return err
	}
	t, err := s.view.Turn(r.Context(), one.ID, n)
	if err != nil {
		return err
	}
	return s.ok(w, turnJSON{Time: timeText(t.TimeMS), Turn: t, FileCount: len(t.Files)})
}
