package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"reasonix/internal/charset"
	"reasonix/store"
)

// snapshot is what a turn's file says of one path.
type snapshot struct {
	path          store.Path
	before, after store.State
	tool          bool // the turn's own edit came first; else the format calls it manual
	agent         bool // the agent has a row about it
	changed       bool
	expired       bool // the content of before was dropped
}

// snapshots are the paths of a turn in the order of their first rows.
func snapshots(rows []store.Placed) []snapshot {
	var all []snapshot
	at := map[store.Path]int{}
	for _, r := range rows {
		i, ok := at[r.Path]
		if !ok {
			i = len(all)
			at[r.Path] = i
			own := r.Source == store.SourceTool || r.Source == store.SourceImport
			all = append(all, snapshot{path: r.Path, before: r.Before, tool: own})
		}
		s := &all[i]
		s.after = r.After
		s.agent = s.agent || r.Origin == store.Agent
		s.changed = s.changed || r.Before != r.After
	}
	return slices.DeleteFunc(all, func(s snapshot) bool { return !s.changed })
}

// forget takes states whose contents were dropped for ones that were not captured.
func (s *snapshot) forget(tx *store.Tx) error {
	for _, state := range []*store.State{&s.before, &s.after} {
		if !state.HasContent() {
			continue
		}
		has, err := tx.HasBlob(state.Blob)
		if err != nil {
			return err
		}
		if !has {
			s.expired = s.expired || state == &s.before
			*state = store.UncapturedState
		}
	}
	return nil
}

// turnData is what the store says of a turn.
type turnData struct {
	turn  store.Turn
	snaps []snapshot
	gaps  []store.Gap
}

// read collects a turn: its own rows and those of what follows it up to the next turn, since
// a rewind to this turn takes them back too.
func (w *writer) read(ctx context.Context, n int) (d turnData, err error) {
	err = w.store.View(ctx, func(tx *store.Tx) error {
		if d.turn, err = tx.Turn(w.session.Head, n); err != nil {
			return err
		}
		if d.gaps, err = tx.TurnGaps(w.session.Head, n); err != nil {
			return err
		}
		rows, err := tx.TurnChanges(w.session.Head, n)
		if err != nil {
			return err
		}
		for _, s := range snapshots(rows) {
			// What only a person changed from here on, a rewind leaves alone.
			if !s.agent {
				if s.agent, err = tx.AgentTouched(w.session.Head, s.path, n+1); err != nil {
					return err
				}
			}
			if !s.agent {
				continue
			}
			if err := s.forget(tx); err != nil {
				return err
			}
			d.snaps = append(d.snaps, s)
		}
		return nil
	})
	return d, err
}

// The fields of turn-<n>.json, in the format's order; files lie between head and tail.
type turnHead struct {
	SchemaVersion int    `json:"schemaVersion,omitempty"` // version 1 has none
	Turn          int    `json:"turn"`
	Time          string `json:"time"`
	Prompt        string `json:"prompt"`
	MsgIndex      int64  `json:"msgIndex"`
}

type turnTail struct {
	Coverage        string         `json:"coverage"`
	CoverageGaps    []gap          `json:"coverageGaps,omitempty"`
	ActiveWriters   []activeWriter `json:"activeWriters,omitempty"`
	LastMutationSeq int64          `json:"lastMutationSeq,omitempty"`
}

// turn writes turn-<n>.json and the contents that it names.
func (w *writer) turn(ctx context.Context, n int) error {
	d, err := w.read(ctx, n)
	if err != nil {
		return err
	}
	var gaps []gap
	add := func(g gap) {
		if !slices.Contains(gaps, g) {
			gaps = append(gaps, g)
		}
	}
	for _, g := range d.gaps {
		add(w.gapOf(g))
	}
	active, crossed := w.activeAt(n)
	if crossed {
		add(gap{Reason: reasonOf(store.GapLateWrite), Detail: crossingWriter})
	}
	d.snaps = slices.DeleteFunc(d.snaps, func(s snapshot) bool {
		g, cannot := w.inexpressible(s)
		if cannot {
			add(g)
			w.result.LeftOut++
		}
		return cannot
	})
	tail := turnTail{Coverage: "none", CoverageGaps: gaps, ActiveWriters: active}
	if len(d.snaps) > 0 {
		tail.Coverage = "complete"
		if len(gaps) > 0 {
			tail.Coverage = "partial"
		}
		w.mutations += int64(len(d.snaps))
		tail.LastMutationSeq = w.mutations
	}
	head := turnHead{
		SchemaVersion: 2, Turn: n, Time: d.turn.StartedAt.UTC().Format(time.RFC3339Nano),
		Prompt: d.turn.Prompt, MsgIndex: d.turn.MsgIndex,
	}
	if w.format == V1 {
		head.SchemaVersion = 0
	}
	return w.out.file(w.stage(fmt.Sprintf("ckpt/turn-%d.json", n)), func(f *bufio.Writer) error {
		_ = f.WriteByte('{') // errors of f stay and come back when it is flushed
		if err := writeFields(f, head); err != nil {
			return err
		}
		if err := w.files(ctx, f, d.snaps); err != nil {
			return err
		}
		if w.format == V1 {
			return f.WriteByte('}')
		}
		_ = f.WriteByte(',')
		if err := writeFields(f, tail); err != nil {
			return err
		}
		return f.WriteByte('}')
	})
}

func (w *writer) files(ctx context.Context, f *bufio.Writer, snaps []snapshot) error {
	if len(snaps) == 0 {
		_, err := f.WriteString(`,"files":null`)
		return err
	}
	_, _ = f.WriteString(`,"files":[`)
	for i, s := range snaps {
		if i > 0 {
			_ = f.WriteByte(',')
		}
		if err := w.snapshot(ctx, f, s); err != nil {
			return fmt.Errorf("export %s: %w", s.path, err)
		}
	}
	return f.WriteByte(']')
}

// The fields of a path after its content, in the format's order.
type snapTail struct {
	Encoding      *charset.Encoding `json:"encoding,omitempty"`
	Mode          uint32            `json:"mode,omitempty"`
	SHA256        string            `json:"sha256,omitempty"`
	BlobRef       string            `json:"blobRef,omitempty"`
	CaptureSource string            `json:"captureSource,omitempty"`
	AfterSHA256   string            `json:"afterSha256,omitempty"`
	AfterExisted  *bool             `json:"afterExisted,omitempty"`
	AfterMode     uint32            `json:"afterMode,omitempty"`
}

func (w *writer) snapshot(ctx context.Context, f *bufio.Writer, s snapshot) error {
	tail, err := w.tailOf(ctx, s)
	if err != nil {
		return err
	}
	_, _ = f.WriteString(`{"path":`)
	if err := writeString(f, stringReader(w.absolute(s.path))); err != nil {
		return err
	}
	_, _ = f.WriteString(`,"content":`)
	if s.before.Kind == store.Absent {
		_, _ = f.WriteString("null")
	} else {
		kept, err := w.blobs.keep(ctx, s.before.Blob)
		if err != nil {
			return err
		}
		if err := w.blobs.text(kept, func(r io.Reader) error { return writeString(f, r) }); err != nil {
			return err
		}
		tail.Encoding = &kept.encoding
		if w.format == V2 {
			tail.Mode, tail.SHA256, tail.BlobRef = s.before.Mode, kept.sum, kept.sum
		} else if !kept.exact || kept.encoding == charset.GBK {
			w.inexact(s)
		}
	}
	if tail != (snapTail{}) {
		_ = f.WriteByte(',')
		if err := writeFields(f, tail); err != nil {
			return err
		}
	}
	return f.WriteByte('}')
}

// tailOf is what is said of a path besides its content.
func (w *writer) tailOf(ctx context.Context, s snapshot) (tail snapTail, err error) {
	if w.format == V1 {
		return tail, nil
	}
	tail.CaptureSource = "manual"
	if s.tool {
		tail.CaptureSource = "previewer"
	}
	switch s.after.Kind {
	case store.File:
		sum, err := w.blobs.sum(ctx, s.after.Blob)
		if err != nil {
			return tail, err
		}
		existed := true
		tail.AfterSHA256, tail.AfterExisted, tail.AfterMode = sum, &existed, s.after.Mode
	case store.Absent:
		existed := false
		tail.AfterExisted = &existed
	case store.Symlink, store.Dir, store.Uncaptured: // nothing is claimed
	}
	return tail, nil
}

func validName(p store.Path) bool { return utf8.ValidString(string(p)) }
