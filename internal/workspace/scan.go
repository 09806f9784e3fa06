package workspace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"reasonix/blob"
	"reasonix/store"
)

// ScanOptions say what a scan compares with, what it leaves out and where its contents go.
// A limit of zero is no limit.
type ScanOptions struct {
	// Base is what the last scan saw; nil when nothing is known. It is not changed.
	Base *Index
	// Put prepares contents, from several goroutines at once. It is required.
	Put Put
	// Commit keeps a batch. It is called while the scan runs, by one goroutine at a time, and
	// once at its end if there is anything left; an error ends the scan. nil keeps nothing:
	// for plans and tests.
	Commit func(ctx context.Context, b Batch) error
	// Recorded are paths that the history knows. They are covered whatever the ignore rules
	// say, also below ignored folders, and stay in the index from then on.
	Recorded []store.Path

	MaxFile  int64 // bytes of one file; a larger one is uncaptured
	MaxFiles int   // files and links; new ones beyond are left out, known ones go on
	MaxBytes int64 // bytes read in this scan of files that Base does not know

	// Reserve is the time before ctx's deadline at which the scan stops cleanly.
	Reserve time.Duration

	batch int             // entries of a batch, 0 means batchEntries: for tests
	soft  context.Context // ends when the scan is to stop, nil means by Reserve: for tests
}

// Batch is what has to be kept together, in one transaction: then a kill at any moment leaves
// an index that holds for the contents and the changes that are stored, and the next scan goes
// on from there.
type Batch struct {
	// Part is the next part of the index, for DecodeParts. Full says that it is the first of a
	// new index and that all earlier parts are to be dropped.
	Part []byte
	Full bool
	// Contents are those that the states in Part and Changed refer to and that may be new.
	Contents []*blob.Prepared
	// Changed and Gaps are those of Scan that Part takes into the index: the next scan will not
	// find them again.
	Changed []Change
	Gaps    []store.Gap
}

// Change is a path that is not as the base says.
type Change struct {
	Path store.Path
	// Before is the base's state: absent only when that is proved, which takes a folder that
	// was listed completely and rules that did not leave the path out; else uncaptured.
	Before store.State
	// Reading is what is there now. Its Content is nil: contents go to Commit.
	Reading
}

// Scan is what a scan found.
type Scan struct {
	Index   *Index      // what is on disk now, as far as the scan came
	Changed []Change    // in the order of paths, folders before what they hold; none without a base
	Gaps    []store.Gap // what is not covered and was not told by an earlier scan
	// Complete is false when the scan ran into its deadline. What it did not reach is in Index
	// as it was in the base.
	Complete bool
	Files    int   // files and links covered
	Read     int   // of them, those that were read
	Bytes    int64 // bytes read
}

// Scan walks the whole root, no link followed, and compares it with a base. A path whose lstat
// equals what the base has costs that lstat; anything else is read as Read does, and so is
// what carries a racy stamp. Left out are .git at any depth, protected paths, staged files, and
// what the ignore rules name (package ignore) unless it is recorded.
//
// What cannot be read, may not be listed, is special or is over a limit is a gap when it is
// new or was changed since the base. It is never absent (I6), nor is what was not reached.
//
// It returns an error when put, commit or ctx fails and for faults of the file system that are
// no property of a single path. What was committed by then holds.
func (r *Root) Scan(ctx context.Context, o ScanOptions) (Scan, error) {
	soft, cancel := softContext(ctx, o.Reserve)
	defer cancel()
	s := &scan{r: r, o: o, soft: soft, base: o.Base, protected: r.protectedIDs()}
	if s.base == nil {
		s.base = &Index{root: &node{}}
	}
	if o.soft != nil {
		s.soft = o.soft
	}
	s.more = sync.NewCond(&s.mu)
	s.budgetBytes.Store(o.MaxBytes)
	s.budgetFiles.Store(int64(o.MaxFiles - s.base.files))
	var added []store.Path
	s.pins, added = s.base.pins.with(o.Recorded)
	s.rec = newRecorder(o, s.base, added)
	root, err := s.rootVisit()
	if err != nil {
		return Scan{}, fmt.Errorf("scan: %w", err)
	}
	s.push([]task{{v: root}})
	if err := r.parallel(ctx, scanWorkers, s.work); err != nil {
		return Scan{}, fmt.Errorf("scan: %w", err)
	}
	result, err := s.finish(ctx, root)
	if err != nil {
		return Scan{}, fmt.Errorf("scan: %w", err)
	}
	return result, nil
}

// softContext ends when the scan is to stop cleanly: reserve before ctx ends.
func softContext(ctx context.Context, reserve time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-reserve))
	}
	return context.WithCancel(ctx)
}
