package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/db"
	"reasonix/rewind"
	"reasonix/store"
)

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		in, want string
		dash     int
	}{
		{"rewind 2 --dry-run", "rewind --dry-run -- 2", -1},
		{"rewind --dry-run 2", "rewind --dry-run -- 2", -1},
		{"rewind 2 --json --dry-run", "--json rewind --dry-run -- 2", -1},
		{"--json rewind -n 2 code", "--json rewind -n -- 2 code", -1},
		{"rewind -1", "rewind -- -1", -1},
		{"rewind 2 -s abc", "-s=abc rewind -- 2", -1},
		{"rewind 2 --session=abc", "--session=abc rewind -- 2", -1},
		{"rewind --path -x 2", "rewind --path=-x -- 2", -1},
		{"rewind --path --force 2", "rewind --path=--force -- 2", -1},
		{"rewind -- --force", "rewind -- --force", 0},
		{"diff 1 2 -- a --b", "diff -- 1 2 a --b", 2},
		{"-- rewind 2", "rewind -- 2", 0},
		{"switch -", "switch -- -", -1},
		{"cat -1:a.txt", "cat -- -1:a.txt", -1},
		{"sessions rename x y --json", "--json sessions rename -- x y", -1},
		{"sessions --json", "--json sessions --", -1},
		{"/rewind 2 code", "rewind -- 2 code", -1},
		{"--json /undo-rewind", "--json undo-rewind --", -1},
		{"-s x /fork 2", "-s=x fork -- 2", -1},
		{"-C /rewind sessions", "-C=/rewind sessions --", -1},
		{"rewind fork 3", "fork -- 3", -1},
		{"/rewind fork 3 --name x", "fork --name=x -- 3", -1},
		{"rewind --dry-run fork 3", "fork --dry-run -- 3", -1},
		{"rewind 3 fork", "rewind -- 3 fork", -1},
		{"checkpoints", "log --", -1},
		{"", "--help", -1},
		{"--json", "--help", -1},
		{"-h", "--help", -1},
		{"rewind --help", "rewind --help --", -1},
		{"help rewind", "rewind --help --", -1},
		{"help sessions rename", "sessions rename --help --", -1},
		{"help --json log", "--json log --help --", -1},
		{"help", "--help", -1},
		{"help --help", "--help", -1},
		{"help help", "--help", -1},
	} {
		a := &app{}
		got, err := a.order(a.cli(), strings.Fields(c.in))
		if err != nil || strings.Join(got, " ") != c.want || a.dash != c.dash {
			t.Errorf("%s: %q dash %d, %v; want %s dash %d", c.in, got, a.dash, err, c.want, c.dash)
		}
	}
	a := &app{}
	got, err := a.order(a.cli(), []string{"/rewind 2 code", "--json"})
	if want := []string{"--json", "rewind", "--", "2", "code"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestUnknownFlagsAreRefused(t *testing.T) {
	for _, in := range []string{
		"rewind 2 --drry-run", "rewind --dry_run 2", "-x rewind", "rewind -x", "nonsense", "nonsense --json", "/nonsense",
		"rewind --path", "rewind 2 --session", "--session", "rewind --path a fork 3", "sessions --name x", "-C",
		"hook /rewind --name x", "rewind ---json", "help nosuch", "help rewind nosuch",
	} {
		a := &app{}
		got, err := a.order(a.cli(), strings.Fields(in))
		if m := meaningOf(err); m.exit != exitUsage {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
}

// Whatever the words are: a dry run stays one, and nothing panics.
func FuzzOrder(f *testing.F) {
	for _, seed := range []string{"rewind 2 --dry-run", "/rewind\x002\x00code", "rewind\x00--dry-run\x00fork\x003", "--\x00rewind\x00-n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		argv := strings.Split(in, "\x00")
		a := &app{}
		got, err := a.order(a.cli(), argv)
		if err != nil {
			if m := meaningOf(err); m.exit != exitUsage {
				t.Fatalf("%q: %v", argv, err)
			}
			return
		}
		end := slices.Index(argv, "--")
		if end < 0 {
			end = len(argv)
		}
		asked := slices.Index(argv[:end], "--dry-run")
		isValue := asked > 0 && isFlag(argv[asked-1])
		at := slices.Index(got, "rewind")
		if asked >= 0 && !isValue && at >= 0 && got[len(got)-1] != "--generate-bash-completion" && !slices.Contains(got[at:], "--dry-run") && !slices.Contains(got, "--help") {
			t.Fatalf("%q became %q: a dry run is lost", argv, got)
		}
	})
}

func TestMeanings(t *testing.T) {
	for _, c := range []struct {
		err  error
		exit int
	}{
		{nil, exitOK},
		{errors.New("x"), exitFailure},
		{badUsage("x"), exitUsage},
		{&withResult{error: rewind.ErrConflict}, exitConflict},
		{rewind.ErrStale, exitConflict},
		{errors.Join(store.ErrNoTurn, io.EOF), exitNotFound},
		{&rewind.BusyError{}, exitBusy},
		{&rewind.DamageError{Err: io.EOF}, exitDamage},
		{&told{errProblems}, exitDamage},
		{db.ErrNewer, exitStore},
		{errInterrupted, exitInterrupted},
		{&strictError{db.ErrNewer}, exitFailure},
	} {
		if got := meaningOf(c.err); got.exit != c.exit || (c.err != nil && got.code == "") {
			t.Errorf("%v: %+v, want %d", c.err, got, c.exit)
		}
	}
}

// A panic is a message that asks for a report, not a trace of the program alone.
func TestNoPanicReachesTheUser(t *testing.T) {
	var out, errs bytes.Buffer
	boom := true
	env := func(string) string {
		if boom {
			boom = false
			panic("boom")
		}
		return ""
	}
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, now: time.Now, env: env}
	if code := a.run([]string{"sessions"}); code != exitFailure {
		t.Fatal(code)
	}
	if out.Len() > 0 || !strings.HasPrefix(errs.String(), "error: internal error: boom\nhint: this is a bug of reasonix, please report it") {
		t.Fatalf("%q, %q", out.String(), errs.String())
	}
}

// A command that waits for input ends when it is interrupted.
func TestInterruptedInput(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a := &app{stdin: in, stdout: io.Discard, stderr: io.Discard, now: time.Now, env: func(string) string { return "" }}
	if err := a.dispatch(ctx, []string{"sql"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestOutputIsSafe(t *testing.T) {
	if got := printable("a\x1b[31m\xff\u202eb c"); got != "a\uFFFD[31m\uFFFD\uFFFDb c" {
		t.Errorf("%q", got)
	}
	if got := firstLine(" one\ntwo", 10); got != "one …" {
		t.Errorf("%q", got)
	}
	if got := firstLine("ééééééé", 4); got != "ééé…" {
		t.Errorf("%q", got)
	}
	var b bytes.Buffer
	if err := table(&b, [][]string{{"\x1b[1ma\x1b[0m", "b"}, {"ééé", "c"}}); err != nil || b.String() != "\x1b[1ma\x1b[0m    b\nééé  c\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	for _, c := range []struct {
		color, no string
		want      bool
	}{{"auto", "", false}, {"always", "1", true}, {"never", "", false}} {
		a := &app{color: c.color, stdout: os.Stdout, env: func(string) string { return c.no }}
		if got := a.colored(&b); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestSqlWords(t *testing.T) {
	for query, want := range map[string]int{
		"select 1": 1, "select 1;": 1, "select 1; ": 1, "select 1; select 2": 2, "": 0, "; ;": 0,
		"select ';'": 1, `select ";"`: 1, "select [;]": 1, "select 1 -- ; x": 1, "select 1 /* ; */ ; -- x": 1,
		"select 'it''s; x'": 1, "/* x */ select 1; /* y */": 1, "select 'open; x": 1, "select 1 /* open ; x": 1,
		"select `;`;x": 2,
	} {
		if _, got := sqlWords(query); got != want {
			t.Errorf("%s: %d statements, want %d", query, got, want)
		}
	}
}

// Every command says more than its name, within the width of a terminal.
func TestCommandsAreDescribed(t *testing.T) {
	for _, cmd := range (&app{}).cli().Commands {
		for _, c := range append([]*cli.Command{cmd}, cmd.Subcommands...) {
			if c.Usage == "" || c.Description == "" {
				t.Errorf("%s has no description", c.Name)
			}
			for line := range strings.SplitSeq(c.Description, "\n") {
				if len(line) > 105 {
					t.Errorf("%s: a long line: %s", c.Name, line)
				}
			}
			for _, f := range c.Flags {
				if text := flagText(f); strings.HasSuffix(text, "\t") || strings.Contains(text, "default: 0") {
					t.Errorf("%s: %s", c.Name, text)
				}
			}
		}
	}
}
