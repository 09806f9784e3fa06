package rewind

import (
	"errors"
	"fmt"
	"slices"

	"reasonix/store"
)

// aim is a request resolved against the history: from where to where, and what it asks of
// each path.
type aim struct {
	session  store.Session // whose line is left, and looked at
	moving   store.Session // whose head moves; of a switch, where to go, else session
	from     store.NodeID
	target   store.NodeID // 0 when the head stays, or goes no further than the tip
	stays    bool         // a restore node at the head takes the rows
	files    bool         // files may be written
	turn     int
	messages int64
	prompt   string
	of       store.Operation // of an undo or redo
	moves    []store.Move
	pins     map[store.Path]pin           // of an undo or redo, for the paths that the operation moved
	added    map[store.Path]bool          // pinned, and no row between the nodes is about it
	hold     map[store.Path]bool          // left alone by the operation, so left alone now
	called   map[store.Path]bool          // announced by a call that is still open
	overlap  map[store.Path]bool          // commands of several sessions may have written it since the target
	newest   map[store.Path]*store.Placed // of paths that only the other side, or no side, has rows of
}

// pin is what an undo wants of a path whatever the tree says, and what the operation had made of
// it: for a path that it left alone, the same.
type pin struct {
	want, made store.State
	left       bool
}

// resolve works out the aim of a request.
func resolve(tx *store.Tx, r Request) (*aim, error) {
	s, err := tx.Session(r.Session)
	if err != nil {
		return nil, err
	}
	a := &aim{session: s, moving: s, turn: -1, files: true}
	switch r.Kind {
	case store.OpRewind:
		err = a.rewind(tx, r)
	case store.OpFork:
		err = a.fork(tx, r)
	case store.OpSwitch:
		err = a.switchTo(tx)
	case store.OpUndo, store.OpRedo:
		err = a.takeBack(tx, r)
	case store.OpCompact, store.OpImport, store.OpGC, store.OpDelete:
		err = fmt.Errorf("%v is no move: %w", r.Kind, ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	a.from = a.session.Head
	if a.moves == nil && a.target != 0 {
		if a.moves, err = tx.Transition(a.from, a.target); err != nil {
			return nil, err
		}
		if a.overlap, err = tx.Overlapping(a.from, a.target); err != nil {
			return nil, err
		}
	}
	return a, a.complete(tx)
}

// complete adds what the decision about each path needs to know besides the moves.
func (a *aim) complete(tx *store.Tx) error {
	var ask []store.Path
	moved := map[store.Path]bool{}
	for _, m := range a.moves {
		moved[m.Path] = true
		if m.Last == 0 {
			ask = append(ask, m.Path)
		}
	}
	for p := range a.pins {
		if !moved[p] {
			ask = append(ask, p)
		}
	}
	var err error
	if a.newest, err = tx.Known(a.from, ask); err != nil {
		return err
	}
	calls, err := tx.Calls(a.session.ID)
	if err != nil {
		return err
	}
	a.called = map[store.Path]bool{}
	for _, c := range calls {
		for _, p := range c.Paths {
			a.called[p] = true
		}
	}
	a.added = map[store.Path]bool{}
	// A path that an undo pins and that no row between the nodes is about is asked of all the same.
	for p, pin := range a.pins {
		if moved[p] {
			continue
		}
		a.added[p] = true
		m := store.Move{Path: p, Want: pin.want}
		if row := a.newest[p]; row != nil {
			m.Expect, m.Want, m.Last = row.After, row.After, row.Origin
		}
		a.moves = append(a.moves, m)
	}
	slices.SortFunc(a.moves, func(x, y store.Move) int {
		switch {
		case x.Path < y.Path:
			return -1
		case x.Path > y.Path:
			return 1
		}
		return 0
	})
	return nil
}

// turnOf checks a turn number and reads the turn; tip is true for the number after the last.
func turnOf(tx *store.Tx, s store.Session, n int) (t store.Turn, tip bool, err error) {
	switch {
	case n == Latest && s.Turns == 0:
		return t, false, fmt.Errorf("session %s has no turns yet: %w", s.ID, store.ErrNoTurn)
	case n == Latest:
		n = s.Turns - 1
	case n == s.Turns:
		return t, true, nil
	case n < 0 || n > s.Turns:
		return t, false, fmt.Errorf("turn %d of session %s, which has %s: %w", n, s.ID, turnsText(s.Turns), store.ErrNoTurn)
	}
	t, err = tx.Turn(s.Head, n)
	return t, false, err
}

func turnsText(n int) string {
	switch n {
	case 0:
		return "none yet"
	case 1:
		return "only turn 0"
	}
	return fmt.Sprintf("turns 0 to %d", n-1)
}

func (a *aim) rewind(tx *store.Tx, r Request) error {
	if r.Scope < store.Code || r.Scope > store.Both {
		return fmt.Errorf("a rewind has a scope: %w", ErrInvalid)
	}
	t, tip, err := turnOf(tx, a.session, r.Turn)
	if err != nil {
		return err
	}
	a.files = r.Scope != store.Conversation
	a.messages = a.session.Messages
	if tip {
		a.turn, a.stays = a.session.Turns, true
		if a.files {
			a.moves, err = tx.TipMoves(a.session.Head)
		}
		return err
	}
	a.turn, a.target, a.stays = t.Number(), t.Node.Parent, r.Scope == store.Code
	if !a.stays {
		a.messages, a.prompt = t.MsgIndex, t.Prompt
	}
	return nil
}

func (a *aim) fork(tx *store.Tx, r Request) error {
	t, tip, err := turnOf(tx, a.session, r.Turn)
	if err != nil {
		return err
	}
	a.files = r.Code
	if tip {
		a.turn, a.messages, a.stays = a.session.Turns, a.session.Messages, true
		if r.Code {
			a.moves, err = tx.TipMoves(a.session.Head)
		}
		return err
	}
	a.turn, a.target, a.messages, a.prompt = t.Number(), t.Node.Parent, t.MsgIndex, t.Prompt
	return nil
}

func (a *aim) switchTo(tx *store.Tx) error {
	a.messages = a.moving.Messages
	cur, err := tx.Current()
	if errors.Is(err, store.ErrNoSession) {
		cur, err = a.moving, nil
	}
	a.session, a.target = cur, a.moving.Head
	return err
}

// takeBack resolves an undo or a redo: to the node, and for the operation's own paths to the
// states, that were there just before what it takes back.
func (a *aim) takeBack(tx *store.Tx, r Request) error {
	var err error
	if r.Kind == store.OpRedo {
		a.of, err = redoable(tx, a.session.ID)
	} else {
		a.of, err = undoable(tx, a.session.ID, r.Op)
	}
	if err != nil {
		return err
	}
	a.target = a.of.HeadFrom
	n, err := tx.Node(a.target)
	if err != nil {
		return err
	}
	a.messages = n.Messages()
	paths, err := tx.OperationPaths(a.of.ID)
	if err != nil {
		return err
	}
	a.pins, a.hold = map[store.Path]pin{}, map[store.Path]bool{}
	for _, p := range paths {
		if p.Left && p.From.Kind == store.Uncaptured {
			a.hold[p.Path] = true // what it was is not known
		} else {
			a.pins[p.Path] = pin{want: p.From, made: p.To, left: p.Left}
		}
	}
	return nil
}

// undoable finds the operation that an undo takes back: the one named, or the newest that stands.
func undoable(tx *store.Tx, session store.SessionID, id store.OpID) (store.Operation, error) {
	if id == 0 {
		o, err := tx.NewestStanding(session, store.OpRewind, store.OpRedo, store.OpCompact, store.OpDelete)
		if errors.Is(err, store.ErrNoOperation) {
			err = ErrNothingToUndo
		}
		return o, err
	}
	o, err := tx.Operation(id)
	switch {
	case err != nil:
		return o, err
	case o.Session != session:
		return o, fmt.Errorf("operation %d belongs to session %s: %w", id, o.Session, store.ErrNoOperation)
	case o.State != store.Applied || o.UndoneBy != 0 || !o.Kind.Undoable():
		return o, fmt.Errorf("operation %d, a %s, %s: %w", o.ID, o.Kind, whyNot(o), ErrNotUndoable)
	}
	return o, nil
}

func whyNot(o store.Operation) string {
	switch {
	case o.State == store.RolledBack:
		return "was rolled back"
	case o.State == store.Applying:
		return "is not finished"
	case o.UndoneBy != 0:
		return fmt.Sprintf("was taken back by operation %d", o.UndoneBy)
	}
	return "is of a kind that undo passes over"
}

// redoable finds the undo that a redo takes back. A later rewind, compaction or deletion that
// stands ends the chain; new turns do not.
func redoable(tx *store.Tx, session store.SessionID) (store.Operation, error) {
	o, err := tx.NewestStanding(session, store.OpUndo, store.OpRewind, store.OpCompact, store.OpDelete)
	if errors.Is(err, store.ErrNoOperation) || err == nil && o.Kind != store.OpUndo {
		err = ErrNothingToRedo
	}
	if err != nil {
		return o, err
	}
	of, err := tx.Operation(o.Of)
	if err == nil && of.Kind == store.OpDelete {
		err = ErrNothingToRedo // it is deleted again, or not, by its name
	}
	return o, err
}
