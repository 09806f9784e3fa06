package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/report"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
)

func (s *served) files() map[string]worldtest.Entry { return worldtest.Files(s.T, s.Dir) }

func (s *served) same(what string, want map[string]worldtest.Entry) {
	s.T.Helper()
	if d := cmp.Diff(want, s.files()); d != "" {
		s.T.Errorf("%s: files differ (-want +got):\n%s", what, d)
	}
}

// A rewind over HTTP restores files and conversation exactly, undo and redo take it back and forth.
func TestRewindUndoRedo(t *testing.T) {
	s := newServed(t, nil)
	before := s.files()
	dry := read[moveJSON](s, s.do("POST", "/rewind", `{"turn":4,"scope":"both","dry_run":true}`))
	s.same("a dry run", before)
	if dry.Operation != nil || dry.Plan == "" || !dry.DryRun {
		t.Errorf("dry run: %+v", dry)
	}
	done := read[moveJSON](s, s.do("POST", "/rewind", `{"turn":4,"scope":"both","plan":"`+dry.Plan+`"}`))
	dry.Operation, dry.DryRun, dry.Plan = done.Operation, false, ""
	if d := cmp.Diff(dry, done); d != "" {
		t.Errorf("what was done is not what was shown:\n%s", d)
	}
	if b, err := os.ReadFile(s.Abs("a.txt")); err != nil || string(b) != "text of turn 3\n" {
		t.Errorf("a.txt: %q, %v", b, err)
	}
	after := s.files()
	if _, there := after["d/f4.txt"]; there || done.Messages != 4 {
		t.Errorf("after the rewind: %v, %d messages", after, done.Messages)
	}
	undo := read[moveJSON](s, s.do("POST", "/undo-rewind", `{}`))
	s.same("undo", before)
	if undo.Messages != 5 || undo.Undoes == nil || *undo.Undoes != *done.Operation {
		t.Errorf("undo: %+v", undo)
	}
	s.want(s.do("POST", "/redo-rewind", `{"operation":"1"}`), 409, "stale")
	read[moveJSON](s, s.do("POST", "/redo-rewind", `{"operation":"`+*undo.Operation+`"}`))
	s.same("redo", after)
	read[moveJSON](s, s.do("POST", "/undo-rewind", "")) // no body is {}
	s.same("undo of the redo", before)
	s.want(s.do("POST", "/redo-rewind", `{"dry_run":true}`), 200)
	ops := read[report.Operations](s, s.do("GET", "/operations?limit=3", ""))
	if len(ops.Operations) != 3 || !ops.More || ops.Operations[0].Kind != "undo" {
		t.Errorf("operations: %+v", ops)
	}
	s.want(s.do("POST", "/undo-rewind", `{"operation":"1"}`), 409, "conflict", "not_undoable")
	s.same("operations that were refused", before)
}

// Absent scopes, single paths, and the number after the last turn.
func TestRewindForms(t *testing.T) {
	s := newServed(t, nil)
	res := read[moveJSON](s, s.do("POST", "/rewind", `{"turn":3,"dry_run":true}`))
	if *res.Scope != "both" {
		t.Errorf("an absent scope is %s", *res.Scope)
	}
	res = read[moveJSON](s, s.do("POST", "/rewind", `{"turn":3,"paths":["d"],"dry_run":true}`))
	if *res.Scope != "code" || !cmp.Equal(res.Deleted, []string{"d/f3.txt", "d/f4.txt"}) || len(res.Written) != 0 {
		t.Errorf("only d: %+v", res.Move)
	}
	res = read[moveJSON](s, s.do("POST", "/rewind", `{"turn":3,"paths":[{"b64":"YS50eHQ="}],"dry_run":true}`))
	if !cmp.Equal(res.Written, []string{"a.txt"}) {
		t.Errorf("only a.txt: %+v", res.Move)
	}
	read[moveJSON](s, s.do("POST", "/rewind", `{"turn":3,"scope":"conversation"}`))
	res = read[moveJSON](s, s.do("POST", "/rewind", `{"turn":3,"scope":"code"}`))
	if b, _ := os.ReadFile(s.Abs("a.txt")); string(b) != "text of turn 2\n" {
		t.Errorf("the tip: %q, %+v", b, res.Move)
	}
	s.want(s.do("POST", "/rewind", `{"turn":4}`), 404, "not_found", "no_turn")
}

// What is no clear request is refused and changes nothing.
func TestBadMoves(t *testing.T) {
	s := newServed(t, nil)
	before, ops := s.files(), s.do("GET", "/operations", "").body
	for path, bodies := range map[string][]string{
		"/rewind": {
			`{`, `[]`, `null`, `4`, `"x"`, `{}`, `{"scope":"both"}`, `{"turn":null}`, `{"turn":-1}`, `{"turn":"4"}`, `{"turn":4.5}`,
			`{"turn":4,"scope":"bot"}`, `{"turn":4,"scope":""}`, `{"turn":4,"scope":"Both"}`, `{"turn":4,"extra":1}`, `{"Turn":4}`,
			`{"turn":4,"turn":0}`, `{"turn":4}{}`, `{"turn":4} x`, `{"turn":4,"force":true,"skip_conflicts":true}`, `{"turn":1e99}`,
			`{"turn":4,"paths":[""]}`, `{"turn":4,"paths":[7]}`, `{"turn":4,"paths":[{"b64":"?"}]}`, `{"turn":4,"paths":["a\u0000b"]}`,
			`{"turn":4,"force":"yes"}`, `{"turn":99999999999}`,
		},
		"/fork":        {`{}`, `{"turn":-2}`, `{"turn":0,"name":"current"}`, `{"turn":0,"name":"3"}`, `{"turn":0,"scope":"both"}`},
		"/switch":      {`{}`, `{"session":""}`, `{"session":7}`},
		"/undo-rewind": {`{"operation":7}`, `{"operation":"x"}`, `{"operation":"-1"}`, `{"op":"1"}`},
		"/redo-rewind": {`{"operation":"0"}`, `[{}]`},
		"/submit":      {`{}`, `{"prompt":" "}`, `{"prompt":1}`},
		"/cancel":      {`{"now":true}`},
	} {
		for _, body := range bodies {
			if a := s.do("POST", path, body); a.status != 400 {
				t.Errorf("POST %s %s: %d %s", path, body, a.status, a.body)
			}
		}
	}
	for _, c := range []struct{ path, body, reason string }{
		{"/rewind", `{"turn":6}`, "no_turn"},
		{"/rewind", `{"turn":1,"session":"nobody"}`, "no_session"},
		{"/rewind", `{"turn":1,"paths":["never"]}`, "no_path"},
		{"/rewind", `{"turn":1,"paths":["../../etc/passwd"]}`, "outside_workspace"},
		{"/rewind", `{"turn":1,"paths":["/etc/passwd"]}`, "outside_workspace"},
		{"/rewind", `{"turn":1,"paths":[".git/config"]}`, "protected"},
		{"/fork", `{"turn":9}`, "no_turn"},
		{"/switch", `{"session":"nobody"}`, "no_session"},
		{"/switch", `{"session":"-"}`, "no_session"},
		{"/undo-rewind", `{}`, "nothing_to_undo"},
		{"/undo-rewind", `{"operation":"77"}`, "no_operation"},
		{"/redo-rewind", `{}`, "nothing_to_redo"},
	} {
		s.want(s.do("POST", c.path, c.body), 404, "not_found", c.reason)
	}
	s.same("after refused requests", before)
	if now := s.do("GET", "/operations", "").body; now != ops {
		t.Errorf("operations were %s, are %s", ops, now)
	}
}

// Conflicts come with the list; force goes on, skip leaves them, and a plan that is out of date is
// not carried out.
func TestConflictsAndStalePlans(t *testing.T) {
	s := newServed(t, nil)
	plan := read[moveJSON](s, s.do("POST", "/rewind", `{"turn":2,"scope":"code","dry_run":true,"force":true}`)).Plan
	s.Put("a.txt", "by hand\n", 0o644)
	before := s.files()
	for _, dry := range []string{"true", "false"} {
		a := s.want(s.do("POST", "/rewind", `{"turn":2,"scope":"both","dry_run":`+dry+`}`), 409, "conflict", "conflict")
		var res moveJSON
		s.Must(json.Unmarshal([]byte(a.body), &res))
		if len(res.Conflicts) != 1 || res.Conflicts[0].Path != "a.txt" || res.Conflicts[0].Reason != rewind.ChangedByOther {
			t.Errorf("conflicts: %+v", res.Conflicts)
		}
	}
	s.want(s.do("POST", "/rewind", `{"turn":3,"scope":"code","plan":"`+plan+`","force":true}`), 409, "stale")
	s.same("conflicts and a stale plan", before)
	skipped := read[moveJSON](s, s.do("POST", "/rewind", `{"turn":2,"scope":"code","skip_conflicts":true}`))
	if !cmp.Equal(skipped.Left, []string{"a.txt"}) {
		t.Errorf("left: %v", skipped.Left)
	}
	read[moveJSON](s, s.do("POST", "/undo-rewind", `{}`))
	s.same("undo", before)
	read[moveJSON](s, s.do("POST", "/rewind", `{"turn":2,"scope":"code","force":true}`))
	read[moveJSON](s, s.do("POST", "/undo-rewind", `{}`))
	s.same("undo of a forced rewind", before)
}

// Of many tabs that were shown the same plan one carries it out; to the others it is out of date.
func TestOnePlanManyTabs(t *testing.T) {
	s := newServed(t, nil)
	plan := read[moveJSON](s, s.do("POST", "/rewind", `{"turn":2,"scope":"both","dry_run":true}`)).Plan
	answers := make(chan answer, 8)
	for range cap(answers) {
		go func() { answers <- s.do("POST", "/rewind", `{"turn":2,"scope":"both","plan":"`+plan+`"}`) }()
	}
	done := 0
	for range cap(answers) {
		switch a := <-answers; a.status {
		case 200:
			done++
		case 409, 404: // by then there is no turn 2 to be seen any more
			if strings.Contains(a.body, `"conflict"`) {
				t.Errorf("a conflict: %s", a.body)
			}
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if done != 1 {
		t.Errorf("%d tabs carried out one plan", done)
	}
	var log struct{ Operations []json.RawMessage }
	s.Must(json.Unmarshal([]byte(s.do("GET", "/operations", "").body), &log))
	if len(log.Operations) != 1 {
		t.Errorf("operations: %s", log.Operations)
	}
}

// A turn that runs makes moves busy, until force closes it.
func TestBusy(t *testing.T) {
	s := newServed(t, nil)
	_, err := s.Recorder.BeginTurn(t.Context(), s.ID, "", "running", nil)
	s.Must(err)
	unlock, err := s.Capture.LockTurn(t.Context(), s.ID)
	s.Must(err)
	s.want(s.do("POST", "/rewind", `{"turn":2}`), 409, "busy", "turn_running")
	unlock()
	s.want(s.do("POST", "/rewind", `{"turn":2,"force":true}`), 200)
}

// Forks and switches, and a session that was deleted and comes back.
func TestForkAndSwitch(t *testing.T) {
	s := newServed(t, nil)
	fork := read[moveJSON](s, s.do("POST", "/fork", `{"turn":3}`))
	if fork.Branch == "" || fork.Session != fork.Branch || fork.Parent != s.ID || *fork.Turn != 3 || fork.Messages != 3 {
		t.Errorf("fork: %+v", fork.Move)
	}
	s.want(s.do("POST", "/fork", `{"turn":3,"name":"`+string(s.ID)+`"}`), 400, "bad_request", "name_taken")
	tree := read[report.Tree](s, s.do("GET", "/tree", ""))
	if len(tree.Tree) != 1 || len(tree.Tree[0].Forks) != 1 || tree.Tree[0].Forks[0].Session != fork.Branch {
		t.Errorf("tree: %+v", tree.Tree)
	}
	before := s.files()
	back := read[moveJSON](s, s.do("POST", "/switch", `{"session":"-"}`))
	if back.Session != s.ID {
		t.Errorf("switch: %+v", back.Move)
	}
	if again := read[moveJSON](s, s.do("POST", "/switch", `{"session":"`+string(s.ID)+`"}`)); again.Operation != nil {
		t.Errorf("a switch to the current session did something: %+v", again.Move)
	}
	s.same("fork and switch", before)
	op, err := s.Engine.DeleteSession(t.Context(), fork.Branch, false)
	s.Must(err)
	undo := read[report.Deletion](s, s.do("POST", "/undo-rewind", `{"session":"`+string(fork.Branch)+`"}`))
	if undo.Session != fork.Branch || *undo.Undoes != *report.OpID(op) || undo.Operation == nil {
		t.Errorf("undo of a deletion: %+v", undo)
	}
	s.want(s.do("GET", "/checkpoints?session="+string(fork.Branch), ""), 200)
}

// Submitting needs an agent, and passes on what it says.
func TestSubmit(t *testing.T) {
	s := newServed(t, nil)
	s.want(s.do("POST", "/submit", `{"prompt":"go"}`), 409, "not_configured")
	s.want(s.do("POST", "/cancel", `{}`), 409, "not_configured")
	s.end()

	var got string
	stub := &agentStub{
		submit: func(p string) (int, error) {
			if p == "busy" {
				return 0, &rewind.BusyError{Session: "abcd1234"}
			}
			got = p
			return 5, nil
		},
		cancel: func() (bool, error) { return true, nil },
	}
	s = newServed(t, func(o *Options) { o.Agent = stub })
	st := s.listen()
	a := s.want(s.do("POST", "/submit", `{"prompt":"go on"}`), http.StatusAccepted)
	if e := st.until("progress"); e.data != `{"session":"abcd1234","turn":5,"kind":"text","text":"\u003cb\u003ego on"}` {
		t.Errorf("progress: %+v", e)
	}
	if a.body != "{\"turn\":5}\n" || got != "go on" {
		t.Errorf("submit: %q, the agent got %q", a.body, got)
	}
	s.want(s.do("POST", "/submit", `{"prompt":"busy"}`), 409, "busy")
	if a := s.want(s.do("POST", "/cancel", ""), 200); a.body != "{\"cancelled\":true}\n" {
		t.Errorf("cancel: %q", a.body)
	}
	stub.cancel = func() (bool, error) { return false, errors.New("cannot open " + s.Abs("secret")) }
	s.want(s.do("POST", "/cancel", ""), 500, "internal")
	if !read[statusJSON](s, s.do("GET", "/status", "")).Agent {
		t.Error("status does not tell of the agent")
	}
}
