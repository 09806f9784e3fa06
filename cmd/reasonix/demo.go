package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/view"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

func demoCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "demo",
		Usage:    "play a session in a throw-away folder and check every step byte for byte",
		Category: "other",
		Description: "Needs no key and no network and leaves nothing behind. The files are a part of Go's own\n" +
			"source tree where there is one, else of this program's.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "keep", Usage: "leave the folder, and say where it is"}},
		Action: a.demo,
	}
}

// demoStep is a step with its outcome.
type demoStep struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

type demoJSON struct {
	Steps []demoStep `json:"steps"`
	Kept  string     `json:"kept,omitempty"`
}

// moment is what the folder and the conversation were at one time, by plain system calls.
type moment struct {
	files    snapshot
	messages []string
}

// demo is one run.
type demo struct {
	a       *app
	ctx     context.Context
	out     io.Writer // the story; nothing with --json
	source  string    // Go's source tree; "" where there is none
	temp    string
	dir     string // the folder that the agent works in
	w       *world
	view    *view.Viewer
	record  *agent.Recorder
	session store.SessionID
	said    []string // the conversation as it must be
	starts  []moment // at the start of each turn of the first session
	steps   []demoStep
}

func (a *app) demo(c *cli.Context) (err error) {
	if c.NArg() > 0 {
		return badUsage("demo takes no arguments")
	}
	d := &demo{a: a, ctx: c.Context, out: a.stdout, source: goSource(c.Context)}
	if a.json {
		d.out = io.Discard
	}
	began := a.now()
	// Whoever reads the story may stop before its end ("demo | head"); the folder goes all the same.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	if d.temp, err = os.MkdirTemp("", "reasonix-demo-"); err != nil {
		return err
	}
	kept := ""
	err = d.play()
	if c.Bool("keep") {
		kept = d.temp
	} else if gone := os.RemoveAll(d.temp); gone != nil {
		err = errors.Join(err, gone)
	}
	if d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	if readerGone(err) {
		return err
	}
	if err != nil {
		d.ok("the demo goes on", err.Error())
	}
	failed := 0
	for _, s := range d.steps {
		if !s.OK {
			failed++
		}
	}
	err = a.emit(demoJSON{Steps: d.steps, Kept: kept}, func(out io.Writer) error {
		if kept != "" {
			fmt.Fprintf(out, "\nkept in %s\n", kept)
		}
		if failed > 0 {
			return nil
		}
		_, err := fmt.Fprintf(out, "\nall %d steps are right, in %s\n", len(d.steps), a.now().Sub(began).Round(10*time.Millisecond))
		return err
	})
	if failed > 0 {
		return &told{fmt.Errorf("%d of %d steps failed", failed, len(d.steps))}
	}
	return err
}

// open makes the folder and its store, which lies outside of it.
func (d *demo) open() (err error) {
	d.dir = filepath.Join(d.temp, "project")
	state := filepath.Join(d.temp, "state")
	for _, dir := range []string{d.dir, state} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	root, err := workspace.Open(d.dir, workspace.Options{Now: d.a.now})
	if err != nil {
		return err
	}
	d.dir = root.Path()
	id := root.Identity()
	s, err := store.Open(d.ctx, filepath.Join(state, "store.db"), store.Options{
		Now: d.a.now, Create: &store.Workspace{Root: d.dir, Device: id.Device, Inode: id.Inode},
	})
	if err != nil {
		return errors.Join(err, root.Close())
	}
	d.w = &world{Store: s, Root: root, Capture: &capture.Capturer{Store: s, Root: root}}
	d.w.Rewind = rewind.New(d.w.Capture, rewind.Options{})
	d.view, d.record = view.New(d.w.Capture), d.w.Recorder()
	return nil
}

// play is the story; an error ends it, a step that is not right does not.
func (d *demo) play() (err error) {
	if err := d.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.w.Close()) }()
	for _, chapter := range []func() error{
		d.lay, d.turns, d.look, d.rewinds, d.exported, d.byHand, d.forks, d.sound,
	} {
		if err := chapter(); err != nil {
			return err
		}
	}
	return nil
}

// chapter begins a part of the story.
func (d *demo) chapter(title string) {
	fmt.Fprintf(d.out, "\n%s\n", d.a.paint(d.a.stdout, bold, title))
}

// ok tells the outcome of a step: problem is "" when it is right.
func (d *demo) ok(name, problem string) {
	d.steps = append(d.steps, demoStep{Name: name, OK: problem == "", Detail: problem})
	if problem == "" {
		fmt.Fprintf(d.out, "  %s    %s\n", d.a.paint(d.a.stdout, green, "ok"), name)
		return
	}
	fmt.Fprintf(d.out, "  %s  %s: %s\n", d.a.paint(d.a.stdout, red, "FAIL"), name, printable(problem))
}

// now takes the moment that is.
func (d *demo) now() (m moment, err error) {
	if m.files, err = snap(d.dir); err != nil {
		return m, err
	}
	m.messages, err = d.messages(d.session)
	return m, err
}

func (d *demo) messages(id store.SessionID) (all []string, err error) {
	err = d.w.Store.View(d.ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		for m, err := range tx.Messages(s.Head, 0, -1) {
			if err != nil {
				return err
			}
			all = append(all, string(m.JSON))
		}
		return nil
	})
	return all, err
}

// wrong says how the folder and the conversation are not as they must be; "" when they are.
func (d *demo) wrong(want moment) (string, error) {
	got, err := d.now()
	if err != nil {
		return "", err
	}
	if problem := got.files.differs(want.files); problem != "" {
		return problem, nil
	}
	return differsAt(got.messages, want.messages), nil
}

// compare tells whether the folder and the conversation are as they must be.
func (d *demo) compare(name string, want moment) error {
	problem, err := d.wrong(want)
	if err != nil {
		return err
	}
	d.ok(name, problem)
	return nil
}
