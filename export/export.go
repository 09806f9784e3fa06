// Package export writes a session in the form that the public program Reasonix reads:
// <session>.jsonl with the conversation, <session>.jsonl.meta beside it, and <session>.ckpt/
// with turn-<n>.json and blobs/ for the files.
//
// The form is version 2 of that program's checkpoints, which its older and newer readers
// restore from: the content of each file stands in the turn as text and, exactly, in a blob.
// Its rule for a rewind to turn k is "per path, the earliest snapshot at or after k", so each
// turn names the paths that a rewind to it would write, with their state before. What the
// form cannot say, such as a symlink or a name that is not UTF-8, is left out and named as a
// gap of that turn.
//
// Version 1 is written too, for programs that know no other: it has the text alone.
//
// An export streams: one turn and one buffer of content are in memory at a time.
package export

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"reasonix/store"
)

var (
	// ErrNotEmpty is returned when the place holds something and Overwrite is not set.
	ErrNotEmpty = errors.New("the place of the export is not empty")
	// ErrInvalid is returned for a root that the form cannot name.
	ErrInvalid = errors.New("invalid root")
)

// Options say where an export goes.
type Options struct {
	// Dir takes the files; it is made when it is missing. It must be new or empty.
	Dir string
	// Among lets Dir hold other things; only the session's own names must be free.
	Among bool
	// Overwrite replaces the session's own names and lets Dir hold other things.
	Overwrite bool
	// Format is the version to write; the zero value is the one that every reader restores from.
	Format Format
	// Root is the absolute folder that the exported paths lie in; "" means the workspace's own.
	Root string
	// Progress, which may be nil, is told of turns done and of all those of the session in hand.
	Progress func(done, total int)
	// Fault is a seam for tests: it is called before every system call that writes, with one
	// of "mkdir", "create", "write", "syncfs", "fsync", "rename"; an error makes that call fail. It may
	// panic to stand for a kill: what is staged then stays.
	Fault func(op, name string) error
}

// Result says what was written.
type Result struct {
	Session   store.SessionID
	JSONL     string // the conversation
	Meta      string
	Dir       string // the .ckpt folder
	Turns     int
	Messages  int64
	LeftOut   int   // paths that the form cannot express, counted in each turn
	Converted int64 // messages that were not in the form's own shape
	// Inexact counts, in each turn, the files of which version 1 has other bytes than the workspace
	// had: it has their text only. InexactPaths names some of them.
	Inexact      int
	InexactPaths []store.Path
}

type writer struct {
	store     *store.Store
	session   store.Session
	calls     []activeWriter // commands that run now
	root      string
	format    Format
	forkTurn  int
	out       *out
	blobs     *blobs
	mutations int64 // snapshots so far
	result    Result
}

// Write exports a session as it is now; turns that are recorded meanwhile are left out. The
// same session gives the same bytes. After an error, or a crash, nothing lies under a final
// name that is not whole. Errors: store.ErrNoSession, ErrNotEmpty, ErrInvalid, a
// *blob.DamagedError for content that cannot be read, and those of the file system.
func Write(ctx context.Context, s *store.Store, id store.SessionID, o Options) (Result, error) {
	all, err := WriteAll(ctx, s, []store.SessionID{id}, o)
	if err != nil {
		return Result{}, err
	}
	return all[0], nil
}

// WriteAll exports different sessions into one place, as Write does one. They get their names when all of
// them are written: after an error the place is as it was, and after a crash each of them is
// there whole or not at all.
func WriteAll(ctx context.Context, s *store.Store, ids []store.SessionID, o Options) ([]Result, error) {
	if o.Dir == "" {
		o.Dir = "."
	}
	writers, err := newWriters(ctx, s, ids, o)
	if err != nil {
		return nil, err
	}
	var finals []string
	var all [][]publication
	for _, w := range writers {
		all = append(all, w.publications())
		for _, p := range w.publications() {
			finals = append(finals, p.final)
		}
	}
	out, err := newOut(o, finals)
	if err != nil {
		return nil, err
	}
	for _, w := range writers {
		if err = w.write(ctx, out, o.Progress); err != nil {
			err = fmt.Errorf("export session %s: %w", w.session.ID, err)
			break
		}
	}
	if err == nil {
		err = out.publish(all)
	}
	if cerr := out.close(err != nil); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, w := range writers {
		results = append(results, w.done(o.Dir))
	}
	return results, nil
}

// newWriters reads what the sessions are at one moment.
func newWriters(ctx context.Context, s *store.Store, ids []store.SessionID, o Options) (all []*writer, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		root := o.Root
		if root == "" {
			ws, err := tx.Workspace()
			if err != nil {
				return err
			}
			root = ws.Root
		}
		if !filepath.IsAbs(root) || !utf8.ValidString(root) {
			return fmt.Errorf("paths are exported below an absolute root of valid UTF-8, not %q: %w", root, ErrInvalid)
		}
		for _, id := range ids {
			w := &writer{store: s, root: filepath.Clean(root), format: o.Format}
			if err := w.look(tx, id); err != nil {
				return err
			}
			all = append(all, w)
		}
		return nil
	})
	return all, err
}

func (w *writer) look(tx *store.Tx, id store.SessionID) (err error) {
	if w.session, err = tx.Session(id); err != nil {
		return err
	}
	if w.calls, err = running(tx, id); err != nil {
		return err
	}
	w.forkTurn, err = forkTurn(tx, w.session)
	return err
}

// publications are what is written of a session; the last is what readers look for.
func (w *writer) publications() []publication {
	name := string(w.session.ID)
	return []publication{
		{w.stage("ckpt"), name + ".ckpt"},
		{w.stage("meta"), name + ".jsonl.meta"},
		{w.stage("jsonl"), name + ".jsonl"},
	}
}

// stage is the staged name of something of the session.
func (w *writer) stage(name string) string { return string(w.session.ID) + "/" + name }

func (w *writer) done(dir string) Result {
	r, p := w.result, w.publications()
	r.Session, r.Turns, r.Messages = w.session.ID, w.session.Turns, w.session.Messages
	r.Dir, r.Meta, r.JSONL = filepath.Join(dir, p[0].final), filepath.Join(dir, p[1].final), filepath.Join(dir, p[2].final)
	return r
}

// write stages everything. Sealed nodes never change, so the head that was read once stands
// for one moment, in however many transactions the rest is read.
func (w *writer) write(ctx context.Context, o *out, progress func(done, total int)) error {
	w.out = o
	w.blobs = newBlobs(w.store.Blobs(), o, w.stage(w.format.contents()), w.format == V1)
	if err := w.messages(ctx); err != nil {
		return err
	}
	if err := w.out.mkdirAll(w.out.staged(w.stage("ckpt"))); err != nil {
		return err
	}
	preview := ""
	for n := range w.session.Turns {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.turn(ctx, n); err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		if progress != nil {
			progress(n+1, w.session.Turns)
		}
	}
	if w.session.Turns > 0 {
		err := w.store.View(ctx, func(tx *store.Tx) error {
			t, err := tx.Turn(w.session.Head, 0)
			preview = t.Prompt
			return err
		})
		if err != nil {
			return err
		}
	}
	return w.meta(preview)
}

func (w *writer) absolute(p store.Path) string {
	return filepath.Join(w.root, filepath.FromSlash(string(p)))
}
