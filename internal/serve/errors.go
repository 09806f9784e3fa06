package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strings"
	"time"

	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/internal/move"
	"reasonix/internal/report"
	"reasonix/internal/view"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// refusal is an error with its status. Its message is for the client.
type refusal struct {
	status        int
	code, reason  string // reason is finer than code; may be empty
	message, hint string
	allow         string       // the methods, of a wrong one
	result        *report.Move // conflicts come with one
}

func (e *refusal) Error() string { return e.message }

func refuse(status int, code, message, hint string) error {
	return &refusal{status: status, code: code, message: message, hint: hint}
}

func badRequest(message string) error {
	return refuse(http.StatusBadRequest, "bad_request", message, "GET /openapi.json describes every request")
}

func notFound(reason, message, hint string) error {
	return &refusal{status: http.StatusNotFound, code: "not_found", reason: reason, message: message, hint: hint}
}

// errInternal is a fault of ours.
var errInternal = &refusal{
	status: http.StatusInternalServerError, code: "internal",
	message: "something went wrong in the server; nothing was changed", hint: "the server's own output says more",
}

// meanings says what the errors of other packages mean; the first that matches holds. What is not
// listed is errInternal.
var meanings = []struct {
	err    error
	status int
	code   string
	reason string
	hint   string
}{
	{rewind.ErrBusy, http.StatusConflict, "busy", "turn_running", `wait for the turn to end, or send "force": true, which closes it`},
	{capture.ErrLocked, http.StatusConflict, "busy", "locked", "another operation is at work; try again"},
	{rewind.ErrConflict, http.StatusConflict, "conflict", "conflict", `"force": true goes on, and can be undone; "skip_conflicts": true leaves those paths alone`},
	{rewind.ErrStale, http.StatusConflict, "stale", "stale", "something changed meanwhile: look again, then decide"},
	{rewind.ErrNothingToUndo, http.StatusNotFound, "not_found", "nothing_to_undo", "GET /operations lists what was done"},
	{rewind.ErrNothingToRedo, http.StatusNotFound, "not_found", "nothing_to_redo", "GET /operations lists what was done"},
	{rewind.ErrNotUndoable, http.StatusConflict, "conflict", "not_undoable", "GET /operations lists what stands"},
	{rewind.ErrExpired, http.StatusNotFound, "not_found", "expired", "GET /checkpoints shows which turns can be restored"},
	{blob.ErrExpired, http.StatusNotFound, "not_found", "expired", "GET /checkpoints shows which turns can be restored"},
	{rewind.ErrReadOnly, http.StatusConflict, "conflict", "read_only", "files there cannot be written; nothing was changed"},
	{store.ErrReadOnly, http.StatusConflict, "conflict", "store_read_only", "the store can only be read"},
	{store.ErrCurrent, http.StatusConflict, "conflict", "current_session", ""},
	{store.ErrNoTurn, http.StatusNotFound, "not_found", "no_turn", "GET /checkpoints lists the turns"},
	{store.ErrNoSession, http.StatusNotFound, "not_found", "no_session", "GET /sessions lists them"},
	{store.ErrAmbiguous, http.StatusNotFound, "not_found", "ambiguous_session", "send more of the id"},
	{store.ErrNoOperation, http.StatusNotFound, "not_found", "no_operation", "GET /operations lists them"},
	{rewind.ErrNoPath, http.StatusNotFound, "not_found", "no_path", "paths are relative to the workspace"},
	{view.ErrNoPath, http.StatusNotFound, "not_found", "no_path", "paths are relative to the workspace"},
	{workspace.ErrOutside, http.StatusNotFound, "not_found", "outside_workspace", "paths are relative to the workspace"},
	{workspace.ErrProtected, http.StatusNotFound, "not_found", "protected", ""},
	{workspace.ErrInvalid, http.StatusBadRequest, "bad_request", "invalid_path", ""},
	{rewind.ErrInvalid, http.StatusBadRequest, "bad_request", "invalid", ""},
	{move.ErrName, http.StatusBadRequest, "bad_request", "name_taken", "choose another name"},
	{store.ErrInvalid, http.StatusBadRequest, "bad_request", "invalid", ""},
}

// meaningOf is the one place that maps errors to statuses.
func (s *Server) meaningOf(err error) *refusal {
	var known *refusal
	if errors.As(err, &known) {
		return known
	}
	var unread *rewind.DamageError
	var damage *blob.DamagedError
	if errors.As(err, &unread) || errors.As(err, &damage) || errors.Is(err, store.ErrDamaged) {
		return &refusal{
			status: http.StatusInternalServerError, code: "internal", reason: "damaged",
			message: "a content that is needed is damaged; nothing was changed", hint: "reasonix verify --deep lists all damage",
		}
	}
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			return &refusal{status: m.status, code: m.code, reason: m.reason, message: s.local(err), hint: m.hint}
		}
	}
	return errInternal
}

// local is an error's text without the name of the workspace's folder.
func (s *Server) local(err error) string {
	root := strings.TrimSuffix(s.o.Capture.Root.Path(), "/")
	text := strings.ReplaceAll(strings.ReplaceAll(err.Error(), root+"/", ""), "\n", "; ")
	return report.Text(strings.ReplaceAll(text, root, "."))
}

// errorJSON is the body of a refusal.
type errorJSON struct {
	Error struct {
		report.Error
		Reason string `json:"reason,omitempty"`
	} `json:"error"`
}

// lockedPage is for a person whose browser has no token, or that of an earlier start.
const lockedPage = `<!doctype html><meta charset="utf-8"><title>reasonix</title>
<h1>reasonix</h1><p>Open the URL that <code>reasonix serve</code> printed when it was started: it has the token in it.</p>
`

// fail answers with an error. What was begun already can only be cut off.
func (s *Server) fail(w *tracked, r *http.Request, err error) {
	e := s.meaningOf(err)
	if e == errInternal && !errors.Is(err, context.Canceled) {
		s.o.Log("%s %s: %v", r.Method, r.URL.Path, err)
	}
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	if e.allow != "" {
		w.Header().Set("Allow", e.allow)
	}
	if e.status == http.StatusUnauthorized && r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.send(w, e.status, kinds[".html"], []byte(lockedPage))
		return
	}
	var out errorJSON
	out.Error.Error = report.Error{Code: e.code, Message: e.message, Hint: e.hint}
	out.Error.Reason = e.reason
	if e.result == nil {
		s.write(w, e.status, out)
		return
	}
	s.write(w, e.status, struct {
		report.Move
		errorJSON
	}{*e.result, out})
}

// write answers with a JSON value.
func (s *Server) write(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // no shape of ours does that
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"","hint":""}}`)
	}
	s.send(w, status, "application/json", append(b, '\n'))
}

// send answers with bytes, for which the client has Limits.Write from now on.
func (s *Server) send(w http.ResponseWriter, status int, kind string, b []byte) {
	s.deadline(w)
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that went away is no error
}

// deadline begins the time that the client has to take what is written next.
func (s *Server) deadline(w http.ResponseWriter) {
	// Only recorders of tests cannot do this.
	_ = http.NewResponseController(w).SetWriteDeadline(s.o.Now().Add(s.o.Limits.Write))
}

// logger passes what net/http has to say to Options.Log.
func logger(to func(string, ...any)) *log.Logger { return log.New(logWriter(to), "", 0) }

type logWriter func(string, ...any)

func (l logWriter) Write(b []byte) (int, error) {
	l("%s", strings.TrimSpace(string(b)))
	return len(b), nil
}

// timeText is a time for JSON: RFC 3339, UTC, in milliseconds.
func timeText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
