package workspace

import (
	"context"
	"sync"

	"reasonix/blob"
	"reasonix/store"
)

const (
	batchEntries = 4096
	// batchBytes bounds the contents of a batch, before compression, which makes about a third
	// of them.
	batchBytes = 24 << 20
)

// recorder gathers what a scan finds into batches and has them committed. Entries are recorded
// after the folder that they lie in, and a folder is recorded as listed after its entries: so
// each batch leaves an index that says nothing it does not know.
type recorder struct {
	o    ScanOptions
	base bool // there is one, and changes are told

	mu      sync.Mutex // guards what follows
	part    *partWriter
	empty   int        // length of a part with nothing in it
	at      store.Path // the folder that part is in
	entries int
	bytes   int64
	batch   Batch
	full    bool // the next part is the first of a new index
	was     bool // the base is complete
	mixed   bool // folders not reached may hold what older rules let in
	link    link
	changed []Change
	gaps    []store.Gap

	committing sync.Mutex // held from taking a batch until it is committed; keeps their order
}

func newRecorder(o ScanOptions, base *Index, pinned []store.Path) *recorder {
	r := &recorder{o: o, base: o.Base != nil, full: o.Base == nil, was: base.complete, mixed: base.mixed, link: base.link}
	if r.o.batch == 0 {
		r.o.batch = batchEntries
	}
	r.begin()
	for _, p := range pinned {
		r.part.b = append(r.part.b, opPin)
		r.part.text(string(p))
	}
	return r
}

func (r *recorder) begin() {
	r.part = newPart(partChanges, r.link)
	r.empty = len(r.part.b)
	r.at, r.entries, r.bytes, r.batch = "", 0, 0, Batch{}
}

// findings are what was found in one folder, in the order in which it is to be recorded.
type findings struct {
	put      []entry
	remove   []string
	info     *node
	changed  []Change
	gaps     []store.Gap
	contents []*blob.Prepared
	bytes    int64 // held by contents
}

func (f *findings) reset() {
	clear(f.put) // lets go of nodes
	clear(f.changed)
	clear(f.contents)
	*f = findings{
		put: f.put[:0], remove: f.remove[:0], changed: f.changed[:0], gaps: f.gaps[:0], contents: f.contents[:0],
	}
}

func (f *findings) isEmpty() bool {
	return len(f.put) == 0 && len(f.remove) == 0 && f.info == nil && len(f.changed) == 0 && len(f.gaps) == 0 &&
		len(f.contents) == 0
}

// add records what was found in folder and empties f. It may commit a batch.
func (r *recorder) add(ctx context.Context, folder store.Path, f *findings) error {
	if f.isEmpty() {
		return nil
	}
	r.mu.Lock()
	w := r.part
	if r.at != folder {
		w.b = append(w.b, opFolder)
		w.text(string(folder))
		r.at = folder
	}
	for _, name := range f.remove {
		w.b = append(w.b, opRemove)
		w.text(name)
	}
	for i := range f.put {
		w.b = append(w.b, opPut)
		w.entry(&f.put[i])
	}
	if f.info != nil {
		w.b = append(w.b, opInfo)
		w.info(f.info)
	}
	r.entries += len(f.put) + len(f.remove)
	r.bytes += f.bytes
	r.batch.Contents = append(r.batch.Contents, f.contents...)
	r.batch.Gaps = append(r.batch.Gaps, f.gaps...)
	if r.base {
		r.batch.Changed = append(r.batch.Changed, f.changed...)
	}
	f.reset()
	if r.entries < r.o.batch && r.bytes < batchBytes {
		r.mu.Unlock()
		return nil
	}
	return r.commit(ctx, false)
}

// otherRules says that a folder has other rules than the base.
func (r *recorder) otherRules() {
	r.mu.Lock()
	r.mixed = true
	r.mu.Unlock()
}

// end commits the rest. A scan that changed nothing has none.
func (r *recorder) end(ctx context.Context, complete bool, gaps []store.Gap) error {
	r.mu.Lock()
	r.batch.Gaps = append(r.batch.Gaps, gaps...)
	if !r.full && len(r.part.b) == r.empty && r.was == complete && len(r.batch.Gaps) == 0 {
		r.mu.Unlock()
		return nil
	}
	return r.commit(ctx, complete)
}

// commit seals the part and commits the batch. It is called with mu held and returns without.
// While it runs, others fill the next batch, and wait only when that is full too.
func (r *recorder) commit(ctx context.Context, complete bool) error {
	b := r.batch
	b.Full = r.full
	b.Part, r.link = r.part.seal(complete, r.mixed && !complete)
	r.full, r.was = false, complete
	r.changed = append(r.changed, b.Changed...)
	r.gaps = append(r.gaps, b.Gaps...)
	r.begin()
	r.committing.Lock()
	r.mu.Unlock()
	defer r.committing.Unlock()
	if r.o.Commit == nil {
		return nil
	}
	return r.o.Commit(ctx, b)
}
