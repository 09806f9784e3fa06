package view

import (
	"slices"
	"strings"

	"reasonix/blob"
	"reasonix/store"
)

// The kinds of change. They are part of the documented interface.
const (
	Created  = "created"
	Modified = "modified"
	Deleted  = "deleted"
	Renamed  = "renamed" // deleted here and created there with the same bytes
	Mode     = "mode"    // only the permission bits differ
	Kind     = "kind"    // such as a file that became a link
)

// Change is what became of one path between two moments.
type Change struct {
	Name
	Change  string `json:"change"`
	From    string `json:"from,omitempty"` // the old name of what was renamed
	FromB64 string `json:"from_b64,omitempty"`
	// Source is where a turn's change came from: tool, shell, external, restore, carry or import;
	// "" between two moments that are no turn's ends.
	Source string `json:"source,omitempty"`
	// Lines added and removed; nil when they were not counted: binary, large, or not asked for.
	Added   *int `json:"added,omitempty"`
	Removed *int `json:"removed,omitempty"`

	Pair Pair `json:"-"`
}

// Pair is a path with its states on two sides.
type Pair struct {
	Path          store.Path
	From          store.Path // the old name when it was renamed; else ""
	Before, After store.State
	// Of the newest row, where the pair comes from rows.
	Source store.Source
	Origin store.Origin
}

// IsFolder reports whether the pair is about a folder on whichever sides there is something.
func (p Pair) IsFolder() bool {
	is := func(s store.State) bool { return s.Kind == store.Dir }
	return is(p.Before) && is(p.After) || is(p.Before) && p.After.Kind == store.Absent || p.Before.Kind == store.Absent && is(p.After)
}

func kindOf(before, after store.State) string {
	switch {
	case before.Kind == store.Absent:
		return Created
	case after.Kind == store.Absent:
		return Deleted
	case before.Kind == store.Uncaptured || after.Kind == store.Uncaptured:
		return Modified
	case before.Kind != after.Kind:
		return Kind
	case before.Blob == after.Blob && before.Mode != after.Mode:
		return Mode
	}
	return Modified
}

func changeOf(p Pair) Change {
	k := p.After.Kind
	if k == store.Absent {
		k = p.Before.Kind
	}
	c := Change{Name: NameOf(p.Path, k), Change: kindOf(p.Before, p.After), Pair: p}
	if p.Source != 0 {
		c.Source = p.Source.String()
	}
	if p.From != "" {
		from := NameOf(p.From, k)
		c.Change, c.From, c.FromB64 = Renamed, from.Path, from.B64
	}
	return c
}

// own are the paths that a turn itself changed, by path: what others did meanwhile and what
// moves wrote afterwards left out.
func own(rows []store.Placed) []Pair {
	return pairs(rows, func(r store.Placed) bool {
		return r.Source == store.SourceTool || r.Source == store.SourceShell || r.Source == store.SourceImport
	})
}

// notOwn are the other paths of a turn, by source.
func notOwn(rows []store.Placed) []Pair {
	var all []Pair
	for _, source := range []store.Source{store.SourceExternal, store.SourceRestore, store.SourceCarry} {
		all = append(all, pairs(rows, func(r store.Placed) bool { return r.Source == source })...)
	}
	return all
}

func pairs(rows []store.Placed, want func(store.Placed) bool) []Pair {
	var all []Pair
	at := map[store.Path]int{}
	for _, r := range rows {
		if !want(r) {
			continue
		}
		i, ok := at[r.Path]
		if !ok {
			i = len(all)
			at[r.Path] = i
			all = append(all, Pair{Path: r.Path, Before: r.Before})
		}
		all[i].After, all[i].Source, all[i].Origin = r.After, r.Source, r.Origin
	}
	all = slices.DeleteFunc(all, func(p Pair) bool { return p.Before == p.After })
	sortPairs(all)
	return all
}

func sortPairs(all []Pair) {
	slices.SortFunc(all, func(a, b Pair) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// joinRenames makes one pair of a path that went and one that came with the same bytes. Pairs
// are sorted by path; so is the result.
func joinRenames(all []Pair) []Pair {
	type content struct {
		kind store.Kind
		blob blob.Hash
	}
	gone := map[content][]int{}
	for i, p := range all {
		if p.After.Kind == store.Absent && p.Before.HasContent() && p.Before.Size > 0 {
			c := content{p.Before.Kind, p.Before.Blob}
			gone[c] = append(gone[c], i)
		}
	}
	if len(gone) == 0 {
		return all
	}
	joined := make([]bool, len(all))
	var out []Pair
	for i, p := range all {
		c := content{p.After.Kind, p.After.Blob}
		if p.Before.Kind == store.Absent && p.After.HasContent() && len(gone[c]) > 0 {
			from := gone[c][0]
			gone[c] = gone[c][1:]
			joined[from] = true
			all[i].From, all[i].Before = all[from].Path, all[from].Before
		}
	}
	for i, p := range all {
		if !joined[i] {
			out = append(out, p)
		}
	}
	return out
}
