package rewind_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// The test binary plays other processes: what to do is in the environment.
const childEnv = "REASONIX_TEST_CHILD"

// childProcess is one such job.
type childProcess struct {
	Dir, File string
	Session   store.SessionID
	Job       string // "move", "back and forth", "agent"
	Request   rewind.Request
	Point     string // kill the process at this step of Apply
	Name      string
	Until     time.Time
	Report    string // file for what an agent recorded
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		var c childProcess
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func (c childProcess) command(ctx context.Context) *exec.Cmd {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

func (c childProcess) run() error {
	ctx := context.Background()
	root, err := workspace.Open(c.Dir, workspace.Options{Protected: []string{filepath.Dir(c.File)}})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, c.File, store.Options{})
	if err != nil {
		return err
	}
	cap := &capture.Capturer{Store: s, Root: root}
	engine := rewind.New(cap, rewind.Options{Point: func(name string) {
		if name == c.Point {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			fmt.Fprintln(os.Stderr, "killed", err)
			select {}
		}
	}})
	switch c.Job {
	case "move":
		err = move(ctx, engine, c.Request)
	case "back and forth":
		for err == nil && time.Now().Before(c.Until) {
			if _, err = engine.Recover(ctx); err == nil {
				err = move(ctx, engine, rewind.Request{Kind: store.OpRewind, Session: c.Session, Turn: 0, Scope: store.Both, Force: true})
			}
			if err == nil {
				err = move(ctx, engine, rewind.Request{Kind: store.OpUndo, Session: c.Session, Force: true})
			}
		}
	case "agent":
		err = c.agent(ctx, cap, engine)
	}
	return errors.Join(err, s.Close(), root.Close())
}

func move(ctx context.Context, e *rewind.Engine, r rewind.Request) error {
	p, err := e.Plan(ctx, r)
	if err == nil {
		_, err = e.Apply(ctx, p)
	}
	return err
}

// TestKillAtEveryPoint kills the process at each named step of each kind of move, with
// SIGKILL; recovery brings the state from before, except after the commit.
func TestKillAtEveryPoint(t *testing.T) {
	template := faultWorld(t, nil)
	template.close()
	for _, point := range []string{"locked", "planned", "intended", "staged", "written", "committed"} {
		for _, scope := range []store.Scope{store.Code, store.Both} {
			t.Run(point+" "+scope.String(), func(t *testing.T) {
				t.Parallel()
				w := template.copy()
				w.t = t
				defer w.close()
				was := w.shapeOf()
				r := rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 1, Scope: scope, Force: true}
				c := childProcess{Dir: w.dir, File: w.file, Job: "move", Request: r, Point: point}
				if err := c.command(t.Context()).Run(); err == nil {
					t.Fatal("the child was not killed")
				}
				_, err := w.engine.Recover(t.Context())
				w.must(err)
				if point != "committed" {
					if d := cmp.Diff(was, w.shapeOf()); d != "" {
						t.Fatalf("not as before (-before +now):\n%s", d)
					}
					w.must(move(t.Context(), w.engine, r)) // the same command again
				}
				if d := w.wanted(r, was); d != "" {
					t.Fatalf("not as after:\n%s", d)
				}
				w.verify(true)
			})
		}
	}
}

// TestKillAtRandomTimes kills a process that goes back and forth over 400 files, again and
// again; after each kill everything is in one of the two states. REASONIX_KILLS says how often.
func TestKillAtRandomTimes(t *testing.T) {
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("REASONIX_KILLS")); err == nil {
		kills = n
	}
	w := newWorld(t, 1)
	defer func() { w.close() }()
	var pairs []string
	for i := range 400 {
		p := fmt.Sprintf("d%d/f%d", i%20, i)
		w.must(os.MkdirAll(filepath.Join(w.dir, filepath.Dir(p)), 0o755))
		if i%3 > 0 {
			w.put(p, fmt.Sprintf("644:old %d", i))
		}
		state := fmt.Sprintf("755:new %d", i)
		if i%3 == 1 {
			state = ""
		}
		pairs = append(pairs, p, state)
	}
	old := manifest(t, w.dir)
	e := agent.Edit{Call: "all", Tool: "generate"}
	for i := 0; i < len(pairs); i += 2 {
		e.Paths = append(e.Paths, pairs[i])
	}
	_, err := w.recorder.BeginTurn(t.Context(), w.ids[0], "", "all", nil)
	w.must(err)
	_, err = w.recorder.BeforeEdit(t.Context(), w.ids[0], e)
	w.must(err)
	for i := 0; i < len(pairs); i += 2 {
		w.put(pairs[i], pairs[i+1])
	}
	_, err = w.recorder.AfterEdit(t.Context(), w.ids[0], e)
	w.must(err)
	w.must(w.recorder.EndTurn(t.Context(), w.ids[0], store.TurnDone))
	changed := manifest(t, w.dir)
	rnd := rand.New(rand.NewPCG(7, 7))
	for range kills {
		c := childProcess{Dir: w.dir, File: w.file, Session: w.ids[0], Job: "back and forth", Until: time.Now().Add(time.Minute)}
		cmd := c.command(t.Context())
		w.must(cmd.Start())
		time.Sleep(time.Duration(20+rnd.IntN(600)) * time.Millisecond) // when the kill comes is the point
		w.must(cmd.Process.Kill())
		_ = cmd.Wait()
		_, err := w.engine.Recover(t.Context())
		w.must(err)
		is := manifest(t, w.dir)
		w.must(w.capture.Store.View(t.Context(), func(tx *store.Tx) error {
			s, err := tx.Session(w.ids[0])
			want := changed
			if s.Turns == 0 {
				want = old
			}
			if d := cmp.Diff(want, is); d != "" {
				t.Fatalf("with %d turns:\n%s", s.Turns, d)
			}
			return err
		}))
		w.verify(false)
	}
}
