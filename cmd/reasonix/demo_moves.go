package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"reasonix/internal/view"
	"reasonix/rewind"
	"reasonix/store"
)

// look shows the log and a difference, and checks the difference against the snapshots.
func (d *demo) look() error {
	d.chapter("$ reasonix log")
	all, err := d.view.Checkpoints(d.ctx, d.session, view.Page{Before: -1, Limit: 4, Count: true})
	if err != nil {
		return err
	}
	for i := range all.Checkpoints {
		c := &all.Checkpoints[i]
		c.Files = c.Files[:min(len(c.Files), 5)] // enough for a story
	}
	if err := d.a.writeLog(d.out, all); err != nil {
		return err
	}
	d.chapter("$ reasonix diff 0 1")
	if _, err := d.diff(0, 1, true); err != nil {
		return err
	}
	pairs := 0
	problem := ""
	for a := range d.starts {
		for b := range d.starts {
			names, err := d.diff(a, b, false)
			if err != nil {
				return err
			}
			pairs++
			if want := d.starts[b].files.changed(d.starts[a].files); !slices.Equal(names, want) && problem == "" {
				problem = fmt.Sprintf("%d to %d: changed are %v, shown are %v", a, b, want, names)
			}
		}
	}
	d.ok(fmt.Sprintf("diff of every two checkpoints names what differs: %d pairs", pairs), problem)
	return nil
}

// diff gives the paths that differ between two turns.
func (d *demo) diff(a, b int, show bool) (names []string, err error) {
	pairs, err := d.view.Pairs(d.ctx, view.Side{Session: d.session, Turn: a}, view.Side{Session: d.session, Turn: b}, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		names = append(names, string(p.Path))
		if !show {
			continue
		}
		f, err := d.view.File(d.ctx, p)
		if err != nil {
			return nil, err
		}
		if err := view.WritePatch(d.out, f, d.a.viewPaint(d.a.stdout)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// apply plans and makes a move; of what is planned, nothing may be done yet.
func (d *demo) apply(r rewind.Request) (rewind.Result, error) {
	if r.Session == "" {
		r.Session = d.session
	}
	p, err := d.w.Rewind.Plan(d.ctx, r)
	if err != nil {
		return rewind.Result{}, err
	}
	return d.w.Rewind.Apply(d.ctx, p)
}

func (d *demo) undo() error {
	_, err := d.apply(rewind.Request{Kind: store.OpUndo})
	return err
}

// rewinds rewinds to every turn in every scope, and takes each back.
func (d *demo) rewinds() error {
	d.chapter("$ reasonix rewind TURN code|conversation|both, undo-rewind, redo-rewind")
	tip, err := d.now()
	if err != nil {
		return err
	}
	plan, err := d.w.Rewind.Plan(d.ctx, rewind.Request{Kind: store.OpRewind, Session: d.session, Turn: 2, Scope: store.Both})
	if err != nil {
		return err
	}
	res := plan.Result()
	if err := d.compare(fmt.Sprintf("rewind 2 --dry-run would write %d, delete %d, and changes nothing", len(res.Written), len(res.Deleted)), tip); err != nil {
		return err
	}
	for n := len(d.starts) - 1; n >= 0; n-- {
		for _, scope := range []store.Scope{store.Code, store.Conversation, store.Both} {
			if err := d.rewind(n, scope, tip); err != nil {
				return fmt.Errorf("rewind %d %s: %w", n, scope, err)
			}
		}
	}
	return nil
}

// rewind makes a rewind, takes it back and, of scope both, makes it and takes it back again,
// looking at everything after each.
func (d *demo) rewind(n int, scope store.Scope, tip moment) error {
	want, what := tip, fmt.Sprintf("%s stay", count(tip.files.count(), "file"))
	if scope != store.Conversation {
		want.files = d.starts[n].files
		what = fmt.Sprintf("%s as at the start of turn %d", count(want.files.count(), "file"), n)
	}
	if scope != store.Code {
		want.messages = d.starts[n].messages
		what += ", " + count(len(want.messages), "message")
	}
	moves := []struct {
		request rewind.Request
		want    moment
	}{
		{rewind.Request{Kind: store.OpRewind, Turn: n, Scope: scope}, want},
		{rewind.Request{Kind: store.OpUndo}, tip},
		{rewind.Request{Kind: store.OpRedo}, want},
		{rewind.Request{Kind: store.OpUndo}, tip},
	}
	then := "; undone, redone, undone"
	if scope != store.Both {
		moves, then = moves[:2], "; undone"
	}
	problem := ""
	for _, m := range moves {
		if _, err := d.apply(m.request); err != nil {
			return err
		}
		wrong, err := d.wrong(m.want)
		if err != nil {
			return err
		}
		if wrong != "" && problem == "" {
			problem = fmt.Sprintf("after the %s %s", m.request.Kind, wrong)
		}
	}
	d.ok(fmt.Sprintf("rewind %d %s: %s%s", n, scope, what, then), problem)
	return nil
}

// byHand has a person change a file that the agent changed.
func (d *demo) byHand() error {
	d.chapter("A person edits a file that the agent wrote")
	if err := os.WriteFile(d.abs("run.sh"), []byte("#!/bin/sh\necho by hand\n"), 0o644); err != nil {
		return err
	}
	tip, err := d.now()
	if err != nil {
		return err
	}
	_, err = d.apply(rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Code})
	if !errors.Is(err, rewind.ErrConflict) {
		d.ok("rewind 1 code is refused", fmt.Sprintf("it was not: %v", err))
		return nil
	}
	if err := d.compare("rewind 1 code is refused, nothing changed", tip); err != nil {
		return err
	}
	if _, err := d.apply(rewind.Request{Kind: store.OpRewind, Turn: 1, Scope: store.Code, Force: true}); err != nil {
		return err
	}
	want := tip
	want.files = d.starts[1].files
	if err := d.compare("rewind 1 code --force: "+count(want.files.count(), "file")+" as at the start of turn 1", want); err != nil {
		return err
	}
	if err := d.undo(); err != nil {
		return err
	}
	return d.compare("undo-rewind: what was done by hand is back", tip)
}

// forks forks the session, goes on in the fork and switches between the two.
func (d *demo) forks() error {
	d.chapter("$ reasonix fork 3 --code, switch")
	tip, err := d.now()
	if err != nil {
		return err
	}
	first := d.session
	// The hand edit is in the way; forced over it is kept, and stays with the first session.
	res, err := d.apply(rewind.Request{Kind: store.OpFork, Turn: 3, Code: true, Name: "another way", Force: true})
	if err != nil {
		return err
	}
	d.session, d.said = res.Branch, slices.Clone(d.starts[3].messages)
	if err := d.compare(fmt.Sprintf("fork 3 --code: the files of turn 3, the first %d messages of the parent", len(d.said)), d.starts[3]); err != nil {
		return err
	}
	parent, err := d.messages(first)
	if err != nil {
		return err
	}
	d.ok("the parent has all of its "+count(len(parent), "message"), differsAt(parent, tip.messages))
	if err := d.turn("Another way", []edit{d.write("other.txt", "another way\n", 0o644), d.remove("helper/empty.txt")}); err != nil {
		return err
	}
	if err := d.recorded(3, d.starts[3].files, "Another way"); err != nil {
		return err
	}
	fork, err := d.now()
	if err != nil {
		return err
	}
	second := d.session
	for _, to := range []struct {
		id   store.SessionID
		name string
		want moment
	}{{first, "the first session", tip}, {second, "the fork", fork}, {first, "the first session", tip}} {
		// The hand edit is in the way of leaving the first session, and is kept by the force.
		if _, err := d.apply(rewind.Request{Kind: store.OpSwitch, Session: to.id, Force: true}); err != nil {
			return err
		}
		d.session = to.id
		if err := d.compare(fmt.Sprintf("switch to %s: %s, %s", to.name, count(to.want.files.count(), "file"), count(len(to.want.messages), "message")), to.want); err != nil {
			return err
		}
	}
	return nil
}

// sound checks the store.
func (d *demo) sound() error {
	d.chapter("$ reasonix verify --deep")
	problems, err := d.w.Store.Verify(d.ctx, true, nil)
	if err != nil {
		return err
	}
	text := ""
	if len(problems) > 0 {
		text = problems[0].Code + ": " + problems[0].Detail
	}
	d.ok("the store is sound", text)
	return nil
}
