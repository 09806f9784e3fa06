package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reasonix/store"
)

// decode reads a request's body, one JSON object, into a struct. Whatever could be a slip is
// refused: a name that is unknown, or written in another case, or given twice, and anything after
// the object. No body is an empty object.
func decode(r *http.Request, into any) error {
	b := []byte("{}")
	if r.Body != nil && r.Body != http.NoBody {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			return badRequest("the body ended too early")
		}
		if len(bytes.TrimSpace(read)) > 0 {
			b = read
		}
	}
	if err := checkNames(b, namesOf(reflect.TypeOf(into).Elem())); err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return badRequest(fmt.Sprintf("%q cannot be a %s", kind.Field, kind.Value))
		}
		return badRequest("the body is no valid JSON: " + err.Error())
	}
	return nil
}

// namesOf are the members that a struct takes, those of embedded structs among them.
func namesOf(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, namesOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}

func checkNames(b []byte, known []string) error {
	d := json.NewDecoder(bytes.NewReader(b))
	invalid := func(err error) error { return badRequest("the body is no valid JSON: " + err.Error()) }
	first, err := d.Token()
	if err != nil {
		return invalid(err)
	}
	if first != json.Delim('{') {
		return badRequest("the body must be a JSON object")
	}
	var seen []string
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return invalid(err)
		}
		name, _ := token.(string)
		switch {
		case !slices.Contains(known, name):
			if len(known) == 0 {
				return badRequest(fmt.Sprintf("unknown member %q; there are none here", name))
			}
			return badRequest(fmt.Sprintf("unknown member %q; known are %s", name, strings.Join(known, ", ")))
		case slices.Contains(seen, name):
			return badRequest(fmt.Sprintf("%q is there twice", name))
		}
		seen = append(seen, name)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return invalid(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return invalid(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("something follows the JSON object")
	}
	return nil
}

// query reads the parameters of a URL and refuses unknown ones and repeated ones but those in
// many.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query is malformed")
	}
	for name, values := range q {
		many := slices.Contains(known, name+"*")
		if !many && !slices.Contains(known, name) {
			if len(known) == 0 {
				return nil, badRequest(fmt.Sprintf("unknown parameter %q; there are none here", name))
			}
			return nil, badRequest(fmt.Sprintf("unknown parameter %q; known are %s", name, strings.ReplaceAll(strings.Join(known, ", "), "*", "")))
		}
		if !many && len(values) > 1 {
			return nil, badRequest(fmt.Sprintf("parameter %q is there twice", name))
		}
	}
	return q, nil
}

// number reads a parameter that is a whole number from lo to hi; def when it is not there.
func number(q url.Values, name string, def, lo, hi int) (int, error) {
	if !q.Has(name) {
		return def, nil
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < lo || n > hi {
		return 0, badRequest(fmt.Sprintf("%s must be a number from %d to %d", name, lo, hi))
	}
	return n, nil
}

// flag reads a parameter that is true or false; false when it is not there.
func flag(q url.Values, name string) (bool, error) {
	switch v := q.Get(name); {
	case !q.Has(name) || v == "false" || v == "0":
		return false, nil
	case v == "" || v == "true" || v == "1":
		return true, nil
	}
	return false, badRequest(name + " must be true or false")
}

// maxTurn is more than any session has.
const maxTurn = 1 << 30

// turnOf reads a turn of a URL for a session: a number from 0, or "latest". Where tip is set, the
// number after the last turn is allowed.
func turnOf(text string, s store.Session, tip bool) (int, error) {
	n, err := strconv.Atoi(text)
	if text == "latest" {
		n, err = s.Turns-1, nil
		if n < 0 {
			return 0, noTurn(s, 0)
		}
	}
	if err != nil || n < 0 || n > maxTurn || strings.HasPrefix(text, "+") {
		return 0, badRequest(fmt.Sprintf("%q is no turn: it is a number from 0, or latest", text))
	}
	if n > s.Turns || n == s.Turns && !tip {
		return 0, noTurn(s, n)
	}
	return n, nil
}

func noTurn(s store.Session, n int) error {
	has := fmt.Sprintf("has turns 0 to %d", s.Turns-1)
	if s.Turns == 0 {
		has = "has no turns"
	}
	return fmt.Errorf("session %s %s, not %d: %w", s.ID, has, n, store.ErrNoTurn)
}

// session finds the session that a request names; "" is the current one.
func (s *Server) session(r *http.Request, ref string) (found store.Session, err error) {
	err = s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error {
		found, err = tx.FindSession(ref)
		return err
	})
	return found, err
}

// paths resolves names relative to the workspace's folder.
func (s *Server) paths(names []string) (all []store.Path, err error) {
	for _, name := range names {
		if name == "" {
			return nil, badRequest("a path must not be empty")
		}
		p, err := s.o.Capture.Root.Resolve(s.o.Capture.Root.Path(), name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// pathArg is a path of a body: a string or, when it is not UTF-8, {"b64":"…"}.
type pathArg string

// UnmarshalJSON reads either form.
func (p *pathArg) UnmarshalJSON(b []byte) error {
	var exact struct {
		B64 *string `json:"b64"`
	}
	if len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &exact); err != nil || exact.B64 == nil {
			return errors.New(`a path is a string or {"b64":"…"}`)
		}
		name, err := base64.StdEncoding.DecodeString(*exact.B64)
		*p = pathArg(name)
		return err
	}
	var text string
	err := json.Unmarshal(b, &text)
	*p = pathArg(text)
	return err
}

// scopeOf reads the scope of a rewind. One that is not there is both or, where only some paths
// are meant, code: a conversation has no paths.
func scopeOf(word *string, some bool) (store.Scope, error) {
	switch {
	case word == nil && some:
		return store.Code, nil
	case word == nil:
		return store.Both, nil
	}
	scope, err := store.ParseScope(*word)
	if err != nil {
		return 0, badRequest(fmt.Sprintf("unknown scope %q: it is code, conversation or both", *word))
	}
	return scope, nil
}

// turnArg reads the turn of a body, which has to be there: a missing turn is not turn 0.
func turnArg(n *int) (int, error) {
	switch {
	case n == nil:
		return 0, badRequest("the turn is missing")
	case *n < 0 || *n > maxTurn:
		return 0, badRequest("the turn must be a number from 0")
	}
	return *n, nil
}
