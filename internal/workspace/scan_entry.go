package workspace

import (
	"errors"
	"fmt"
	"io/fs"

	"reasonix/store"
)

// entry decides about one entry: e is what the base says of it, nil when it says nothing; dir
// says that it is a folder, as far as that was told before the lstat.
func (w *worker) entry(name string, e *entry, dir bool) error {
	v := w.v
	pin := v.pins.at(name)
	if pin == nil && w.leftOut(name, e, dir) {
		w.drop(e)
		return nil
	}
	sig, err := w.lstat(name)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		w.gone(e)
		if v.left && (e == nil || e.state.Kind != store.Absent) {
			w.putEntry(entry{name: name, sig: absentSig, state: store.AbsentState})
		}
		return nil
	case errors.Is(err, errProtected):
		w.drop(e)
		return nil
	case errors.Is(err, fs.ErrPermission), isSystem(err):
		return err // of the folder: none of its entries will do better
	default:
		w.unknown(name, e, err)
		return nil
	}
	out := pin != nil && w.leftOut(name, e, sig.Kind == store.Dir)
	if sig.Kind == store.Dir {
		w.enters(name, e, sig, pin, out)
		return nil
	}
	passed := out && !pin.isHere()
	if e != nil && e.node == nil && e.sig.Same(sig) && !e.sig.Racy && e.state.Known() != passed && !w.again(e) {
		w.out.keep(e)
		return nil
	}
	w.file(name, e, sig, pin, passed)
	return nil
}

// leftOut reports whether the rules leave the entry out. What is in the base need not be asked
// about while the rules are the same, and it is a folder still, or no folder.
func (w *worker) leftOut(name string, e *entry, dir bool) bool {
	v := w.v
	switch {
	case v.left:
		return true
	case e != nil && !w.rematch && dir == (e.node != nil):
		return !e.state.Known() || e.node != nil && e.node.left
	case v.bad:
		// Nobody knows what the rules say: what was covered goes on.
		if e == nil && v.pins.at(name) == nil {
			v.skipped = true
		}
		return e == nil || !e.state.Known() || e.node != nil && e.node.left
	}
	if w.answers == nil {
		w.answers = v.rules.In(string(v.path), v.node.marked)
	}
	return w.answers.Ignored(name, dir)
}

// before is the state that the base proves.
func (w *worker) before(name string, e *entry) store.State {
	v := w.v
	switch {
	case e != nil && e.state.Known():
		return e.state
	case v.wasAbsent:
		return store.AbsentState
	case e != nil || v.base == nil || w.s.base.mixed:
		return store.UncapturedState
	}
	if w.old == nil {
		w.old = v.baseRules.In(string(v.path), v.base.marked)
	}
	if v.base.proves(name, v.basePins.at(name) != nil, v.baseBad, w.old) {
		return store.AbsentState
	}
	return store.UncapturedState
}

// enters makes the visit of a folder.
func (w *worker) enters(name string, e *entry, sig Sig, pin *pins, out bool) {
	v := w.v
	if e == nil && pin == nil && w.s.budgetFiles.Load() <= 0 && w.noRoom() {
		return
	}
	sig.Racy = sig.racy(w.now)
	passed := out && !pin.isHere()
	before := w.before(name, e)
	child := &visit{
		path: join(v.path, name), at: w.out.n, sig: sig, left: out, pins: pin, basePins: v.basePins.at(name),
		rules: v.rules, baseRules: v.baseRules, changed: v.changed, bad: v.bad, baseBad: v.baseBad,
	}
	now := entry{name: name, state: store.State{Kind: store.Dir, Mode: sig.Mode}}
	if passed {
		now.state = store.State{}
	}
	if e != nil && e.node != nil {
		child.base, now.node = e.node, e.node
		// What is below was decided on by the folder, and not by the rules, or is to be now.
		child.changed = child.changed || e.node.left != out
	} else {
		child.wasAbsent = before.Kind == store.Absent || e != nil && e.sig.Kind != 0
		now.node = &node{}
	}
	w.below = append(w.below, child)
	if e != nil && e.node != nil && e.state == now.state {
		w.out.keep(e)
		return
	}
	w.putEntry(now)
	if !passed {
		w.change(child.path, before, Reading{State: now.state, Sig: sig})
	}
}

// file decides about what is no folder and not as it was.
func (w *worker) file(name string, e *entry, sig Sig, pin *pins, passed bool) {
	sig.Racy = sig.racy(w.now)
	o := &w.s.o
	fresh := e == nil || !e.state.HasContent()
	switch {
	case passed: // it stands where an ignored folder led to something recorded
		w.noFolder(e, join(w.v.path, name))
		w.putEntry(entry{name: name, sig: sig})
	case e == nil && pin == nil && w.noRoom():
	case sig.Kind == store.Uncaptured:
		w.uncaptured(name, e, sig, store.GapSpecial, "")
	case sig.Kind == store.File && o.MaxFile > 0 && sig.Size > o.MaxFile:
		w.uncaptured(name, e, sig, store.GapTooLarge, fmt.Sprintf("%d bytes, more than %d", sig.Size, o.MaxFile))
	case sig.Kind == store.File && fresh && o.MaxBytes > 0 && w.s.budgetBytes.Add(-sig.Size) < 0:
		w.s.budgetBytes.Add(sig.Size)
		w.uncaptured(name, e, sig, store.GapTooManyBytes, fmt.Sprintf("more than %d bytes in one scan", o.MaxBytes))
	default:
		w.reads = append(w.reads, toRead{at: w.out.n, before: w.before(name, e)})
		if e != nil {
			w.out.put(*e)
		} else {
			w.out.put(entry{name: name})
		}
	}
}

// uncaptured records that something is there which is not captured.
func (w *worker) uncaptured(name string, e *entry, sig Sig, reason, detail string) {
	p := join(w.v.path, name)
	now := entry{name: name, sig: sig, state: store.UncapturedState, gap: gapOf(reason)}
	if e == nil || e.gap != now.gap || !e.sig.Same(sig) {
		w.gap(p, reason, detail)
	}
	w.change(p, w.before(name, e), Reading{State: now.state, Sig: sig, Reason: reason, Detail: detail})
	w.noFolder(e, p)
	w.putEntry(now)
}

// unknown deals with an entry whose lstat fails: it stays as it was and is looked at again.
func (w *worker) unknown(name string, e *entry, err error) {
	w.gap(join(w.v.path, name), store.GapUnreadable, err.Error())
	w.v.skipped = true
	if e == nil {
		return
	}
	now := *e
	now.sig = Sig{}
	w.out.put(now)
	if e.node == nil {
		w.found.put = append(w.found.put, now)
	}
}

// again reports whether an entry that a limit left out is within the limits now.
func (w *worker) again(e *entry) bool {
	switch e.gap {
	case gapOf(store.GapTooLarge):
		return w.s.o.MaxFile == 0 || e.sig.Size <= w.s.o.MaxFile
	case gapOf(store.GapTooManyBytes):
		return w.s.o.MaxBytes == 0
	}
	return false
}

// noRoom reports whether the limit of files leaves the new entry out.
func (w *worker) noRoom() bool {
	if w.s.o.MaxFiles == 0 || w.s.budgetFiles.Add(-1) >= 0 {
		return false
	}
	w.s.beyond.Add(1)
	w.v.skipped = true
	return true
}

func (w *worker) putEntry(e entry) {
	w.out.put(e)
	w.found.put = append(w.found.put, e)
}

// drop takes e out of the index: it is left out from now on, which is no change of it.
func (w *worker) drop(e *entry) {
	if e != nil {
		w.out.change()
		w.found.remove = append(w.found.remove, e.name)
	}
}

// gone records that e and all that the base knows below it are absent.
func (w *worker) gone(e *entry) {
	if e == nil {
		return
	}
	if w.v.left && e.state.Kind == store.Absent {
		w.out.keep(e)
		return
	}
	p := join(w.v.path, e.name)
	w.change(p, e.state, Reading{State: store.AbsentState, Sig: absentSig})
	w.absent(p, e.node, "")
	w.out.change()
	if !w.v.left {
		w.found.remove = append(w.found.remove, e.name)
	}
}

// noFolder records that what was in the folder e is absent, since p is no folder now.
func (w *worker) noFolder(e *entry, p store.Path) {
	if e != nil {
		w.absent(p, e.node, p)
	}
}

// absent records that all that is in the folder n is absent.
func (w *worker) absent(p store.Path, n *node, blocker store.Path) {
	if n == nil {
		return
	}
	for i := range n.entries {
		e := &n.entries[i]
		below := join(p, e.name)
		w.change(below, e.state, Reading{State: store.AbsentState, Sig: absentSig, Blocker: blocker})
		w.absent(below, e.node, blocker)
	}
}

// change records a change, unless nothing is known to have changed.
func (w *worker) change(p store.Path, before store.State, now Reading) {
	if before.Known() && before != now.State {
		w.found.changed = append(w.found.changed, Change{Path: p, Before: before, Reading: now})
	}
}
