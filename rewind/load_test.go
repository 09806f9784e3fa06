package rewind_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"reasonix/agent"
	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/rewind"
	"reasonix/store"
)

// worker is the agent of one process among many. It has a session and a folder of its own.
type worker struct {
	job      childProcess
	capture  *capture.Capturer
	engine   *rewind.Engine
	recorder *agent.Recorder
	session  store.SessionID
	report   done
}

// done is what a worker did.
type done struct {
	Contents []string                   // what it wrote in each of its turns
	Took     map[string][]time.Duration // by kind of call
}

func (c childProcess) agent(ctx context.Context, cap *capture.Capturer, engine *rewind.Engine) error {
	w := &worker{job: c, capture: cap, engine: engine, recorder: agent.NewRecorder(cap)}
	w.report.Took = map[string][]time.Duration{}
	s, err := w.recorder.Session(ctx, "process", c.Name)
	if err != nil {
		return err
	}
	w.session = s.ID
	if err := os.MkdirAll(filepath.Dir(w.file()), 0o755); err != nil {
		return err
	}
	for i := 0; err == nil && time.Now().Before(c.Until); i++ {
		if err = w.turn(ctx, i); err == nil {
			err = w.look(ctx)
		}
		if err == nil && i%5 == 4 {
			err = w.thereAndBack(ctx, store.Conversation)
		}
		if err == nil && i%7 == 6 {
			err = w.thereAndBack(ctx, store.Code)
		}
	}
	if err != nil {
		return fmt.Errorf("%s after %d turns: %w", c.Name, len(w.report.Contents), err)
	}
	b, err := json.Marshal(w.report)
	if err != nil {
		return err
	}
	return os.WriteFile(c.Report, b, 0o600)
}

func (w *worker) file() string { return filepath.Join(w.job.Dir, w.job.Name, "file") }

// timed is one call, as a command would make it.
func (w *worker) timed(what string, do func() error) error {
	start := time.Now()
	err := do()
	w.report.Took[what] = append(w.report.Took[what], time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// turn writes the worker's file as a tool does. i makes the content its own.
func (w *worker) turn(ctx context.Context, i int) error {
	key, content := fmt.Sprint("turn ", i), fmt.Sprint(w.job.Name, " ", i)
	e := agent.Edit{Call: key, Paths: []string{filepath.Join(w.job.Name, "file")}}
	err := w.timed("begin", func() error {
		_, err := w.recorder.BeginTurn(ctx, w.session, key, key, []json.RawMessage{json.RawMessage(`{"role":"user"}`)})
		return err
	})
	if err == nil {
		err = w.timed("before", func() error { _, err := w.recorder.BeforeEdit(ctx, w.session, e); return err })
	}
	if err == nil {
		err = os.WriteFile(w.file(), []byte(content), 0o644)
	}
	if err == nil {
		err = w.timed("after", func() error { _, err := w.recorder.AfterEdit(ctx, w.session, e); return err })
	}
	if err == nil {
		err = w.timed("end", func() error { return w.recorder.EndTurn(ctx, w.session, store.TurnDone) })
	}
	w.report.Contents = append(w.report.Contents, content)
	return err
}

// look lists the worker's turns: all are there, and nobody else's.
func (w *worker) look(ctx context.Context) error {
	return w.timed("list", func() error {
		return w.capture.Store.View(ctx, func(tx *store.Tx) error {
			s, err := tx.Session(w.session)
			if err != nil {
				return err
			}
			if s.Turns != len(w.report.Contents) {
				return fmt.Errorf("there are %d turns, not %d", s.Turns, len(w.report.Contents))
			}
			_, err = tx.Turns(s.Head, -1, 20)
			return err
		})
	})
}

// thereAndBack rewinds the last turn and takes that back. A move that may write files is refused
// while others run, which is right: then nothing happened, or the turn stays away.
func (w *worker) thereAndBack(ctx context.Context, scope store.Scope) error {
	last := len(w.report.Contents) - 1
	err := w.timed("rewind", func() error {
		return move(ctx, w.engine, rewind.Request{Kind: store.OpRewind, Session: w.session, Turn: last, Scope: scope})
	})
	if errors.Is(err, rewind.ErrBusy) && scope != store.Conversation {
		return nil
	}
	if err != nil {
		return err
	}
	err = w.timed("undo", func() error {
		return move(ctx, w.engine, rewind.Request{Kind: store.OpUndo, Session: w.session})
	})
	if errors.Is(err, rewind.ErrBusy) {
		if scope == store.Conversation {
			w.report.Contents = w.report.Contents[:last]
		}
		return nil
	}
	return err
}

// TestManyProcesses lets processes record, list and rewind in one store at once (I15): no
// error, and what each knows to have recorded is in the history afterwards. REASONIX_LOAD says for
// how many seconds; from 20 on nobody may starve either.
func TestManyProcesses(t *testing.T) {
	seconds, processes := 2, 8
	if n, err := strconv.Atoi(os.Getenv("REASONIX_LOAD")); err == nil {
		seconds, processes = n, 16
	}
	w := newWorld(t, 1)
	defer func() { w.close() }()
	w.at(time.Now)
	reports := t.TempDir()
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	var wg sync.WaitGroup
	for i := range processes {
		name := fmt.Sprint("p", i)
		c := childProcess{Dir: w.dir, File: w.file, Job: "agent", Name: name, Until: until, Report: filepath.Join(reports, name)}
		wg.Go(func() {
			if err := c.command(t.Context()).Run(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	noise := lateness(t, fastDir(t), until)
	wg.Wait()
	if t.Failed() {
		return
	}
	took := map[string][]time.Duration{}
	for i := range processes {
		var r done
		b, err := os.ReadFile(filepath.Join(reports, fmt.Sprint("p", i)))
		w.must(err)
		w.must(json.Unmarshal(b, &r))
		w.recorded(fmt.Sprint("p", i), r.Contents)
		for what, all := range r.Took {
			took[what] = append(took[what], all...)
		}
	}
	for _, what := range []string{"begin", "before", "after", "end", "list", "rewind", "undo"} {
		all := took[what]
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		longest := all[len(all)-1]
		t.Logf("%-7s %6d calls: half within %v, 99 of 100 within %v, all within %v", what, len(all),
			all[len(all)/2].Round(time.Microsecond), all[len(all)*99/100].Round(time.Microsecond), longest.Round(time.Microsecond))
		if seconds >= 20 && longest > 2*time.Second+noise {
			t.Errorf("%s took %v, and the machine's own pauses were %v at most", what, longest, noise)
		}
	}
	t.Logf("the machine was late by %v at most", noise)
	w.verify(true)
}

// recorded checks that a worker's turns and contents are in the history, and no others.
func (w *world) recorded(name string, contents []string) {
	w.t.Helper()
	w.must(w.capture.Store.View(w.t.Context(), func(tx *store.Tx) error {
		s, err := tx.SessionOf("process", name)
		if err != nil {
			return err
		}
		if s.Turns != len(contents) || len(contents) < 2 {
			w.t.Errorf("%s has %d turns and recorded %d", name, s.Turns, len(contents))
		}
		for n, content := range contents {
			turn, err := tx.Turn(s.Head, n)
			if err != nil {
				return err
			}
			if turn.Status != store.TurnDone || turn.Messages != 1 {
				w.t.Errorf("%s: turn %d is %v with %d messages", name, n, turn.Status, turn.Messages)
			}
			rows, err := tx.TurnChanges(s.Head, n)
			if err != nil {
				return err
			}
			has := slices.ContainsFunc(rows, func(c store.Placed) bool {
				return c.Path == store.Path(name+"/file") && c.After.Blob == blob.Sum([]byte(content))
			})
			if !has {
				w.t.Errorf("%s: turn %d lost %q: %+v", name, n, content, rows)
			}
		}
		return nil
	}))
}

// lateness is how long, at most, this process was kept from what should take it 5 ms and a sync.
func lateness(t *testing.T, dir string, until time.Time) (longest time.Duration) {
	const pause = 5 * time.Millisecond
	f, err := os.Create(filepath.Join(dir, "noise"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for time.Now().Before(until) {
		start := time.Now()
		time.Sleep(pause)
		_, err := f.WriteAt([]byte("x"), 0)
		if err = errors.Join(err, f.Sync()); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(start)-pause)
	}
	return longest
}
