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
	// Root is the absolute folder that the exported paths lie in; "" means the workspace's own.
	Root string
	// Progress, which may be nil, is told of turns done and of all.
	Progress func(done, total int)
	// Fault is a seam for tests: it is called before every system call that writes, with one
	// of "mkdir", "create", "write", "fsync", "rename"; an error makes that call fail. It may
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
}

type writer struct {
	store     *store.Store
	session   store.Session
	root      string
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
	w := &writer{store: s, root: o.Root}
	err := s.View(ctx, func(tx *store.Tx) error {
		var err error
		if w.session, err = tx.Session(id); err != nil {
			return err
		}
		if w.root == "" {
			ws, err := tx.Workspace()
			w.root = ws.Root
			return err
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	if !filepath.IsAbs(w.root) || !utf8.ValidString(w.root) {
		return Result{}, fmt.Errorf("paths are exported below an absolute root of valid UTF-8, not %q: %w", w.root, ErrInvalid)
	}
	w.root = filepath.Clean(w.root)
	name := string(w.session.ID)
	all := []publication{{"ckpt", name + ".ckpt"}, {"meta", name + ".jsonl.meta"}, {"jsonl", name + ".jsonl"}}
	if o.Dir == "" {
		o.Dir = "."
	}
	w.out, err = newOut(o, []string{all[0].final, all[1].final, all[2].final})
	if err != nil {
		return Result{}, err
	}
	w.blobs = newBlobs(s.Blobs(), w.out)
	if err = w.write(ctx, o); err == nil {
		err = w.out.publish(all)
	}
	if cerr := w.out.close(err != nil); err == nil {
		err = cerr
	}
	if err != nil {
		return Result{}, fmt.Errorf("export session %s: %w", id, err)
	}
	w.result.Session, w.result.Turns, w.result.Messages = w.session.ID, w.session.Turns, w.session.Messages
	w.result.Dir = filepath.Join(o.Dir, all[0].final)
	w.result.Meta = filepath.Join(o.Dir, all[1].final)
	w.result.JSONL = filepath.Join(o.Dir, all[2].final)
	return w.result, nil
}

// write stages everything. Sealed nodes never change, so the head that was read once stands
// for one moment, in however many transactions the rest is read.
func (w *writer) write(ctx context.Context, o Options) error {
	if err := w.messages(ctx); err != nil {
		return err
	}
	if err := w.out.mkdirAll(w.out.staged("ckpt")); err != nil {
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
		if o.Progress != nil {
			o.Progress(n+1, w.session.Turns)
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
