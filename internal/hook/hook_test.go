package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/capture"
	"reasonix/internal/place"
	"reasonix/store"
)

// desk is a workspace and a state folder of a test.
type desk struct {
	t     *testing.T
	dir   string
	where place.Where
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: filepath.Join(base, "w"), where: place.Where{State: filepath.Join(base, "state"), Home: filepath.Join(base, "home")}}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) options(fields string) Options {
	return Options{In: strings.NewReader(`{"session":"s","cwd":"` + d.dir + `",` + fields + `}`), Where: d.where}
}

func (d *desk) run(fields string) Reply {
	d.t.Helper()
	r, err := Run(context.Background(), d.options(fields))
	if err != nil {
		d.t.Fatalf("%s: %v", fields, err)
	}
	return r
}

func (d *desk) log() string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.where.State, "hook.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(b)
}

// open opens the store and, at the end, verifies it.
func (d *desk) open() *place.Opened {
	d.t.Helper()
	p, err := d.where.Find(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	o, err := p.Open(context.Background(), place.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		problems, err := o.Store.Verify(context.Background(), true, nil)
		if err != nil || len(problems) > 0 {
			d.t.Errorf("verify: %v, %v", problems, err)
		}
		if err := o.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return o
}

func (d *desk) gaps(o *place.Opened) []string {
	d.t.Helper()
	var all []string
	err := o.Store.View(context.Background(), func(tx *store.Tx) error {
		s, err := tx.FindSession("s")
		if err != nil {
			return err
		}
		gaps, err := tx.Gaps(s.Head, -1)
		for _, g := range gaps {
			all = append(all, fmt.Sprintf("%d %s %s", g.Turn, g.Reason, g.Path))
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// An operation holds the workspace for longer than the hook may take: the edit is lost, and
// that is known.
func TestLockedWorkspaceLeavesAGap(t *testing.T) {
	d := newDesk(t)
	d.run(`"event":"begin-turn"`)
	o := d.open()
	unlock, err := (&capture.Capturer{Store: o.Store, Root: o.Root}).LockExclusive(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	late := d.options(`"event":"before-edit","paths":["a"]`)
	late.Deadline = 2 * time.Second // enough to open the store on a slow machine; the lock outlasts any
	r, err := Run(context.Background(), late)
	unlock()
	if !errors.Is(err, capture.ErrLocked) || r.OK || len(r.Warnings) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := fmt.Sprint(d.gaps(o)); got != "[0 locked a]" {
		t.Fatalf("gaps %s", got)
	}
	if !strings.Contains(d.log(), "generic before-edit: ") {
		t.Fatalf("log %q", d.log())
	}
	// It was the lock alone.
	if r := d.run(`"event":"before-edit","paths":["a"]`); r.Captured != 1 || r.Turn != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestAStoreThatNobodyMadeIsMade(t *testing.T) {
	d := newDesk(t)
	r := d.run(`"event":"session-start"`)
	if r.Turn != -1 || r.Session == "" || !r.OK || r.Version != 1 {
		t.Fatalf("%+v", r)
	}
	o := d.open()
	for name, want := range map[string]os.FileMode{filepath.Dir(o.Store.Path()): 0o700, o.Store.Path(): 0o600} {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", name, fi.Mode(), err, want)
		}
	}
	if d.log() != "" {
		t.Fatalf("log %q", d.log())
	}
}

// A pipe that nobody closes, a panic, an event without end: the agent goes on.
func TestNothingHoldsTheAgent(t *testing.T) {
	d := newDesk(t)
	in, out := io.Pipe()
	defer out.Close()
	_, err := Run(context.Background(), Options{In: in, Where: d.where, Deadline: 20 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	bad := d.options(`"event":"message"`)
	bad.Adapter = func([]byte) (Event, error) { panic("secret") }
	if _, err := Run(context.Background(), bad); err == nil {
		t.Fatal("a panic is no error")
	}
	if !strings.Contains(d.log(), "hook_test.go") {
		t.Fatalf("log %q", d.log())
	}
	_, err = Run(context.Background(), Options{In: io.LimitReader(zeros{}, maxEvent+10), Where: d.where, Deadline: time.Minute})
	if !errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// What a later program reads of an event is what this one recorded: a subagent's edits belong
// to the session's turn, and a session of ours is continued by its id.
func TestSessionsAreFoundAgain(t *testing.T) {
	d := newDesk(t)
	first := d.run(`"event":"begin-turn","source":"x"`)
	again := d.run(`"event":"before-edit","source":"x","agent":"sub","paths":["a"]`)
	if again.Session != first.Session || again.Turn != 0 || again.Captured != 1 {
		t.Fatalf("%+v then %+v", first, again)
	}
	other := d.run(`"event":"session-start","source":"y"`)
	if other.Session == first.Session {
		t.Fatal("two agents share a session")
	}
	in := Options{In: strings.NewReader(`{"session":"` + first.Session + `","cwd":"` + d.dir + `","event":"message","messages":[{"role":"user"}]}`), Where: d.where}
	if r, err := Run(context.Background(), in); err != nil || r.Session != first.Session {
		t.Fatalf("%+v, %v", r, err)
	}
	d.open()
}

func TestBadFirstEventMakesNothing(t *testing.T) {
	for _, fields := range []string{
		`"event":"compact","from_idx":7,"to_idx":3,"messages":[]`,
		`"event":"compact"`,
		`"event":"begin-turn","turn_key":"` + strings.Repeat("k", 1025) + `"`,
		`"event":"message","messages":[1]`,
		`"event":"before-edit"`,
	} {
		d := newDesk(t)
		if _, err := Run(context.Background(), d.options(fields)); err == nil {
			t.Errorf("%.40s: was taken", fields)
		}
		if p, err := d.where.Find(d.dir); !errors.Is(err, place.ErrNoStore) {
			t.Errorf("%.40s: made %v, %v", fields, p, err)
		}
	}
	d := newDesk(t)
	d.run(`"event":"begin-turn","prompt":"p"`)
	other := Options{In: strings.NewReader(`{"session":"other","cwd":"` + d.dir + `","event":"compact"}`), Where: d.where}
	if _, err := Run(context.Background(), other); !errors.Is(err, store.ErrNoSession) {
		t.Errorf("compaction of no session: %v", err)
	}
	o := d.open()
	err := o.Store.View(t.Context(), func(tx *store.Tx) error {
		all, err := tx.Sessions()
		if len(all) != 1 {
			t.Errorf("%d sessions, want that of the turn alone", len(all))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
