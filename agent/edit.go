package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// maxEntries bounds what one event may name by naming a folder.
var maxEntries = 20000 // a variable for the tests

// Edit is a tool call that changes files it can name beforehand.
type Edit struct {
	Call  string   // the agent's own id of the call; may be empty
	Tool  string   // label
	Cwd   string   // absolute; "" means the workspace root
	Paths []string // as the agent names them: absolute or relative to Cwd, any bytes
	// Contents that we cannot read ourselves, by the same names; nil bytes mean absent.
	Given map[string][]byte
}

// Captured says what an event recorded.
type Captured struct {
	Turn  int
	Paths []store.Path
	Gaps  []store.Gap
}

// BeforeEdit records the state of every path that a tool is about to change. When it returns
// nil, each before-state is committed, or its absence is as a gap: only then may the tool
// write (I1). Without an open turn it opens one. The first state of a path in a node stays (I2).
func (r *Recorder) BeforeEdit(ctx context.Context, id store.SessionID, e Edit) (Captured, error) {
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return Captured{}, err
	}
	defer unlock()
	found, gaps, err := r.involved(ctx, e)
	if err != nil {
		return Captured{}, err
	}
	paths := slices.Sorted(maps.Keys(found))
	given, err := r.given(ctx, e)
	if err != nil {
		return Captured{}, err
	}
	var c Captured
	err = r.capture.Record(ctx, paths, nil, func(tx *store.WriteTx, read *capture.Readings) error {
		c = Captured{Gaps: slices.Clone(gaps)}
		s, err := openTurn(tx, id)
		if err != nil {
			return err
		}
		n, err := tx.WritableOf(s)
		if err != nil {
			return err
		}
		c.Turn = n.Turn
		var taken []store.Path
		for _, one := range read.All {
			if one.Blocker != "" { // a write there would follow a link that leads nowhere yet
				c.Gaps = append(c.Gaps, store.Gap{Reason: store.GapSymlinkedParent, Path: one.Path, Tool: e.Tool, Detail: string(one.Blocker)})
				continue
			}
			if g, ok := given[one.Path]; ok && one.State.Kind == store.Uncaptured {
				one = g.over(one)
			}
			if err := before(tx, id, n, read, one); err != nil {
				return err
			}
			if g, ok := one.Gap(e.Tool); ok {
				c.Gaps = append(c.Gaps, g)
			} else {
				c.Paths = append(c.Paths, one.Path)
			}
			if found[one.Path] != partly {
				taken = append(taken, one.Path)
			}
		}
		for _, g := range c.Gaps {
			if err := tx.AddGap(n, g); err != nil {
				return err
			}
		}
		if err := tx.AddCall(id, store.Call{Key: e.Call, Kind: store.EditCall, Tool: e.Tool, Node: n.ID, Paths: taken}); err != nil {
			return err
		}
		return seen(tx, s)
	})
	return c, err
}

// givenState is what the caller knows of a path that we may not be able to read.
type givenState struct{ content *blob.Prepared } // nil: absent

// over is the reading of a path whose content was given. Its mode is the real one where that can
// be seen; a file that we may not read is nobody's else by default.
func (g givenState) over(r capture.Reading) capture.Reading {
	r.State, r.Content, r.Reason, r.Detail = store.AbsentState, g.content, "", ""
	if g.content == nil {
		return r
	}
	r.State = store.State{Kind: store.File, Mode: 0o600, Blob: g.content.Hash(), Size: g.content.Size()}
	if r.Sig.Kind == store.File {
		r.State.Mode = r.Sig.Mode & 0o777
	}
	return r
}

func (r *Recorder) given(ctx context.Context, e Edit) (map[store.Path]givenState, error) {
	all := map[store.Path]givenState{}
	for name, content := range e.Given {
		p, err := r.resolve(e, name)
		if err != nil {
			continue // it leaves its gap as one of Paths
		}
		var g givenState
		if content != nil {
			if g.content, err = r.capture.Store.Blobs().PrepareBytes(ctx, content); err != nil {
				return nil, err
			}
		}
		all[p] = g
	}
	return all, nil
}

// before adds what a path's row needs: where it changed since the line last knew it, a row for
// that, which is somebody else's unless another call of the session has announced the path; and
// the tool's own row.
func before(tx *store.WriteTx, id store.SessionID, n store.Node, read *capture.Readings, one capture.Reading) error {
	known, err := tx.Newest(n.ID, one.Path)
	if err != nil {
		return err
	}
	if err := read.Current(known, one); err != nil {
		return err
	}
	if err := capture.Bind(tx, one); err != nil {
		return err
	}
	if known != nil && known.After != one.State {
		calls, err := tx.Calls(id)
		if err != nil {
			return err
		}
		if announcing(calls, one.Path) != nil {
			return capture.Touched(tx, id, known, one, "")
		}
		c := store.Change{Path: one.Path, Source: store.SourceExternal, Origin: store.External, Before: known.After, After: one.State}
		if err := tx.AppendChange(n, c); err != nil {
			return err
		}
	} else if known != nil && known.Node.ID == n.ID && known.Source == store.SourceTool {
		return nil // touched before in this node
	}
	return tx.AppendChange(n, store.Change{
		Path: one.Path, Source: store.SourceTool, Origin: store.Agent, Before: one.State, After: one.State,
	})
}

// AfterEdit records the state in which a tool left its paths: those that the event names and
// those that the call announced. The content is stored, so that undo, diff and switch reach it.
func (r *Recorder) AfterEdit(ctx context.Context, id store.SessionID, e Edit) (Captured, error) {
	unlock, err := r.capture.LockShared(ctx)
	if err != nil {
		return Captured{}, err
	}
	defer unlock()
	found, gaps, err := r.named(ctx, e)
	if err != nil {
		return Captured{}, err
	}
	named := slices.Sorted(maps.Keys(found))
	var (
		calls []store.Call
		paths []store.Path
		known map[store.Path]*store.Placed
	)
	err = r.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		open, err := tx.Calls(id)
		if err != nil {
			return err
		}
		calls, paths = ended(open, e, named), slices.Clone(named)
		for _, c := range calls {
			paths = append(paths, c.Paths...)
		}
		slices.Sort(paths)
		paths = slices.Compact(paths)
		known, err = tx.Known(s.Head, paths)
		return err
	})
	if err != nil {
		return Captured{}, err
	}
	var c Captured
	err = r.capture.Record(ctx, paths, known, func(tx *store.WriteTx, read *capture.Readings) error {
		c = Captured{Gaps: slices.Clone(gaps)}
		late := false
		for _, one := range read.All {
			if one.Reason == store.GapDeadline {
				late = true
				continue
			}
			if err := after(tx, id, read, one, e, calls, &c); err != nil {
				return err
			}
		}
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		for _, call := range calls {
			if late {
				break // what was not read in time is read when the turn closes
			}
			if err := tx.EndCall(call); err != nil {
				return err
			}
		}
		for _, g := range c.Gaps {
			if err := addGap(tx, id, g); err != nil {
				return err
			}
		}
		head, err := tx.Node(s.Head)
		c.Turn = head.Turn
		if err != nil {
			return err
		}
		return seen(tx, s)
	})
	return c, err
}

// after records one path's state after a call.
func after(tx *store.WriteTx, id store.SessionID, read *capture.Readings, one capture.Reading, e Edit, calls []store.Call, c *Captured) error {
	s, err := tx.Session(id)
	if err != nil {
		return err
	}
	known, err := tx.Newest(s.Head, one.Path)
	if err != nil || known != nil && known.After == one.State {
		return err
	}
	if err := read.Current(known, one); err != nil {
		return err
	}
	call := announcing(calls, one.Path)
	switch {
	case known == nil && call != nil:
		// The call named a folder; this came to be in it meanwhile.
		known = &store.Placed{Change: store.Change{Path: one.Path, After: store.AbsentState}}
	case known == nil && one.State.Kind == store.Absent:
		// Nobody knows whether anything was there before.
		c.Gaps = append(c.Gaps, store.Gap{Reason: store.GapNoBefore, Path: one.Path, Tool: e.Tool})
		return nil
	case known == nil:
		known = &store.Placed{Change: store.Change{Path: one.Path, After: store.UncapturedState}}
		c.Gaps = append(c.Gaps, store.Gap{Reason: store.GapNoBefore, Path: one.Path, Tool: e.Tool})
	}
	if call == nil && s.Open == 0 || call != nil && call.Node != s.Open {
		c.Gaps = append(c.Gaps, store.Gap{Reason: store.GapLateWrite, Path: one.Path, Tool: e.Tool})
	}
	if g, ok := one.Gap(e.Tool); ok {
		c.Gaps = append(c.Gaps, g)
	} else {
		c.Paths = append(c.Paths, one.Path)
	}
	return capture.Touched(tx, id, known, one, e.Tool)
}

// announcing is the call that named a path or a folder above it.
func announcing(calls []store.Call, p store.Path) *store.Call {
	for i, c := range calls {
		for _, q := range c.Paths {
			if p == q || p.Below(q) {
				return &calls[i]
			}
		}
	}
	return nil
}

// ended are the open calls that an after-event ends: the one with its key, else those that
// announced one of its paths.
func ended(open []store.Call, e Edit, named []store.Path) []store.Call {
	var all []store.Call
	for _, c := range open {
		switch {
		case e.Call != "" && c.Key == e.Call:
			return []store.Call{c}
		case c.Key != "" && e.Call != "":
		case c.Kind == store.EditCall && slices.ContainsFunc(named, func(p store.Path) bool { return slices.Contains(c.Paths, p) }):
			all = append(all, c)
		}
	}
	return all
}

// named are the paths that an event names, with what lies in folders among them.
func (r *Recorder) named(ctx context.Context, e Edit) (map[store.Path]store.Kind, []store.Gap, error) {
	var gaps []store.Gap
	found := map[store.Path]store.Kind{}
	for _, name := range e.Paths {
		p, err := r.resolve(e, name)
		if err != nil {
			gaps = append(gaps, store.Gap{Reason: reason(err), Path: store.Path(name), Tool: e.Tool})
			continue
		}
		kind, _, err := r.capture.Kind(ctx, p)
		if errors.Is(err, workspace.ErrProtected) { // the store, under another name
			gaps = append(gaps, store.Gap{Reason: store.GapProtected, Path: p, Tool: e.Tool})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		found[p] = kind
		if kind == store.Dir {
			if g := r.below(p, found, e); g != nil {
				gaps = append(gaps, *g)
			}
		}
	}
	return found, gaps, nil
}

// involved are the paths that an edit of the named ones may change: besides those, what their
// links lead to, and folders above them that are not there yet.
func (r *Recorder) involved(ctx context.Context, e Edit) (map[store.Path]store.Kind, []store.Gap, error) {
	found, gaps, err := r.named(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	for p, kind := range maps.Clone(found) {
		if target, ok := r.capture.Root.LinkTarget(p); ok {
			found[target] = 0
			p, kind = target, store.Absent // it need not be there
		}
		for up := p.Parent(); kind == store.Absent && up != ""; up = up.Parent() {
			if _, seen := found[up]; seen {
				break
			}
			upKind, blocked, err := r.capture.Kind(ctx, up)
			if err != nil {
				return nil, nil, err
			}
			if blocked || upKind != store.Absent {
				break
			}
			found[up] = store.Absent
		}
	}
	return found, gaps, nil
}

func (r *Recorder) resolve(e Edit, name string) (store.Path, error) {
	cwd := e.Cwd
	if cwd == "" {
		cwd = r.capture.Root.Path()
	}
	return r.capture.Root.Resolve(cwd, name)
}

// partly marks a folder of which not all that it holds is known. What turns up in it later may
// have been there before.
const partly = store.Uncaptured

// below adds what lies in a folder.
func (r *Recorder) below(p store.Path, found map[store.Path]store.Kind, e Edit) *store.Gap {
	entries, err := r.capture.Root.List(p)
	if err != nil {
		found[p] = partly
		return &store.Gap{Reason: store.GapUnreadable, Path: p, Tool: e.Tool, Detail: "the folder cannot be listed"}
	}
	for _, en := range entries {
		if en.Protected {
			continue
		}
		if len(found) >= maxEntries {
			found[p] = partly
			return &store.Gap{Reason: store.GapTooMany, Path: p, Tool: e.Tool, Detail: fmt.Sprintf("more than %d entries", maxEntries)}
		}
		found[en.Path] = en.Kind
		if en.Kind == store.Dir {
			if g := r.below(en.Path, found, e); g != nil {
				found[p] = partly
				return g
			}
		}
	}
	return nil
}

// reason is the gap that a name leaves which is no path of the workspace.
func reason(err error) string {
	switch {
	case errors.Is(err, workspace.ErrOutside):
		return store.GapOutside
	case errors.Is(err, workspace.ErrProtected):
		return store.GapProtected
	}
	return store.GapInvalidPath
}
