package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// The limits of a scan where Scanning does not say otherwise.
const (
	DefaultMaxFile  = 64 << 20
	DefaultMaxFiles = 200_000
	DefaultMaxBytes = 2 << 30
)

// Scanning says whether and how far a workspace is scanned for what commands changed. Zero
// limits mean the defaults, negative ones mean none.
type Scanning struct {
	// Never says that commands are gaps, for this reason; "" means that they are scanned for.
	Never string
	// Always scans at the beginning and the end of each turn; else that begins with the first
	// command.
	Always   bool
	MaxFile  int64         // bytes of one file
	MaxFiles int           // files and links
	MaxBytes int64         // bytes read of files that no scan has seen
	Deadline time.Duration // of one scan; 0 means that of the caller's context
	// Progress, if any, is told how much has been stored so far in this scan, after each batch.
	Progress func(contents int, bytes int64)
}

func limit[T int | int64](n, otherwise T) T {
	switch {
	case n == 0:
		return otherwise
	case n < 0:
		return 0
	}
	return n
}

// Scanned is what a scan found.
type Scanned struct {
	Changed  []store.Path // what running commands, or somebody else, changed
	Gaps     []store.Gap
	Complete bool
	Files    int   // covered
	Read     int   // of them, those that were read
	Bytes    int64 // that were read
}

// Look scans the workspace for a session if scans are made there at all: a command has run, or
// they are always wanted.
func (c *Capturer) Look(ctx context.Context, id store.SessionID) error {
	if c.Scanning.Never != "" {
		return nil
	}
	wanted := c.Scanning.Always
	if !wanted {
		err := c.Store.View(ctx, func(tx *store.Tx) (err error) { wanted, err = tx.Scanned(); return err })
		if err != nil {
			return err
		}
	}
	if !wanted {
		return nil
	}
	_, err := c.Scan(ctx, id, false)
	return err
}

// Scan compares the whole workspace with the stat index and brings that up to date. What changed
// is recorded: for each session that has a command running, as that command's doing; where none
// runs, on the line of id as somebody else's, as far as the line knows the path (docs/design.md,
// looking). ended says that a command of id has ended of which no call is open any more. An id
// of "" records what commands did and nothing else.
//
// Each part of the index is committed together with what it was the first to see, so that a
// kill loses neither. A scan that runs into its deadline is not complete and leaves a gap; the
// next one goes on from there.
func (c *Capturer) Scan(ctx context.Context, id store.SessionID, ended bool) (Scanned, error) {
	if c.Scanning.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Scanning.Deadline+reserve)
		defer cancel()
	}
	unlock, err := c.lockScan(ctx)
	if errors.Is(err, ErrLocked) {
		g := store.Gap{Reason: store.GapScanIncomplete, Detail: "another scan held the workspace"}
		return Scanned{Gaps: []store.Gap{g}}, c.note(ctx, id, g)
	}
	if err != nil {
		return Scanned{}, err
	}
	defer unlock()
	s, err := c.newScan(ctx, id, ended)
	if err != nil {
		return Scanned{}, fmt.Errorf("scan: %w", err)
	}
	found, err := c.Root.Scan(ctx, workspace.ScanOptions{
		Base: s.base, Put: c.Store.Blobs().PrepareAgainst, Commit: s.commit, Recorded: s.recorded,
		MaxFile:  limit(c.Scanning.MaxFile, DefaultMaxFile),
		MaxFiles: limit(c.Scanning.MaxFiles, DefaultMaxFiles),
		MaxBytes: limit(c.Scanning.MaxBytes, DefaultMaxBytes),
		Reserve:  reserve,
	})
	if err != nil {
		return Scanned{}, fmt.Errorf("scan: %w", err)
	}
	done := Scanned{Gaps: found.Gaps, Complete: found.Complete, Files: found.Files, Read: found.Read, Bytes: found.Bytes}
	for _, ch := range found.Changed {
		done.Changed = append(done.Changed, ch.Path)
	}
	if s.base == nil {
		err = s.compare(ctx, found.Index)
	}
	if err == nil && found.Complete && s.pile > maxPile+s.whole/4 {
		whole := found.Index.Encode()
		err = c.Store.Update(ctx, func(tx *store.WriteTx) error { return tx.AddScanPart(whole, true, s.mark) })
	}
	if err == nil && found.Complete && s.unscanned {
		err = c.Store.Update(ctx, func(tx *store.WriteTx) error { return tx.EndUnscanned() })
	}
	return done, err
}

// note records a gap at the head of a session, if there is one.
func (c *Capturer) note(ctx context.Context, id store.SessionID, g store.Gap) error {
	if id == "" {
		return nil
	}
	return c.Store.Update(ctx, func(tx *store.WriteTx) error {
		n, err := tx.Writable(id)
		if err != nil {
			return err
		}
		return tx.AddGap(n, g)
	})
}

// maxPile is how many bytes of parts may lie on the whole index before all are made one: a pile
// is slow to read, a whole index is much to write for a change of one file.
const maxPile = 32 << 10

// scan is one scan being recorded.
type scan struct {
	c         *Capturer
	id        store.SessionID
	ended     bool
	began     time.Time
	base      *workspace.Index
	recorded  []store.Path
	mark      store.ScanMark
	unscanned bool // calls wait for a scan to close them
	whole     int  // bytes of the part that holds the whole index; 0 for none yet
	pile      int  // bytes of the parts on top of it
	contents  int  // stored so far
	bytes     int64
}

func (c *Capturer) newScan(ctx context.Context, id store.SessionID, ended bool) (*scan, error) {
	s := &scan{c: c, id: id, ended: ended, began: c.Store.Now()}
	err := c.Store.View(ctx, func(tx *store.Tx) error {
		index, err := tx.ScanIndex()
		if err != nil {
			return err
		}
		// The index is a cache: a damaged one is made anew.
		if s.base, err = workspace.DecodeParts(index.Parts); err != nil || s.base == nil {
			s.base, index = nil, store.ScanIndex{}
		}
		for i, part := range index.Parts {
			if i == 0 && workspace.IsWhole(part) {
				s.whole = len(part)
			} else {
				s.pile += len(part)
			}
		}
		if s.recorded, s.mark, err = tx.PathsSince(index); err != nil {
			return err
		}
		calls, err := tx.Running()
		for _, call := range calls {
			s.unscanned = s.unscanned || call.Ended
		}
		return err
	})
	return s, err
}

// commit keeps a batch with what it is the first to see.
func (s *scan) commit(ctx context.Context, b workspace.Batch) error {
	if s.c.Scanning.Progress != nil {
		defer func() { s.c.Scanning.Progress(s.contents, s.bytes) }()
	}
	for _, content := range b.Contents {
		s.contents, s.bytes = s.contents+1, s.bytes+content.Size()
	}
	return s.c.Store.Update(ctx, func(tx *store.WriteTx) error {
		for _, content := range b.Contents {
			if err := tx.Bind(content); err != nil {
				return err
			}
		}
		if err := tx.AddScanPart(b.Part, b.Full, s.mark); err != nil {
			return err
		}
		s.pile += len(b.Part)
		return s.record(tx, b.Changed, b.Gaps)
	})
}

// compare records what a scan without a base cannot know to have changed: paths that are not as
// the line of the session, or of a running command, last knew them.
func (s *scan) compare(ctx context.Context, now *workspace.Index) error {
	return s.c.Store.Update(ctx, func(tx *store.WriteTx) error {
		changed := make([]workspace.Change, 0, len(s.recorded))
		for _, p := range s.recorded {
			if state := now.State(p); state.Kind != store.Uncaptured {
				ch := workspace.Change{Path: p} // Before is what the line knows
				ch.State = state
				changed = append(changed, ch)
			}
		}
		return s.record(tx, changed, nil)
	})
}
