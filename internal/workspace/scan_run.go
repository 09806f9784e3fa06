package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"reasonix/internal/ignore"
	"reasonix/store"
)

const (
	// scanWorkers: more only fight for the directory locks of the kernel; fewer leave it idle
	// while a batch is committed.
	scanWorkers = 4
	// readChunk is how many files of one folder a worker reads before it looks for other work.
	readChunk = 64
)

// scan is one run of Scan. A task is a folder that is to be looked at, or files of one that
// was looked at that have to be read.
type scan struct {
	r         *Root
	o         ScanOptions
	soft      context.Context // ends when the scan is to stop cleanly
	base      *Index
	pins      *pins
	protected []Identity
	rec       *recorder

	budgetFiles, budgetBytes atomic.Int64 // what the limits leave
	beyond                   atomic.Int64 // entries that the limit of files left out
	read, bytes              atomic.Int64
	cut                      atomic.Bool // something was not reached

	mu    sync.Mutex // guards the rest
	more  *sync.Cond // tasks were added, or all is done
	tasks []task     // the last is the next: deep before wide, so that few are waiting
	open  int        // tasks that wait or run
	err   error
}

type task struct {
	v     *visit
	reads []toRead // nil: look at the folder
}

// toRead is an entry of a folder that has to be read.
type toRead struct {
	at     int // in the entries of the new node
	before store.State
}

// visit is the way of a scan through one folder.
type visit struct {
	path      store.Path
	at        int   // in the entries of the parent's new node
	sig       Sig   // what lstat said of it
	base      *node // nil: nothing is known of what it held
	wasAbsent bool  // the folder was not there, so neither was anything in it
	left      bool  // left out by the rules: only what is recorded is looked at
	pins      *pins // recorded now, and
	basePins  *pins // recorded in the base

	// The rules above the folder, and later those in force in it; now and in the base.
	rules, baseRules *ignore.Rules
	changed          bool // they are not the same
	bad, baseBad     bool // some of them could not be read

	node     *node // the result; may be base itself
	own      bool  // the entries of node belong to this scan
	skipped  bool  // something in it was left out that no rule names
	children []*visit
	pending  atomic.Int32 // tasks that are not done
	unread   atomic.Bool  // some of them were cut off
}

func (s *scan) rootVisit() (*visit, error) {
	start := s.r.o.Now()
	if err := s.r.fault("lstat", "."); err != nil {
		return nil, err
	}
	fi, err := s.r.dir.Stat(".")
	if err != nil {
		return nil, err
	}
	return &visit{
		path: ".", sig: sigOf(fi, start), base: s.base.root, pins: s.pins, basePins: s.base.pins,
	}, nil
}

func (s *scan) stopped() bool {
	if s.soft.Err() == nil {
		return false
	}
	s.cut.Store(true)
	return true
}

// push adds tasks; the first of them is done first.
func (s *scan) push(tasks []task) {
	if len(tasks) == 0 {
		return
	}
	slices.Reverse(tasks)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, tasks...)
	s.open += len(tasks)
	s.more.Broadcast()
}

// next waits for a task; false means that all is done, or that the scan failed.
func (s *scan) next() (task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.tasks) == 0 && s.open > 0 && s.err == nil {
		s.more.Wait()
	}
	if s.open == 0 || s.err != nil {
		return task{}, false
	}
	t := s.tasks[len(s.tasks)-1]
	s.tasks = s.tasks[:len(s.tasks)-1]
	return t, true
}

func (s *scan) done(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if err != nil && s.err == nil {
		s.err = err
	}
	if s.open == 0 || s.err != nil {
		s.more.Broadcast()
	}
}

// work does tasks until none is left.
func (s *scan) work(ctx context.Context) error {
	w := &worker{s: s, cursor: s.r.cursor()}
	defer w.cursor.close()
	for {
		t, ok := s.next()
		if !ok {
			return nil
		}
		err := ctx.Err()
		if err == nil {
			err = w.do(ctx, t)
		}
		s.done(err)
		if err != nil {
			return err
		}
	}
}

func (w *worker) do(ctx context.Context, t task) error {
	if t.reads == nil {
		return w.folder(ctx, t.v)
	}
	return w.readAll(ctx, t.v, t.reads)
}

// finish puts the new index together and commits what is left.
func (s *scan) finish(ctx context.Context, root *visit) (Scan, error) {
	if err := ctx.Err(); err != nil {
		return Scan{}, err
	}
	complete := !s.cut.Load()
	var gaps []store.Gap
	if !complete {
		gaps = append(gaps, store.Gap{Reason: store.GapScanIncomplete, Detail: "the time was over before everything was looked at"})
	}
	if n := s.beyond.Load(); n > 0 {
		gaps = append(gaps, store.Gap{
			Reason: store.GapTooManyFiles,
			Detail: fmt.Sprintf("%d entries beyond the limit of %d files", n, s.o.MaxFiles),
		})
	}
	if err := s.rec.end(ctx, complete, gaps); err != nil {
		return Scan{}, err
	}
	x := &Index{root: root.assemble(), pins: s.pins, complete: complete, mixed: s.rec.mixed && !complete, link: s.rec.link}
	x.count()
	slices.SortStableFunc(s.rec.gaps, func(a, b store.Gap) int { return comparePaths(a.Path, b.Path) })
	changed := s.rec.changed
	slices.SortFunc(changed, func(a, b Change) int { return comparePaths(a.Path, b.Path) })
	return Scan{
		Index: x, Changed: changed, Gaps: s.rec.gaps, Complete: complete,
		Files: x.files, Read: int(s.read.Load()), Bytes: s.bytes.Load(),
	}, nil
}

// assemble returns the folder's new node with those of its children in it. What did not change
// is shared with the base.
func (v *visit) assemble() *node {
	n := v.node
	for _, child := range v.children {
		below := child.assemble()
		if n.entries[child.at].node == below {
			continue
		}
		if !v.own {
			clone := *n
			clone.entries = slices.Clone(n.entries)
			n, v.own = &clone, true
		}
		n.entries[child.at].node = below
	}
	if v.own {
		n.entries = slices.DeleteFunc(n.entries, func(e entry) bool {
			unread, gone := e.sig.Kind == 0 && !e.state.Known(), e.state.Kind == store.Absent && !n.left
			return e.node == nil && (unread || gone)
		})
	}
	return n
}

// isSystem reports whether err says that the system is out of something: no property of a path.
func isSystem(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
