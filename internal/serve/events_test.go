package serve

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// A stream tells of everything that happens, whoever does it: this server, a recorder, and
// another process, which has connections and locks of its own.
func TestEventsOfOthers(t *testing.T) {
	s := newServed(t, nil)
	one, two := s.listen(), s.listen()
	both := func(name string, into any) {
		t.Helper()
		a, b := one.until(name), two.until(name)
		if a != b {
			t.Errorf("two streams differ: %+v, %+v", a, b)
		}
		s.Must(json.Unmarshal([]byte(a.data), into))
	}
	var turn turnEvent
	_, err := s.Recorder.BeginTurn(t.Context(), s.ID, "", "<b>go on</b>", []json.RawMessage{[]byte(`{"role":"user"}`)})
	s.Must(err)
	if both("turn_started", &turn); turn != (turnEvent{s.ID, 5, "<b>go on</b>", "open"}) {
		t.Errorf("turn_started: %+v", turn)
	}
	var more messageEvent
	if both("message", &more); more != (messageEvent{s.ID, 5, 6}) {
		t.Errorf("message: %+v", more)
	}
	s.Must(s.Recorder.EndTurn(t.Context(), s.ID, store.TurnFailed))
	if both("turn_ended", &turn); turn.Turn != 5 || turn.Status != "failed" {
		t.Errorf("turn_ended: %+v", turn)
	}

	other := s.other()
	plan, err := other.Plan(t.Context(), rewind.Request{Kind: store.OpRewind, Session: s.ID, Turn: 2, Scope: store.Both})
	s.Must(err)
	_, err = other.Apply(t.Context(), plan)
	s.Must(err)
	var moved movedJSON
	if both("rewound", &moved); moved.Kind != "rewind" || *moved.Turn != 2 || moved.Turns != 2 || moved.Messages != 2 || moved.Session != s.ID {
		t.Errorf("rewound: %+v", moved)
	}
	s.want(s.do("POST", "/undo-rewind", ""), 200)
	if both("rewound", &moved); moved.Kind != "undo" || moved.Turns != 6 {
		t.Errorf("undo: %+v", moved)
	}
	fork := read[moveJSON](s, s.do("POST", "/fork", `{"turn":1,"name":"n"}`))
	if both("forked", &moved); moved.Kind != "fork" || moved.Branch != fork.Branch || moved.Session != s.ID {
		t.Errorf("forked: %+v, %s", moved, fork.Branch)
	}
	s.want(s.do("POST", "/switch", `{"session":"-"}`), 200)
	if both("switched", &moved); moved.Session != s.ID {
		t.Errorf("switched: %+v", moved)
	}
	s.Must(s.Capture.Store.Update(t.Context(), func(tx *store.WriteTx) error { return tx.RenameSession(fork.Branch, "m") }))
	both("changed", &struct{}{})
}

// other is what another process is: its own connections to the store, its own locks.
func (s *served) other() *rewind.Engine {
	s.T.Helper()
	st, err := store.Open(s.T.Context(), s.Capture.Store.Path(), store.Options{})
	s.Must(err)
	root, err := workspace.Open(s.Dir, workspace.Options{})
	s.Must(err)
	s.T.Cleanup(func() { s.Must(st.Close()); s.Must(root.Close()) })
	return rewind.New(&capture.Capturer{Store: st, Root: root}, rewind.Options{})
}

// Calls of tools are told when they begin and when they end.
func TestEventsOfTools(t *testing.T) {
	s := newServed(t, nil)
	st := s.listen()
	var turn turnEvent
	s.Turn("with a tool", nil, func() {
		s.Edit(func() {
			s.Must(json.Unmarshal([]byte(st.until("turn_started").data), &turn))
			var begun toolEvent
			s.Must(json.Unmarshal([]byte(st.until("tool").data), &begun))
			if begun.State != "started" || begun.Kind != "edit" || len(begun.Paths) != 1 || begun.Paths[0] != "a.txt" {
				t.Errorf("started: %+v", begun)
			}
			s.Put("a.txt", "tool\n", 0o644)
		}, "a.txt")
		var ended toolEvent
		s.Must(json.Unmarshal([]byte(st.until("tool").data), &ended))
		if ended.State != "ended" || ended.Session != s.ID {
			t.Errorf("ended: %+v", ended)
		}
	})
	s.Must(json.Unmarshal([]byte(st.until("turn_ended").data), &turn))
	if turn.Turn != 5 || turn.Status != "done" {
		t.Errorf("turn_ended: %+v", turn)
	}
}

// A turn that is rewound away while it runs has ended too.
func TestEventOfATurnRewoundAway(t *testing.T) {
	s := newServed(t, nil)
	st := s.listen()
	_, err := s.Recorder.BeginTurn(t.Context(), s.ID, "", "runs", nil)
	s.Must(err)
	st.until("turn_started")
	s.want(s.do("POST", "/rewind", `{"turn":2,"force":true}`), 200)
	if e := st.until("turn_ended"); !strings.Contains(e.data, `"turn":5`) || !strings.Contains(e.data, "interrupted") {
		t.Errorf("turn_ended: %+v", e)
	}
}

// A stream that comes back goes on where it was, in the header or the parameter; one that was away
// too long, or knew another server, is told to read everything again.
func TestResume(t *testing.T) {
	s := newServed(t, func(o *Options) { o.Limits.Events = 4 })
	st := s.listen()
	begin, _ := st.next()
	if begin.id == "" || begin.name != "" {
		t.Fatalf("a stream begins with %+v", begin)
	}
	s.want(s.do("POST", "/rewind", `{"turn":4,"scope":"conversation"}`), 200)
	first := st.until("rewound")
	st.close()
	s.want(s.do("POST", "/rewind", `{"turn":3,"scope":"conversation"}`), 200)
	waitFor(t, "the second event", func() bool { return s.server.hub.newest() >= 2 })
	back := s.listen("Last-Event-ID", first.id)
	if e := back.until("rewound"); !strings.Contains(e.data, `"turn":3`) || e.id == first.id {
		t.Errorf("what was missed: %+v", e)
	}
	again := s.listen("Last-Event-ID", begin.id)
	if a, b := again.until("rewound"), again.until("rewound"); a != first || !strings.Contains(b.data, `"turn":3`) {
		t.Errorf("from the beginning: %+v, %+v", a, b)
	}
	for range 3 {
		s.want(s.do("POST", "/undo-rewind", ""), 200)
		s.want(s.do("POST", "/redo-rewind", ""), 200)
	}
	waitFor(t, "events to be dropped", func() bool { return s.server.hub.newest() > 6 })
	for _, id := range []string{begin.id, "0badcafe-3", "x", first.id + "0000", "-1", strings.Repeat("9", 60)} {
		if e := s.listen("Last-Event-ID", id).until("reset"); e.data != "{}" || e.id == "" {
			t.Errorf("after %s: %+v", id, e)
		}
	}
}

// A quiet stream shows that it lives, for longer than a request may take.
func TestPing(t *testing.T) {
	s := newServed(t, func(o *Options) {
		o.Limits.Ping, o.Limits.Read, o.Limits.Write, o.Limits.Idle = 20*time.Millisecond, 50*time.Millisecond, 10*time.Second, 50*time.Millisecond
	})
	st := s.listen()
	for pings := 0; pings < 10; {
		e, ok := st.next()
		if !ok {
			t.Fatalf("the stream ended after %d pings: %v", pings, st.lines.Err())
		}
		if e.comment == "ping" {
			pings++
		}
	}
	s.want(s.do("POST", "/rewind", `{"turn":4}`), 200)
	st.until("rewound")
}

// The end of the server ends the streams, finishes what is in progress, and takes nothing new.
func TestGracefulEnd(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := newServed(t, func(o *Options) {
		o.Agent = &agentStub{submit: func(string) (int, error) { close(begun); <-goOn; return 7, nil }}
	})
	st := s.listen()
	done := make(chan answer, 1)
	go func() { done <- s.do("POST", "/submit", `{"prompt":"x"}`) }()
	<-begun
	idle := s.dial()
	defer idle.Close()
	ended := make(chan struct{})
	go func() { s.end(); close(ended) }()
	for {
		if _, ok := st.next(); !ok {
			break
		}
	}
	close(goOn)
	if a := <-done; a.status != 202 || a.body != "{\"turn\":7}\n" {
		t.Errorf("what was in progress: %d %s", a.status, a.body)
	}
	<-ended
	if _, err := s.client.Get(s.base + "/healthz"); err == nil {
		t.Error("the server still answers")
	}
}

// A request that does not end is cut off when the server has waited for it long enough.
func TestEndIsBounded(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := newServed(t, func(o *Options) {
		o.Limits.Drain = 50 * time.Millisecond
		o.Agent = &agentStub{submit: func(string) (int, error) { close(begun); <-goOn; return 7, nil }}
	})
	failed := make(chan error, 1)
	go func() {
		res, err := s.client.Post(s.base+"/submit", "application/json", strings.NewReader(`{"prompt":"x"}`))
		if err == nil {
			_ = res.Body.Close()
		}
		failed <- err
	}()
	<-begun
	s.end()
	if err := <-failed; err == nil {
		t.Error("it was answered")
	}
	close(goOn)
}
