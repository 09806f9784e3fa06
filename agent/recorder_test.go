package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// bench is a workspace with a store and one session.
type bench struct {
	t        testing.TB
	dir      string
	capture  *capture.Capturer
	recorder *agent.Recorder
	id       store.SessionID
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	root, err := workspace.Open(b.dir, workspace.Options{})
	b.must(err)
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{Create: &store.Workspace{Root: root.Path()}})
	b.must(err)
	b.capture = &capture.Capturer{Store: s, Root: root}
	b.recorder = agent.NewRecorder(b.capture)
	ses, err := b.recorder.Session(t.Context(), "test", "one")
	b.must(err)
	b.id = ses.ID
	t.Cleanup(func() {
		problems, err := s.Verify(context.Background(), true, nil)
		if err != nil || len(problems) > 0 {
			t.Errorf("verify: %+v, %v", problems, err)
		}
		b.must(s.Close())
		b.must(root.Close())
	})
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	name = filepath.Join(b.dir, name)
	b.must(os.MkdirAll(filepath.Dir(name), 0o755))
	b.must(os.WriteFile(name, []byte(content), 0o644))
}

func (b *bench) begin() {
	b.t.Helper()
	_, err := b.recorder.BeginTurn(b.t.Context(), b.id, "", "prompt", nil)
	b.must(err)
}

func (b *bench) end() {
	b.t.Helper()
	b.must(b.recorder.EndTurn(b.t.Context(), b.id, store.TurnDone))
}

func (b *bench) before(call string, paths ...string) agent.Captured {
	b.t.Helper()
	c, err := b.recorder.BeforeEdit(b.t.Context(), b.id, agent.Edit{Call: call, Tool: "edit", Paths: paths})
	b.must(err)
	return c
}

func (b *bench) after(call string, paths ...string) agent.Captured {
	b.t.Helper()
	c, err := b.recorder.AfterEdit(b.t.Context(), b.id, agent.Edit{Call: call, Tool: "edit", Paths: paths})
	b.must(err)
	return c
}

// rows are the rows of the session's line, said shortly; gaps are its gaps.
func (b *bench) rows() (rows, gaps []string) {
	b.t.Helper()
	b.must(b.capture.Store.View(b.t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(b.id)
		if err != nil {
			return err
		}
		for n := -1; n < s.Turns; n++ {
			placed, err := tx.TurnChanges(s.Head, n)
			if err != nil {
				return err
			}
			for _, p := range placed {
				rows = append(rows, fmt.Sprintf("%d %s %s %s %s %s→%s", n, p.Node.Kind, p.Source, p.Origin, p.Path, b.show(p.Before), b.show(p.After)))
			}
		}
		all, err := tx.Gaps(s.Head, -1)
		for _, g := range all {
			gaps = append(gaps, fmt.Sprintf("%d %s %s", g.Turn, g.Reason, g.Path))
		}
		return err
	}))
	return rows, gaps
}

func (b *bench) show(s store.State) string {
	if s.Kind != store.File {
		return s.Kind.String()
	}
	content, err := b.capture.Store.Blobs().Read(b.t.Context(), s.Blob, 1<<20)
	b.must(err)
	return string(content)
}

func (b *bench) want(rows, gaps []string) {
	b.t.Helper()
	gotRows, gotGaps := b.rows()
	if d := cmp.Diff(rows, gotRows); d != "" {
		b.t.Errorf("rows (-want +got):\n%s", d)
	}
	if d := cmp.Diff(gaps, gotGaps); d != "" {
		b.t.Errorf("gaps (-want +got):\n%s", d)
	}
}

// TestBeforeStateIsCommitted is I1 and I2: the first state stays, whatever names the path.
func TestBeforeStateIsCommitted(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.must(os.MkdirAll(filepath.Join(b.dir, "d"), 0o755))
	b.begin()
	b.before("1", "./a")
	b.want([]string{"0 turn tool agent a 0→0"}, nil)
	b.write("a", "1")
	b.after("1")
	b.before("2", "d/../a", filepath.Join(b.dir, "a"))
	b.write("a", "2")
	b.after("2")
	b.want([]string{"0 turn tool agent a 0→2"}, nil)
	b.end()
	b.want([]string{"0 turn tool agent a 0→2"}, nil)
}

// TestFoldersThatAnEditMakes are rows of their own, so that they can go again.
func TestFoldersThatAnEditMakes(t *testing.T) {
	b := newBench(t)
	b.begin()
	b.before("1", "x/y/z")
	b.write("x/y/z", "new")
	b.after("1")
	b.end()
	b.want([]string{
		"0 turn tool agent x absent→dir", "0 turn tool agent x/y absent→dir", "0 turn tool agent x/y/z absent→new",
	}, nil)
}

// TestAFolderIsAllThatIsInIt: naming a folder covers what it holds and comes to hold.
func TestAFolderIsAllThatIsInIt(t *testing.T) {
	b := newBench(t)
	b.write("d/a", "1")
	b.write("d/sub/b", "2")
	b.begin()
	b.before("1", "d")
	b.must(os.Remove(filepath.Join(b.dir, "d/a")))
	b.write("d/new", "3")
	b.after("1", "d")
	b.end()
	b.want([]string{"0 turn tool agent d/a 1→absent", "0 turn tool agent d/new absent→3"}, nil)
}

// TestWritingThroughALink covers the file that the link leads to.
func TestWritingThroughALink(t *testing.T) {
	b := newBench(t)
	b.write("real", "1")
	b.must(os.Symlink("real", filepath.Join(b.dir, "link")))
	b.begin()
	b.before("1", "link")
	b.write("link", "2") // follows it
	b.after("1", "link")
	b.end()
	b.want([]string{"0 turn tool agent real 1→2"}, nil)
}

// TestHandEditsAreExternal is I13: what nobody announced is somebody else's.
func TestHandEditsAreExternal(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.begin()
	b.before("1", "a")
	b.write("a", "1")
	b.after("1")
	b.write("a", "by hand")
	b.end()
	b.write("a", "by hand again")
	b.begin()
	b.before("2", "a")
	b.write("a", "2")
	b.after("2")
	b.end()
	b.want([]string{
		"0 turn tool agent a 0→1", "0 turn external external a 1→by hand",
		"1 turn external external a by hand→by hand again", "1 turn tool agent a by hand again→2",
	}, nil)
}

// TestOpenCallsGetTheirStateWhenTheTurnCloses, however it does.
func TestOpenCallsGetTheirStateWhenTheTurnCloses(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.begin()
	b.before("1", "a", "b")
	b.write("a", "1")
	b.begin() // the agent was interrupted
	b.want([]string{"0 turn tool agent a 0→1"}, nil)
	b.must(b.capture.Store.View(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(b.id)
		if err != nil {
			return err
		}
		turn, err := tx.Turn(s.Head, 0)
		if turn.Status != store.TurnInterrupted || s.Turns != 2 {
			t.Errorf("turn 0 is %v of %d turns", turn.Status, s.Turns)
		}
		return err
	}))
	b.end()
}

// TestLateEvents go to the head, with a gap.
func TestLateEvents(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.begin()
	b.before("1", "a")
	b.write("a", "1")
	b.end()
	b.write("a", "2")
	b.after("1", "a")
	b.write("never announced", "x")
	b.after("2", "never announced")
	b.want(
		[]string{"0 turn tool agent a 0→1", "0 append tool agent a 1→2", "0 append tool agent never announced uncaptured→x"},
		[]string{"0 late_write a", "0 no_before never announced", "0 late_write never announced"},
	)
}

// TestATurnGoesOnBelowWhatSealedIt: another session's root seals the node, not the turn.
func TestATurnGoesOnBelowWhatSealedIt(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.write("b", "0")
	b.begin()
	b.before("1", "a")
	_, err := b.recorder.Session(t.Context(), "test", "two") // its root lies below our open node
	b.must(err)
	b.write("a", "1")
	b.after("1", "a")
	b.before("2", "b")
	b.write("b", "1")
	b.after("2", "b")
	b.end()
	b.want([]string{
		"0 turn tool agent a 0→0", "0 append tool agent a 0→1", "0 append tool agent b 0→1",
	}, []string{"0 late_write a"})
}

// TestNamesThatAreNoPath leave a gap and nothing else.
func TestNamesThatAreNoPath(t *testing.T) {
	b := newBench(t)
	out := t.TempDir()
	b.must(os.WriteFile(filepath.Join(out, "secret"), []byte("x"), 0o600))
	b.must(os.Symlink(out, filepath.Join(b.dir, "out")))
	b.begin()
	c := b.before("1", "../x", filepath.Join(out, "secret"), ".git/config", "sub/.GIT/x", "", "a\x00b", strings.Repeat("n", 300), "out/secret", "/")
	if len(c.Paths) != 0 || len(c.Gaps) != 9 {
		t.Errorf("captured %v, gaps %v", c.Paths, c.Gaps)
	}
	b.end()
	rows, gaps := b.rows()
	if len(rows) != 0 || len(gaps) != 9 {
		t.Errorf("rows %v, gaps %v", rows, gaps)
	}
}

func TestTurnKeysAreIdempotent(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	raw := []json.RawMessage{json.RawMessage(`{"role":"user","content":"once"}`)}
	for range 3 {
		turn, err := b.recorder.BeginTurn(ctx, b.id, "key", "prompt", raw)
		b.must(err)
		if turn.Number() != 0 {
			t.Errorf("turn %d", turn.Number())
		}
	}
	b.end()
	turn, err := b.recorder.BeginTurn(ctx, b.id, "key", "prompt", raw)
	b.must(err)
	if turn.Number() != 0 || turn.Status != store.TurnDone {
		t.Errorf("turn %d is %v", turn.Number(), turn.Status)
	}
	if turn, err = b.recorder.BeginTurn(ctx, b.id, "other", "prompt", raw); err != nil || turn.Number() != 1 || turn.MsgIndex != 1 {
		t.Errorf("turn %d at %d, %v", turn.Number(), turn.MsgIndex, err)
	}
}

func TestBadEventsRecordNothing(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	bad := []json.RawMessage{json.RawMessage(`{"role":"user"}`), json.RawMessage(`7`)}
	if _, err := b.recorder.BeginTurn(ctx, b.id, "k", "p", bad); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("begin: %v", err)
	}
	if err := b.recorder.Append(ctx, b.id, bad); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("append: %v", err)
	}
	if err := b.recorder.Compact(ctx, b.id, 0, 5, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("compact: %v", err)
	}
	if _, err := b.recorder.Session(ctx, "test", ""); !errors.Is(err, agent.ErrInvalid) {
		t.Errorf("session: %v", err)
	}
	if _, err := b.recorder.BeforeEdit(ctx, "nobody", agent.Edit{Paths: []string{"a"}}); !errors.Is(err, store.ErrNoSession) {
		t.Errorf("unknown session: %v", err)
	}
	b.must(b.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(b.id)
		if s.Turns != 0 || s.Messages != 0 {
			t.Errorf("%d turns, %d messages", s.Turns, s.Messages)
		}
		return err
	}))
}

// TestParallelTools is the normal case: many calls of one turn at once, on shared paths too.
func TestParallelTools(t *testing.T) {
	b := newBench(t)
	b.write("shared", "0")
	b.begin()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := fmt.Sprintf("f%02d", i)
			e := agent.Edit{Call: name, Tool: "edit", Paths: []string{name, "shared"}}
			if _, err := b.recorder.BeforeEdit(t.Context(), b.id, e); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(b.dir, name), bytes.Repeat([]byte(name), 1000), 0o644); err != nil {
				t.Error(err)
			}
			if _, err := b.recorder.AfterEdit(t.Context(), b.id, e); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b.end()
	rows, gaps := b.rows()
	if len(rows) != 16 || len(gaps) != 0 {
		t.Errorf("%d rows %v, gaps %v", len(rows), rows, gaps)
	}
}

// TestGivenContent is used only where we cannot read ourselves.
func TestGivenContent(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root reads everything: only the half about readable files is checked")
	}
	b := newBench(t)
	b.write("a", "real")
	b.begin()
	_, err := b.recorder.BeforeEdit(t.Context(), b.id, agent.Edit{Paths: []string{"a"}, Given: map[string][]byte{"a": []byte("claimed")}})
	b.must(err)
	b.want([]string{"0 turn tool agent a real→real"}, nil)
	b.end()
}

// TestCommands are gaps for now, and keep their session busy until they end.
func TestCommands(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	for _, call := range []string{"1", ""} {
		_, err := b.recorder.BeforeExec(ctx, b.id, agent.Exec{Call: call, Tool: "bash"})
		b.must(err)
	}
	open := func() (n int) {
		b.must(b.capture.Store.View(ctx, func(tx *store.Tx) error {
			calls, err := tx.Calls(b.id)
			n = len(calls)
			return err
		}))
		return n
	}
	if open() != 2 {
		t.Errorf("%d calls are open", open())
	}
	_, err := b.recorder.AfterExec(ctx, b.id, agent.Exec{Call: "1", Tool: "bash"})
	b.must(err)
	_, err = b.recorder.AfterExec(ctx, b.id, agent.Exec{Tool: "bash"})
	b.must(err)
	if open() != 0 {
		t.Errorf("%d calls are still open", open())
	}
	b.end()
	b.want(nil, nil)
}

// TestAFolderThatIsPartlyKnown: what was not listed before is not taken for created (I6).
func TestAFolderThatIsPartlyKnown(t *testing.T) {
	defer agent.SetMaxEntries(3)()
	b := newBench(t)
	for _, f := range []string{"d/a", "d/b", "d/c", "d/z"} {
		b.write(f, "0")
	}
	b.begin()
	b.before("1", "d")
	b.write("d/z", "1")
	b.after("1", "d/z")
	b.end()
	b.want([]string{"0 turn tool agent d/z uncaptured→1"}, []string{"0 too_many_entries d", "0 no_before d/z"})
}

// TestCallsOfOneSessionOnOnePath: what another call of the session does is the agent's doing.
func TestCallsOfOneSessionOnOnePath(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	b.begin()
	b.before("A", "a")
	b.write("a", "1")
	b.before("B", "a")
	b.after("B", "a")
	b.after("A", "a")
	b.end()
	b.want([]string{"0 turn tool agent a 0→1"}, nil)
}

// TestTheStoreUnderAnotherName is a gap, and the other paths of the event are captured.
func TestTheStoreUnderAnotherName(t *testing.T) {
	b := newBench(t)
	b.write("a", "0")
	root, err := workspace.Open(b.dir, workspace.Options{Protected: []string{b.capture.Store.Path()}})
	b.must(err)
	defer root.Close()
	if err := os.Link(b.capture.Store.Path(), filepath.Join(b.dir, "hard")); err != nil {
		b.must(os.Symlink(b.capture.Store.Path(), filepath.Join(b.dir, "hard")))
	}
	b.recorder = agent.NewRecorder(&capture.Capturer{Store: b.capture.Store, Root: root})
	b.begin()
	c := b.before("1", "a", "hard")
	if len(c.Paths) != 1 || len(c.Gaps) != 1 || c.Gaps[0].Reason != store.GapProtected {
		t.Errorf("captured %v, gaps %v", c.Paths, c.Gaps)
	}
	b.end()
}
