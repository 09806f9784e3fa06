package workspace

import (
	"context"
	"errors"
	"io"

	"reasonix/blob"
	"reasonix/store"
)

// flushBytes bounds what one worker holds before it hands it on, in bytes of contents.
const flushBytes = 4 << 20

// putError marks an error of the one who takes the contents: it ends the scan, where one of a
// file is a gap.
type putError struct{ err error }

func (e *putError) Error() string { return e.err.Error() }
func (e *putError) Unwrap() error { return e.err }

// readAll reads entries of the folder v, and has it settled when no others are left.
func (w *worker) readAll(ctx context.Context, v *visit, reads []toRead) error {
	w.v, w.slow, w.isRaw = v, nil, false
	w.found.reset()
	for _, one := range reads {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.s.stopped() {
			v.unread.Store(true)
			break
		}
		if err := w.read(ctx, &v.node.entries[one.at], one.before); err != nil {
			return err
		}
		if w.found.bytes < flushBytes {
			continue
		}
		if err := w.s.rec.add(ctx, v.path, &w.found); err != nil {
			return err
		}
	}
	if err := w.s.rec.add(ctx, v.path, &w.found); err != nil {
		return err
	}
	if v.pending.Add(-1) > 0 {
		return nil
	}
	w.settle()
	return w.s.rec.add(ctx, v.path, &w.found)
}

// read reads the entry e, in which the base's word stands until then.
func (w *worker) read(ctx context.Context, e *entry, before store.State) error {
	p := join(w.v.path, e.name)
	reading, err := w.reading(e.name, before.Blob)
	var put *putError
	switch {
	case err == nil:
	case ctx.Err() == nil && w.s.stopped():
		w.v.unread.Store(true)
		return nil
	case errors.As(err, &put), isSystem(err):
		return err
	case errors.Is(err, ErrProtected):
		w.v.unread.Store(true)
		return nil
	default:
		reading = unreadable(Sig{}, err)
	}
	switch reading.State.Kind {
	case store.Dir: // since the lstat; the next scan will see
		w.v.unread.Store(true)
		return nil
	case store.Absent:
		w.vanished(p, e, before, reading)
		return nil
	default:
	}
	w.s.read.Add(1)
	w.s.bytes.Add(reading.State.Size)
	if reading.Content != nil {
		w.found.contents = append(w.found.contents, reading.Content)
		if reading.Content.Size() <= blob.ChunkSize { // else it is in the store already
			w.found.bytes += reading.Content.Size()
		}
		reading.Content = nil
	}
	now := entry{name: e.name, sig: reading.Sig, state: reading.State, gap: gapOf(reading.Reason)}
	if now.gap != 0 && (e.gap != now.gap || !e.sig.Same(now.sig)) {
		w.gap(p, reading.Reason, reading.Detail)
	}
	w.change(p, before, reading)
	w.absent(p, e.node, p)
	*e = now
	w.found.put = append(w.found.put, now)
	return nil
}

// vanished is for an entry that is gone since its lstat.
func (w *worker) vanished(p store.Path, e *entry, before store.State, now Reading) {
	now.Sig = absentSig
	w.change(p, before, now)
	w.absent(p, e.node, now.Blocker)
	known := e.state.Known() || e.node != nil
	*e = entry{name: e.name, sig: absentSig, state: store.AbsentState}
	switch {
	case w.v.left:
		w.found.put = append(w.found.put, *e)
	case known:
		w.found.remove = append(w.found.remove, e.name)
	}
}

// reading reads an entry. A file that is too large to be done in time is left to the next scan.
func (w *worker) reading(name string, was blob.Hash) (Reading, error) {
	ctx := w.s.soft
	f, err := w.enter()
	if err != nil {
		if meansAbsent(err) {
			return Reading{State: store.AbsentState}, nil
		}
		return Reading{}, err
	}
	return f.read(ctx, name, func(r io.Reader) (*blob.Prepared, blob.Hash, error) {
		content, err := w.s.o.Put(ctx, r, was)
		if err != nil {
			return nil, blob.Hash{}, &putError{err}
		}
		return content, content.Hash(), nil
	})
}
