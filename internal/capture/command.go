package capture

import (
	"slices"
	"strings"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// command is a session of which a command runs, or has run, since the last scan.
type command struct {
	session store.Session
	call    *store.Call // nil for one that nobody announced
	known   map[store.Path]*store.Placed
}

// record adds what a scan found to the lines of those who may have done it.
func (s *scan) record(tx *store.WriteTx, changed []workspace.Change, gaps []store.Gap) error {
	if err := s.addGaps(tx, gaps); err != nil || len(changed) == 0 {
		return err
	}
	running, err := tx.Running()
	if err != nil {
		return err
	}
	changed = unannounced(changed, running)
	slices.SortFunc(changed, func(a, b workspace.Change) int { return strings.Compare(string(a.Path), string(b.Path)) })
	paths := make([]store.Path, len(changed))
	for i, ch := range changed {
		paths[i] = ch.Path
	}
	commands, err := s.commands(tx, running, paths)
	if err != nil {
		return err
	}
	if len(commands) == 0 {
		return s.foreign(tx, changed, paths)
	}
	others, err := s.others(tx, commands, paths)
	if err != nil {
		return err
	}
	for i := range commands {
		for _, ch := range changed {
			if others.recorded(commands[i].session.ID, ch) {
				continue
			}
			if err := commands[i].changed(tx, ch, len(commands) > 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scan) addGaps(tx *store.WriteTx, gaps []store.Gap) error {
	if len(gaps) == 0 || s.id == "" {
		return nil
	}
	n, err := tx.Writable(s.id)
	if err != nil {
		return err
	}
	for _, g := range gaps {
		if err := tx.AddGap(n, g); err != nil {
			return err
		}
	}
	return nil
}

// unannounced are the changes that no edit in progress has announced: those are that edit's, and
// its after-event or the end of its turn records them.
func unannounced(changed []workspace.Change, running []store.Running) []workspace.Change {
	var all []workspace.Change
next:
	for _, ch := range changed {
		for _, r := range running {
			for _, p := range r.Paths {
				if r.Kind == store.EditCall && (ch.Path == p || ch.Path.Below(p)) {
					continue next
				}
			}
		}
		all = append(all, ch)
	}
	return all
}

// commands are the sessions that may have changed something, each once.
func (s *scan) commands(tx *store.WriteTx, running []store.Running, paths []store.Path) ([]command, error) {
	var all []command
	add := func(id store.SessionID, call *store.Call) error {
		for _, c := range all {
			if c.session.ID == id {
				return nil
			}
		}
		session, err := tx.Session(id)
		if err != nil {
			return err
		}
		known, err := tx.Known(session.Head, paths)
		all = append(all, command{session: session, call: call, known: known})
		return err
	}
	for i := range running {
		if running[i].Kind == store.ExecCall {
			if err := add(running[i].Session, &running[i].Call); err != nil {
				return nil, err
			}
		}
	}
	if s.ended {
		return all, add(s.id, nil)
	}
	return all, nil
}

// foreign records what somebody else did to paths that the line of the session knows (I13).
func (s *scan) foreign(tx *store.WriteTx, changed []workspace.Change, paths []store.Path) error {
	if s.id == "" {
		return nil
	}
	session, err := tx.Session(s.id)
	if err != nil {
		return err
	}
	known, err := tx.Known(session.Head, paths)
	if err != nil {
		return err
	}
	for _, ch := range changed {
		if k := known[ch.Path]; k != nil && k.After != ch.State {
			if err := Looked(tx, s.id, k, Reading{Path: ch.Path, Reading: ch.Reading}); err != nil {
				return err
			}
		}
	}
	return nil
}

// others are what the lines of sessions say that have recorded something since a command began.
type others map[store.SessionID]map[store.Path]*store.Placed

func (s *scan) others(tx *store.WriteTx, commands []command, paths []store.Path) (others, error) {
	since := s.began
	for _, c := range commands {
		if c.call != nil && c.call.Started.Before(since) {
			since = c.call.Started
		}
	}
	sessions, err := tx.Sessions()
	if err != nil {
		return nil, err
	}
	all := others{}
	for _, o := range sessions {
		if o.Updated.Before(since) {
			continue
		}
		if all[o.ID], err = tx.Known(o.Head, paths); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// recorded reports whether another session than id has recorded the present state of a path as
// its own doing: an edit, or an operation. Then no command of id has to answer for it.
func (o others) recorded(id store.SessionID, ch workspace.Change) bool {
	for other, known := range o {
		if k := known[ch.Path]; other != id && k != nil && k.After == ch.State && k.Origin == store.Agent && k.Source != store.SourceShell {
			return true
		}
	}
	return false
}

// changed records that a command left a path in another state. Where commands of several
// sessions overlap, each may have done it.
func (c *command) changed(tx *store.WriteTx, ch workspace.Change, overlap bool) error {
	known := c.known[ch.Path]
	if known != nil && known.After == ch.State || known == nil && !ch.Before.Known() {
		return nil
	}
	n, err := tx.Writable(c.session.ID)
	if err != nil {
		return err
	}
	before := ch.Before
	switch {
	case known == nil && before.Kind == store.Uncaptured && ch.State.Kind == store.Absent:
		return nil // never known, and gone: nothing to say of it
	case known == nil && before.Kind == store.Uncaptured:
		if err := c.gap(tx, n, store.GapNoBefore, ch); err != nil {
			return err
		}
	case known != nil && (before.Kind == store.Uncaptured || !before.Known()):
		before = known.After
	case known != nil && known.After != before:
		// Somebody else had changed it before the command ran, and another session's scan saw that.
		row := store.Change{Path: ch.Path, Source: store.SourceExternal, Origin: store.External, Before: known.After, After: before}
		if err := tx.AppendChange(n, row); err != nil {
			return err
		}
		known = nil
	}
	if c.call == nil || c.call.Node != c.session.Open {
		if err := c.gap(tx, n, store.GapLateWrite, ch); err != nil {
			return err
		}
	}
	if overlap {
		if err := c.gap(tx, n, store.GapOverlap, ch); err != nil {
			return err
		}
	}
	if known != nil && known.Node.ID == n.ID && known.Source == store.SourceShell {
		return tx.SetAfter(n, ch.Path, ch.State)
	}
	return tx.AppendChange(n, store.Change{
		Path: ch.Path, Source: store.SourceShell, Origin: store.Agent, Before: before, After: ch.State,
	})
}

func (c *command) gap(tx *store.WriteTx, n store.Node, reason string, ch workspace.Change) error {
	g := store.Gap{Reason: reason, Path: ch.Path}
	if c.call != nil {
		g.Tool = c.call.Tool
	}
	return tx.AddGap(n, g)
}
