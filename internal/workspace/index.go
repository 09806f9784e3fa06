package workspace

import (
	"iter"
	"slices"
	"strings"

	"reasonix/blob"
	"reasonix/internal/ignore"
	"reasonix/store"
)

// Index is the stat index: the signature and the state of each path at the last scan, which
// folders were listed completely, and the ignore rules that were in force. It is a cache:
// without it everything is read again. It never changes; any number of goroutines may use it.
// The methods of a nil Index know nothing.
type Index struct {
	root     *node
	pins     *pins
	complete bool // the scan came to its end
	// A scan that found other rules did not come to its end: folders that it did not reach still
	// hold what older rules let in, and prove nothing.
	mixed    bool
	link     link // what the next part follows on
	n, files int  // paths; of them those that are no folders
}

// node is a folder of an index.
type node struct {
	sig      Sig        // of the folder when it was listed; zero makes the next scan list it
	complete bool       // listed, and all that was found and not left out by the rules is in entries
	left     bool       // left out by the rules: entries are only what is recorded
	gap      gap        // why it could not be listed
	rules    *ruleFiles // nil: it has none
	marked   []string   // names in it that an ignore.Marker names
	entries  []entry    // sorted by name
}

// entry is something in a folder.
type entry struct {
	name  string
	sig   Sig         // zero for a folder, whose node has it, and for what has to be read again
	state store.State // zero for what is left out and only leads to something recorded
	node  *node       // of a folder, else nil
	gap   gap         // why the state is uncaptured
}

// ruleFiles are the two rule files of a folder: ignore.GitFile and ignore.OwnFile.
type ruleFiles [2]ruleFile

var ruleNames = [2]string{ignore.GitFile, ignore.OwnFile}

// ruleFile is a rule file as it was read. The zero ruleFile is none.
type ruleFile struct {
	sig  Sig
	text string
	bad  bool // there, and of no use: nothing is known of what it leaves out
}

func (f *ruleFiles) bad() bool { return f != nil && (f[0].bad || f[1].bad) }

// under returns the rules in force in the folder that f lies in, when above are those above it.
func (f *ruleFiles) under(above *ignore.Rules, folder store.Path) *ignore.Rules {
	if f == nil {
		return above
	}
	return above.Below(string(folder), f[0].text, f[1].text)
}

// gap is one of store's Gap reasons in an index. The numbers are stored; they never change.
type gap uint8

var gapReasons = [...]string{
	1: store.GapUnreadable, 2: store.GapSpecial, 3: store.GapTooLarge, 4: store.GapTooManyBytes,
	5: store.GapChangedWhileRead, 6: store.GapFailed,
}

func gapOf(reason string) gap {
	if reason == "" {
		return 0
	}
	if i := slices.Index(gapReasons[:], reason); i > 0 {
		return gap(i)
	}
	return 6
}

func (n *node) find(name string) (*entry, bool) {
	i, ok := slices.BinarySearchFunc(n.entries, name, func(e entry, name string) int {
		return strings.Compare(e.name, name)
	})
	if !ok {
		return nil, false
	}
	return &n.entries[i], true
}

// State returns what x says of p: absent when that is proved, uncaptured when x does not know.
func (x *Index) State(p store.Path) store.State {
	if x == nil {
		return store.UncapturedState
	}
	var rules *ignore.Rules
	at, pin, bad := x.root, x.pins, false
	for folder, rest := store.Path("."), string(p); ; {
		name, below, more := strings.Cut(rest, "/")
		rules, bad = at.rules.under(rules, folder), bad || at.rules.bad()
		pin = pin.at(name)
		e, ok := at.find(name)
		switch {
		case !ok && !x.mixed && at.proves(name, pin != nil, bad, rules.In(string(folder), at.marked)):
			return store.AbsentState
		case !ok:
			return store.UncapturedState
		case !more && e.state.Known():
			return e.state
		case more && e.node == nil && e.sig.Kind != 0:
			return store.AbsentState // below something that is no folder
		case !more || e.node == nil:
			return store.UncapturedState
		}
		folder, at, rest = join(folder, name), e.node, below
	}
}

// proves reports whether name, which is not in n, was absent when n was listed. The rules must
// not have left it out, and nobody knows whether it would have been a folder.
func (n *node) proves(name string, pinned, bad bool, rules *ignore.Folder) bool {
	return n.complete && (pinned || !bad && !rules.Ignored(name, true) && !rules.Ignored(name, false))
}

// Ignored reports whether a scan leaves p out, by the rules that were in force at the last one;
// dir says that p is a folder. What lies below an ignored folder is ignored. What is recorded
// is not. Where a rule file could not be read, all that is not in the index is left out.
func (x *Index) Ignored(p store.Path, dir bool) bool {
	if x == nil {
		return false
	}
	var rules *ignore.Rules
	at, pin, bad, out := x.root, x.pins, false, false
	for folder, rest := store.Path("."), string(p); ; {
		name, below, more := strings.Cut(rest, "/")
		var marked []string
		var e *entry
		if at != nil {
			rules = at.rules.under(rules, folder)
			bad = bad || at.rules.bad()
			marked = at.marked
			e, _ = at.find(name)
		}
		pin = pin.at(name)
		out = out || rules.In(string(folder), marked).Ignored(name, more || dir) || bad && e == nil
		if !more {
			return out && !pin.isHere()
		}
		at = nil
		if e != nil {
			at = e.node
		}
		folder, rest = join(folder, name), below
	}
}

// Complete reports whether the scan that x is of came to its end.
func (x *Index) Complete() bool { return x != nil && x.complete }

// RuleFiles are the files of ignore rules that were in force at the last scan, by path; usable is
// false for one that was there and could not be used.
func (x *Index) RuleFiles() iter.Seq2[store.Path, bool] {
	return func(yield func(path store.Path, usable bool) bool) {
		if x != nil {
			x.root.ruleFiles(".", yield)
		}
	}
}

func (n *node) ruleFiles(folder store.Path, yield func(store.Path, bool) bool) bool {
	if n.rules != nil {
		for i, f := range n.rules {
			if f != (ruleFile{}) && !yield(join(folder, ruleNames[i]), !f.bad) {
				return false
			}
		}
	}
	for i := range n.entries {
		e := &n.entries[i]
		if e.node != nil && !e.node.ruleFiles(join(folder, e.name), yield) {
			return false
		}
	}
	return true
}

// Len is the number of paths in x.
func (x *Index) Len() int {
	if x == nil {
		return 0
	}
	return x.n
}

// Blobs yields the contents that x refers to, some of them more than once: gc keeps them.
func (x *Index) Blobs() iter.Seq[blob.Hash] {
	return func(yield func(blob.Hash) bool) {
		if x != nil {
			x.root.blobs(yield)
		}
	}
}

func (n *node) blobs(yield func(blob.Hash) bool) bool {
	for i := range n.entries {
		e := &n.entries[i]
		if e.state.HasContent() && !yield(e.state.Blob) {
			return false
		}
		if e.node != nil && !e.node.blobs(yield) {
			return false
		}
	}
	return true
}

// count fills in n and files.
func (x *Index) count() {
	x.n, x.files = 0, 0
	x.root.count(x)
}

func (n *node) count(x *Index) {
	for i := range n.entries {
		e := &n.entries[i]
		if e.state.Known() && e.state.Kind != store.Absent {
			x.n++
			if e.node == nil {
				x.files++
			}
		}
		if e.node != nil {
			e.node.count(x)
		}
	}
}
