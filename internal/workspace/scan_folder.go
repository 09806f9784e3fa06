package workspace

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"reasonix/internal/ignore"
	"reasonix/store"
)

// worker does the tasks of a scan in one goroutine. The fields below the first two are of the
// task that it is at.
type worker struct {
	s      *scan
	cursor *cursor

	v       *visit
	raw     rawFolder
	isRaw   bool
	slow    *folder // where raw is not to be had, and for reading
	now     time.Time
	rematch bool           // the rules for the entries are not those of the base
	answers *ignore.Folder // by the rules in force; nil until asked
	old     *ignore.Folder // by those of the base; nil until asked
	out     builder
	found   findings
	reads   []toRead
	below   []*visit
}

// builder makes the entries of the new node out of those of the base. As long as they are the
// same it makes nothing.
type builder struct {
	base []entry
	n    int // entries so far
	out  []entry
	own  bool
}

func (b *builder) keep(e *entry) {
	if b.own {
		b.out = append(b.out, *e)
	}
	b.n++
}

func (b *builder) put(e entry) {
	b.change()
	b.out = append(b.out, e)
	b.n++
}

// change is called before the entries are no longer those of the base.
func (b *builder) change() {
	if !b.own {
		b.own = true
		b.out = append(make([]entry, 0, max(len(b.base), 8)), b.base[:b.n]...)
	}
}

// named is an entry that a folder has by its listing.
type named struct {
	name string
	dir  bool
}

// folder looks at the folder v: lists it if that is needed, asks the rules, and lstats what is
// covered. What has to be read and the folders in it are tasks of their own.
func (w *worker) folder(ctx context.Context, v *visit) error {
	w.begin(v)
	if w.s.stopped() {
		return nil
	}
	if err := w.open(); err != nil {
		return w.closed(ctx, err)
	}
	err := w.look(ctx)
	w.leave()
	if err != nil {
		return w.closed(ctx, err)
	}
	return w.end(ctx)
}

// begin leaves v as it was, for now.
func (w *worker) begin(v *visit) {
	w.v, w.slow, w.rematch, w.answers, w.old = v, nil, false, nil, nil
	w.reads, w.below = nil, nil
	w.found.reset()
	w.now = w.s.r.o.Now()
	v.node = v.base
	if v.node == nil {
		v.node = &node{}
	}
	w.out = builder{base: v.node.entries}
}

// known is what the base knows of the folder.
func (v *visit) known() *node {
	if v.base == nil {
		return &node{}
	}
	return v.base
}

func (w *worker) open() error {
	if w.isRaw = w.s.r.openRaw(&w.raw, w.v.path); w.isRaw {
		return nil
	}
	_, err := w.enter()
	return err
}

func (w *worker) leave() {
	if w.isRaw {
		w.raw.close()
		w.isRaw = false
	}
}

// enter returns the folder for what raw cannot do.
func (w *worker) enter() (f *folder, err error) {
	if w.slow == nil {
		w.slow, err = w.cursor.enter(w.v.path)
	}
	return w.slow, err
}

// errProtected says that an entry is the store.
var errProtected = errors.New("protected")

// lstat returns the signature of an entry, but for Racy.
func (w *worker) lstat(name string) (Sig, error) {
	if !w.isRaw {
		fi, err := w.slow.lstat(name)
		if err != nil {
			return Sig{}, err
		}
		if w.s.r.isProtectedInfo(fi) {
			return Sig{}, errProtected
		}
		s := sigOf(fi, w.now)
		s.Racy = false
		return s, nil
	}
	s, err := w.raw.lstat(name)
	if err == nil && slices.Contains(w.s.protected, Identity{s.Device, s.Inode}) {
		err = errProtected
	}
	return s, err
}

// look decides about every entry.
func (w *worker) look(ctx context.Context) error {
	v, base := w.v, w.v.known()
	v.baseRules, v.baseBad = base.rules.under(v.baseRules, v.path), v.baseBad || base.rules.bad()
	if v.left {
		w.setInfo(&node{})
		return w.merge(v.pins.names(), false)
	}
	var listing []named
	list := func() (err error) {
		f, err := w.enter()
		if err == nil {
			listing, err = f.names()
		}
		return err
	}
	listed := v.base == nil || !base.complete || base.sig.Racy || !base.sig.Same(v.sig) || v.changed
	if listed {
		if err := list(); err != nil {
			return err
		}
	}
	rules, err := w.ruleFiles(ctx, listing, listed)
	if err != nil {
		return err
	}
	marked := w.marked(listing, listed)
	v.changed = v.changed || !rules.same(base.rules)
	if v.changed && v.base != nil {
		w.s.rec.otherRules()
	}
	w.rematch = v.changed || !slices.Equal(marked, base.marked)
	if w.rematch && !listed {
		if err := list(); err != nil {
			return err
		}
		listed = true
	}
	v.rules, v.bad = rules.under(v.rules, v.path), v.bad || rules.bad()
	w.setInfo(&node{complete: true, rules: rules, marked: marked})
	if !listed {
		// What has become recorded may be ignored, and not in the base.
		listing = v.pins.names()
	}
	return w.merge(listing, listed)
}

// setInfo takes what info says about the folder for its new node.
func (w *worker) setInfo(info *node) {
	if info.left = w.v.left; !info.left { // else it is not listed
		info.sig = w.v.sig
	}
	info.entries = w.v.node.entries
	w.v.node = info
}

// merge goes through list and the entries of the base together. listed says that list is all
// that is there; else an lstat tells.
func (w *worker) merge(list []named, listed bool) error {
	known := w.v.known().entries
	for len(list) > 0 || len(known) > 0 {
		var err error
		switch c := compareHeads(list, known); {
		case c == 0:
			err = w.entry(list[0].name, &known[0], list[0].dir)
			list, known = list[1:], known[1:]
		case c < 0:
			err = w.entry(list[0].name, nil, list[0].dir)
			list = list[1:]
		case listed:
			w.gone(&known[0])
			known = known[1:]
		default:
			err = w.entry(known[0].name, &known[0], known[0].node != nil)
			known = known[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func compareHeads(list []named, known []entry) int {
	switch {
	case len(list) == 0:
		return 1
	case len(known) == 0:
		return -1
	}
	return strings.Compare(list[0].name, known[0].name)
}

func byName(a, b named) int { return strings.Compare(a.name, b.name) }

// names lists the folder, sorted, without what can be no path here. Kinds are as the listing
// has them.
func (f *folder) names() ([]named, error) {
	if err := f.r.fault("readdir", f.path); err != nil {
		return nil, err
	}
	d, err := f.dir.Open(".") // a handle of its own: the offset is part of it
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	list := make([]named, 0, len(found))
	room := maxPath - len(f.path) - 1
	for _, e := range found {
		name := e.Name()
		if checkName(name) != nil || len(name) > room || len(f.r.protected) > 0 && f.r.isProtectedPath(join(f.path, name)) {
			continue
		}
		list = append(list, named{name, e.IsDir()})
	}
	slices.SortFunc(list, byName)
	return list, nil
}

// protectedIDs are the identities of what is protected, as far as it is there.
func (r *Root) protectedIDs() []Identity {
	var ids []Identity
	for i := range r.protected {
		if id, err := IdentityOf(r.protected[i].abs); err == nil && id != (Identity{}) {
			ids = append(ids, id)
		}
	}
	return ids
}

// closed deals with a folder that cannot be listed or entered: nothing is known of what it
// holds now, and what was known stays.
func (w *worker) closed(ctx context.Context, err error) error {
	v := w.v
	w.leave()
	base, again := v.known(), false
	w.begin(v)
	switch {
	case meansAbsent(err), errors.Is(err, ErrProtected):
		return nil // since it was looked at; the next scan will see
	case isSystem(err):
		return err
	case errors.Is(err, fs.ErrPermission):
		again = base.gap == gapOf(store.GapUnreadable) && base.sig.Same(v.sig)
	}
	info := *base
	info.complete, info.sig, info.gap = false, Sig{}, gapOf(store.GapUnreadable)
	if errors.Is(err, fs.ErrPermission) {
		info.sig = v.sig
	}
	v.node = &info
	if !again {
		w.gap(v.path, store.GapUnreadable, err.Error())
		w.found.info = &info
	}
	return w.s.rec.add(ctx, v.path, &w.found)
}

// end records what was found, and makes tasks of what is left to do.
func (w *worker) end(ctx context.Context) error {
	v := w.v
	if w.out.own || w.out.n != len(w.out.base) {
		w.out.change()
		v.node.entries, v.own = w.out.out, true
	}
	if v.skipped {
		v.node.complete = false
	}
	v.children = w.below
	var tasks []task
	for chunk := range slices.Chunk(w.reads, readChunk) {
		tasks = append(tasks, task{v, chunk})
	}
	v.pending.Store(int32(len(tasks)))
	for _, child := range w.below {
		tasks = append(tasks, task{v: child})
	}
	if v.pending.Load() == 0 {
		w.settle()
	}
	if err := w.s.rec.add(ctx, v.path, &w.found); err != nil {
		return err
	}
	w.s.push(tasks)
	return nil
}

// settle has the folder recorded as listed, now that its entries are. If some were not reached,
// it stays as the base has it.
func (w *worker) settle() {
	v := w.v
	base := v.known()
	switch {
	case v.unread.Load():
		n := *base
		n.entries = v.node.entries
		v.node = &n
	case v.node.sameInfo(base):
		if !v.own && v.base != nil {
			v.node = base
		}
	default:
		info := *v.node
		info.entries = nil
		w.found.info = &info
	}
}

func (n *node) sameInfo(m *node) bool {
	return n.sig == m.sig && n.complete == m.complete && n.left == m.left && n.gap == m.gap &&
		(n.rules == m.rules || n.rules != nil && m.rules != nil && *n.rules == *m.rules) && slices.Equal(n.marked, m.marked)
}

func (w *worker) gap(p store.Path, reason, detail string) {
	w.found.gaps = append(w.found.gaps, store.Gap{Reason: reason, Path: p, Detail: detail})
}
