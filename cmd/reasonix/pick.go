package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"reasonix/internal/tui"
	"reasonix/internal/view"
	"reasonix/rewind"
	"reasonix/store"
)

// source is what the picker picks from: the turns of a session of the world.
type source struct {
	a     *app
	w     *world
	id    store.SessionID
	agent bool // summaries can be made
}

// pickedAtOnce is how many turns the picker reads at once; further ones once they are gone to.
const pickedAtOnce = 50

func (s *source) Turns(ctx context.Context, before int) ([]tui.Turn, bool, error) {
	page, err := view.New(s.w.Capture).Checkpoints(ctx, s.id, view.Page{Before: before, Count: true, Limit: pickedAtOnce})
	if err != nil {
		return nil, false, err
	}
	var all []tui.Turn
	for _, c := range page.Checkpoints {
		t := tui.Turn{
			Number: c.Turn, Prompt: c.Prompt, Time: time.UnixMilli(c.TimeMS), Status: c.Status, Files: len(c.Files), Gaps: len(c.Gaps),
			Code: c.CanCode, Talk: c.CanConversation, Expired: c.Expired,
		}
		for _, f := range c.Files {
			if f.Added != nil {
				t.Added += *f.Added
			}
			if f.Removed != nil {
				t.Removed += *f.Removed
			}
		}
		all = append(all, t)
	}
	return all, page.More, nil
}

func (s *source) Actions() []tui.Action {
	all := []tui.Action{tui.RestoreBoth, tui.RestoreCode, tui.RestoreConversation, tui.Fork}
	if s.agent {
		all = append(all, tui.SummarizeFrom, tui.SummarizeUpTo)
	}
	return all
}

func (s *source) request(turn int, a tui.Action, how tui.How) rewind.Request {
	r := rewind.Request{Kind: store.OpRewind, Session: s.id, Turn: turn, Scope: store.Both, Force: how == tui.Force, Skip: how == tui.Skip}
	switch a {
	case tui.RestoreCode:
		r.Scope = store.Code
	case tui.RestoreConversation:
		r.Scope = store.Conversation
	case tui.Fork:
		r.Kind, r.Scope = store.OpFork, 0
	case tui.RestoreBoth, tui.SummarizeFrom, tui.SummarizeUpTo:
	}
	return r
}

func (s *source) Preview(ctx context.Context, turn int, a tui.Action, how tui.How) (tui.Preview, error) {
	switch a {
	case tui.SummarizeFrom:
		return tui.Preview{Lines: []string{fmt.Sprintf("The messages from turn %d on give way to a summary. Files stay; undo-rewind takes it back.", turn)}}, nil
	case tui.SummarizeUpTo:
		return tui.Preview{Lines: []string{fmt.Sprintf("The messages before turn %d give way to a summary. Files stay; undo-rewind takes it back.", turn)}}, nil
	case tui.RestoreBoth, tui.RestoreCode, tui.RestoreConversation, tui.Fork:
	}
	r := s.request(turn, a, how)
	res, err := s.w.mover().Do(ctx, r, true)
	if err != nil && (!errors.Is(err, rewind.ErrConflict) || res.Session == "") {
		return tui.Preview{}, err
	}
	p := tui.Preview{Conflicts: len(res.Conflicts), Final: true}
	for _, c := range res.Conflicts {
		p.Final = p.Final && c.Final
	}
	var b bytes.Buffer
	plain := *s.a
	plain.color = "never"
	if err := plain.printConflicts(&b, res); err != nil {
		return p, err
	}
	if len(res.Conflicts) == 0 {
		if err := plain.printMove(ctx, &b, s.w, res, true); err != nil {
			return p, err
		}
	}
	p.Lines = linesOf(b.String())
	return p, nil
}

func (s *source) Do(ctx context.Context, turn int, a tui.Action, how tui.How) ([]string, error) {
	res, err := s.w.mover().Do(ctx, s.request(turn, a, how), false)
	if err != nil {
		return nil, conflictError(res, err)
	}
	var b bytes.Buffer
	if err := s.a.printMove(context.WithoutCancel(ctx), &b, s.w, res, false); err != nil {
		return nil, err
	}
	return linesOf(b.String()), nil
}

func linesOf(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// plainFlag is that of commands which draw on a terminal.
func plainFlag() cli.Flag {
	return &cli.BoolFlag{Name: "plain", Usage: "ask in lines instead of drawing: for screen readers"}
}

// pick lets a person choose a turn and what to do with it.
func (a *app) pick(c *cli.Context) error {
	if a.json {
		return badUsage("--pick asks a person; it has no --json")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := w.session(c.Context, a.sessionRef)
	if err != nil {
		return err
	}
	picked, err := a.pickFrom(c.Context, &source{a: a, w: w, id: s.ID}, c.Bool("plain"))
	if errors.Is(err, tui.ErrLeft) {
		a.note("nothing was changed")
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, strings.Join(picked.Lines, "\n"))
	return err
}

func (a *app) pickFrom(ctx context.Context, s *source, plain bool) (tui.Picked, error) {
	in := a.drawsOn(plain)
	if in == nil {
		p := tui.Plain{In: a.lines(), Out: a.stdout, Source: s, Now: a.now}
		return p.Pick(ctx)
	}
	restore, err := raw(in)
	if err != nil {
		return tui.Picked{}, err
	}
	defer restore()
	p := tui.Picker{Screen: a.screen(), Keys: tui.NewKeys(in), Source: s, Now: a.now}
	return p.Pick(ctx)
}

// drawsOn is the terminal of a person for whom is drawn; nil where lines are better.
func (a *app) drawsOn(plain bool) *os.File {
	in, isFile := a.stdin.(*os.File)
	if plain || !isFile || !isTerminal(in) || !onTerminal(a.stdout) || a.env("TERM") == "dumb" {
		return nil
	}
	return in
}

func (a *app) lines() *tui.Lines {
	return &tui.Lines{In: bufio.NewReader(a.stdin), Echo: !onTerminal(a.stdin)}
}

// raw gives a terminal's keys as they are pressed, until restore.
func raw(f *os.File) (restore func(), err error) {
	was, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("take over the terminal: %w", err)
	}
	return func() { _ = term.Restore(int(f.Fd()), was) }, nil
}

// screen is standard output, which is a terminal.
func (a *app) screen() tui.Screen {
	return tui.Screen{Out: a.stdout, Color: a.colored(a.stdout), Size: func() (int, int) {
		if f, ok := a.stdout.(*os.File); ok {
			if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
				return columns, rows
			}
		}
		return 80, 24
	}}
}
