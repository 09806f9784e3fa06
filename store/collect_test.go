package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"reasonix/blob"
	"reasonix/store"
)

// wood is a random history, written through the store alone.
type wood struct {
	t     *testing.T
	rnd   *rand.Rand
	s     *store.Store
	now   time.Time
	ids   []store.SessionID
	turns []store.Turn
	of    map[store.NodeID]store.SessionID // of a turn
	ended map[store.NodeID]time.Time
	pins  map[store.NodeID]bool
	made  int // contents
}

func newWood(t *testing.T, seed uint64) *wood {
	w := &wood{
		t: t, rnd: rand.New(rand.NewPCG(seed, 5)), now: time.UnixMilli(1_700_000_000_000),
		of: map[store.NodeID]store.SessionID{}, ended: map[store.NodeID]time.Time{}, pins: map[store.NodeID]bool{},
	}
	var err error
	w.s, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{
		Create: &store.Workspace{Root: "/w"}, Now: func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// content is a state nobody has seen, or now and then one that another path has had too.
func (w *wood) content(tx *store.WriteTx) store.State {
	if w.rnd.IntN(6) == 0 {
		return store.AbsentState
	}
	w.made++
	n := w.made
	if w.rnd.IntN(5) == 0 {
		n = w.rnd.IntN(w.made) + 1
	}
	return w.bind(tx, fmt.Sprintf("content %d", n))
}

func (w *wood) bind(tx *store.WriteTx, text string) store.State {
	p, err := w.s.Blobs().PrepareBytes(w.t.Context(), []byte(text))
	if err == nil {
		err = tx.Bind(p)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return store.State{Kind: store.File, Mode: 0o644, Blob: p.Hash(), Size: p.Size()}
}

func (w *wood) pick() store.SessionID { return w.ids[w.rnd.IntN(len(w.ids))] }

func (w *wood) grow() {
	w.now = w.now.Add(time.Minute)
	update(w.t, w.s, func(tx *store.WriteTx) error {
		switch n := w.rnd.IntN(20); {
		case len(w.ids) == 0 || n == 0:
			return w.begin(tx)
		case n < 12:
			return w.turn(tx, w.pick())
		case n < 14:
			return w.fork(tx, w.pick())
		case n < 18:
			return w.rewind(tx, w.pick())
		default:
			return tx.SetCurrent(w.pick())
		}
	})
}

func (w *wood) begin(tx *store.WriteTx) error {
	s, err := tx.CreateSession(store.NewSession{})
	if err != nil {
		return err
	}
	w.ids = append(w.ids, s.ID)
	return tx.SetCurrent(s.ID)
}

// change appends rows to a node as a line that continues what it knows.
func (w *wood) change(tx *store.WriteTx, n store.Node, paths int) error {
	for range paths {
		p := store.Path(fmt.Sprintf("p%d", w.rnd.IntN(12)))
		known, err := tx.Newest(n.ID, p)
		if err != nil {
			return err
		}
		before := w.bind(tx, "first of "+string(p))
		if known != nil {
			before = known.After
		}
		after := w.content(tx)
		if before == after {
			continue
		}
		c := store.Change{Path: p, Source: store.SourceTool, Origin: store.Agent, Before: before, After: after}
		if err := tx.AppendChange(n, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *wood) turn(tx *store.WriteTx, id store.SessionID) error {
	t, err := tx.BeginTurn(id, "", "p")
	if err != nil {
		return err
	}
	if err := w.change(tx, t.Node, w.rnd.IntN(4)); err != nil {
		return err
	}
	w.turns, w.of[t.Node.ID], w.ended[t.Node.ID] = append(w.turns, t), id, w.now
	return tx.EndTurn(id, store.TurnDone)
}

func (w *wood) fork(tx *store.WriteTx, id store.SessionID) error {
	s, err := tx.Session(id)
	if err != nil || s.Turns == 0 {
		return err
	}
	t, err := tx.Turn(s.Head, w.rnd.IntN(s.Turns))
	if err != nil {
		return err
	}
	f, err := tx.CreateSession(store.NewSession{Head: t.Node.Parent, Parent: id, ForkTurn: t.Number(), ForkMsg: t.MsgIndex})
	w.ids = append(w.ids, f.ID)
	return err
}

// rewind moves a session back, with or without its conversation, as package rewind does.
func (w *wood) rewind(tx *store.WriteTx, id store.SessionID) error {
	s, err := tx.Session(id)
	if err != nil || s.Turns == 0 {
		return err
	}
	t, err := tx.Turn(s.Head, w.rnd.IntN(s.Turns))
	if err != nil {
		return err
	}
	moves, err := tx.Transition(s.Head, t.Node.Parent)
	if err != nil {
		return err
	}
	o := store.Operation{Session: id, Kind: store.OpRewind, Scope: store.Both, Turn: t.Number(), State: store.Applied, HeadFrom: s.Head, HeadTo: t.Node.Parent}
	var paths []store.OpPath
	for _, m := range moves {
		paths = append(paths, store.OpPath{Path: m.Path, From: m.Expect, To: m.Want})
	}
	if w.rnd.IntN(2) == 0 {
		n, err := tx.AddNode(s.Head, store.RestoreNode)
		if err != nil {
			return err
		}
		for _, m := range moves {
			if m.Expect == m.Want {
				continue
			}
			c := store.Change{Path: m.Path, Source: store.SourceRestore, Origin: store.Agent, Before: m.Expect, After: m.Want}
			if err := tx.AppendChange(n, c); err != nil {
				return err
			}
		}
		o.Scope, o.HeadTo = store.Code, n.ID
	}
	if _, err := tx.AddOperation(o, paths); err != nil {
		return err
	}
	return tx.SetHead(id, o.HeadTo)
}

// targets are the nodes whose state k promises, worked out the slow way.
func (w *wood) targets(tx *store.Tx, k store.Keep) (all []store.NodeID) {
	live, err := tx.Sessions()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range live {
		all = append(all, s.Head)
		for n := range s.Turns {
			t, err := tx.Turn(s.Head, n)
			if err != nil {
				w.t.Fatal(err)
			}
			id := t.Node.ID
			recent := !w.ended[id].Before(k.Since) && (k.Turns == 0 || n >= s.Turns-k.Turns)
			if recent || n == s.Turns-1 || w.pins[id] || k.Session != "" && w.of[id] != k.Session {
				all = append(all, t.Node.Parent)
			}
		}
	}
	ops, err := tx.Operations("")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range ops {
		if !o.Created.Before(k.Since) {
			all = append(all, o.HeadFrom, o.HeadTo)
		}
	}
	return all
}

// wants are the contents that any session may ask for on a way to a promised state.
func (w *wood) wants(k store.Keep) map[blob.Hash]string {
	wanted := map[blob.Hash]string{}
	view(w.t, w.s, func(tx *store.Tx) error {
		live, err := tx.Sessions()
		if err != nil {
			return err
		}
		for _, to := range w.targets(tx, k) {
			for _, s := range live {
				moves, err := tx.Transition(s.Head, to)
				if err != nil {
					return err
				}
				for _, m := range moves {
					if m.Want.HasContent() {
						wanted[m.Want.Blob] = fmt.Sprintf("%s from session %s to node %d", m.Path, s.ID, to)
					}
				}
			}
		}
		ops, err := tx.Operations("")
		if err != nil {
			return err
		}
		for _, o := range ops {
			paths, err := tx.OperationPaths(o.ID)
			if err != nil {
				return err
			}
			for _, p := range paths {
				for _, s := range []store.State{p.From, p.To} {
					if s.HasContent() && !o.Created.Before(k.Since) {
						wanted[s.Blob] = fmt.Sprintf("%s of operation %d", p.Path, o.ID)
					}
				}
			}
		}
		return nil
	})
	return wanted
}

func (w *wood) collect(k store.Keep) (sum store.Collected) {
	c := w.s.Collector(func(*store.Tx) (store.Keep, error) { return k, nil })
	for more := true; more; {
		var (
			done store.Collected
			err  error
		)
		if done, more, err = c.Step(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		sum.Add(done)
	}
	return sum
}

// rounds is how many seeds a test plays: $REASONIX_COLLECT_SEEDS, if that is set.
func rounds(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("REASONIX_COLLECT_SEEDS")); err == nil {
		return n
	}
	return otherwise
}

// TestCollectionKeepsWhatItPromises compares with every transition that anybody could ask for.
func TestCollectionKeepsWhatItPromises(t *testing.T) {
	dropped, forgotten := 0, 0
	for seed := range uint64(rounds(12)) {
		w := newWood(t, seed)
		for range 40 {
			w.grow()
		}
		for round := range 3 {
			for range 10 {
				w.grow()
			}
			k := store.Keep{Since: w.now.Add(-time.Duration(w.rnd.IntN(40)) * time.Minute)}
			switch w.rnd.IntN(4) {
			case 0:
				k.Since = time.Time{}
			case 1:
				k.Turns = 1 + w.rnd.IntN(4)
			case 2:
				k.Session = w.pick()
			}
			if len(w.turns) > 0 && w.rnd.IntN(2) == 0 {
				w.pin(w.turns[w.rnd.IntN(len(w.turns))])
			}
			wanted := w.wants(k)
			gone := w.gone(wanted)
			done := w.collect(k)
			dropped, forgotten = dropped+done.Contents, forgotten+done.Nodes
			for h, what := range wanted {
				if err := w.s.Blobs().Verify(t.Context(), h); err != nil && !gone[h] {
					t.Fatalf("seed %d, round %d, %+v: %s: %v", seed, round, k, what, err)
				}
			}
			if k.Since.IsZero() && k.Turns == 0 && done.Contents > 0 {
				t.Errorf("seed %d: everything was to be kept, and %d contents went", seed, done.Contents)
			}
			if again := w.collect(k); again.Contents+again.Nodes+again.Operations > 0 {
				t.Errorf("seed %d: a second collection found %+v", seed, again)
			}
			if problems, err := w.s.Verify(t.Context(), true, nil); err != nil || len(problems) > 0 {
				t.Fatalf("seed %d: %+v, %v", seed, problems, err)
			}
		}
	}
	if dropped < 100 || forgotten < 20 {
		t.Errorf("only %d contents and %d nodes were dropped: the test says nothing", dropped, forgotten)
	}
}

// gone are contents that an earlier collection was allowed to drop.
func (w *wood) gone(wanted map[blob.Hash]string) map[blob.Hash]bool {
	all := map[blob.Hash]bool{}
	for h := range wanted {
		if errors.Is(w.s.Blobs().Verify(w.t.Context(), h), blob.ErrExpired) {
			all[h] = true
		}
	}
	return all
}

func (w *wood) pin(t store.Turn) {
	err := w.s.Update(w.t.Context(), func(tx *store.WriteTx) error {
		s, err := tx.Session(w.of[t.Node.ID])
		if err != nil {
			return err
		}
		if now, err := tx.Turn(s.Head, t.Number()); err != nil || now.Node.ID != t.Node.ID {
			return err // it was rewound away
		}
		w.pins[t.Node.ID] = true
		return tx.AddPin(fmt.Sprintf("pin%d", t.Node.ID), s.ID, t.Number())
	})
	if err != nil && !errors.Is(err, store.ErrNoTurn) && !errors.Is(err, store.ErrTaken) {
		w.t.Fatal(err)
	}
}
