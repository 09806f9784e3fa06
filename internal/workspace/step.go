package workspace

import (
	"fmt"
	"slices"

	"reasonix/store"
)

// folderMode is that of a folder while it is filled.
const folderMode = 0o700

// stageMode is that of a staged file until it is renamed.
const stageMode = 0o600

// Step is one path's way from one state to another. Neither may be uncaptured (I6). A folder
// whose mode keeps its owner out is opened for the steps below it when it is a step itself,
// also one that changes nothing (From == To), and closed again.
type Step struct {
	Path     store.Path
	From, To store.State
	// Sig is the signature of the reading that gave From. Zero, or a racy one, means that the
	// content is hashed again before it is replaced.
	Sig Sig
}

// Intermediate reports whether st is a state that Apply itself may leave the path in when it is
// interrupted, beside From and To, on the way there or on the way back:
//
//   - absent, when From and To are of different kinds and neither is absent: what stands in
//     the way is removed before the new thing is made;
//   - a folder of mode 0700, when one of them is a folder and the other is not: a folder gets
//     its own mode when it is filled;
//   - a folder with its mode of From or To and 0700: what a folder holds is changed before its
//     own mode is;
//   - a file with the content of From or To and mode 0600: a power cut may keep the rename of a
//     staged file and lose the mode that it got before, which is synced with the names.
//
// Otherwise files and symlinks are replaced in one go.
func (s Step) Intermediate(st store.State) bool {
	from, to := s.From.Kind, s.To.Kind
	switch st.Kind {
	case store.File:
		return st == staged(s.From) || st == staged(s.To)
	case store.Absent:
		return from != to && from != store.Absent && to != store.Absent
	case store.Dir:
		return (from == store.Dir) != (to == store.Dir) && st.Mode == folderMode ||
			from == store.Dir && st.Mode == s.From.Mode|folderMode ||
			to == store.Dir && st.Mode == s.To.Mode|folderMode
	case store.Symlink, store.Uncaptured:
	}
	return false
}

// staged is st with the mode that files are staged with.
func staged(st store.State) store.State {
	st.Mode = stageMode
	return st
}

// modeOnly reports whether the content stays and the permission bits change.
func (s Step) modeOnly() bool {
	return s.From.Kind == store.File && s.To.Kind == store.File && s.From.Blob == s.To.Blob
}

// item is a step and what has been done about it.
type item struct {
	Step
	name string     // of its staged file
	home store.Path // folder of the staged file
	held held
	// made is the signature of the staged file, to know it again.
	made Sig
	// inWay says that it is removed before anything is made: a kind changes between folder and
	// no folder, here or in a folder above.
	inWay bool
	// parentGoes says that a folder above is removed or makes room: it must be empty by then.
	parentGoes bool
	// parentOf says that something below changes.
	parentOf bool
}

// held is what lies under the staged name of an item.
type held uint8

const (
	heldNothing held = iota
	heldNew          // the new content, or a part of it
	heldOld          // what was replaced or removed: examined, it is the From state
	heldUnknown      // what came out and was not examined yet: it may be somebody's only copy
)

// closed reports whether it is a folder whose mode keeps its owner from what is to be done in it.
func (it *item) closed() bool {
	return it.From.Kind == store.Dir && it.parentOf && it.From.Mode&folderMode != folderMode
}

// newItems checks the steps and puts them in the order of comparePaths. Steps that change
// nothing are left out, but for folders that have to be opened for others.
func (r *Root) newItems(id string, steps []Step) ([]*item, error) {
	items := make([]*item, 0, len(steps))
	for _, s := range steps {
		if err := r.checkStep(s); err != nil {
			return nil, err
		}
		items = append(items, &item{Step: s, name: stageName(id, s.Path)})
	}
	slices.SortFunc(items, func(a, b *item) int { return comparePaths(a.Path, b.Path) })
	if err := relate(items); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(items, func(it *item) bool { return it.From == it.To && !it.closed() }), nil
}

func (r *Root) checkStep(s Step) error {
	if err := r.check(s.Path); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	for _, st := range [...]store.State{s.From, s.To} {
		switch st.Kind {
		case store.Absent, store.File, store.Symlink, store.Dir:
		case store.Uncaptured:
			return fmt.Errorf("step %q: %w: what was not captured is left alone", s.Path, ErrInvalid)
		default:
			return fmt.Errorf("step %q: %w: state is not known", s.Path, ErrInvalid)
		}
		if st.Mode > 0o777 {
			return fmt.Errorf("step %q: %w: mode %o has more than permission bits", s.Path, ErrInvalid, st.Mode)
		}
	}
	return nil
}

// relate looks at the sorted items as a tree: it refuses what cannot be, and marks what has to
// make room first.
func relate(items []*item) error {
	var above []*item // the items that the present one lies below
	for i, it := range items {
		if i > 0 && it.Path == items[i-1].Path {
			return fmt.Errorf("step %q: %w", it.Path, ErrTwice)
		}
		for len(above) > 0 && !isBelow(it.Path, above[len(above)-1].Path) {
			above = above[:len(above)-1]
		}
		fromDir, toDir := it.From.Kind == store.Dir, it.To.Kind == store.Dir
		it.inWay = fromDir != toDir && it.From.Kind != store.Absent && it.To.Kind != store.Absent
		for _, parent := range above {
			parent.parentOf = parent.parentOf || it.From != it.To
			it.parentGoes = it.parentGoes || parent.To.Kind != store.Dir
			if it.parentGoes && it.To.Kind != store.Absent {
				return fmt.Errorf("step %q: %w: %q is to be no folder", it.Path, ErrInvalid, parent.Path)
			}
			if parent.inWay && it.To.Kind == store.Absent {
				it.inWay = true
			}
		}
		above = append(above, it)
	}
	return nil
}
