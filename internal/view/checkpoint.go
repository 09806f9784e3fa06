package view

import (
	"context"
	"slices"

	"reasonix/store"
)

// Checkpoint is the state at the start of a turn, with what the turn then did.
type Checkpoint struct {
	Turn     int      `json:"turn"`
	TimeMS   int64    `json:"time_ms"`
	Prompt   string   `json:"prompt"`
	Status   string   `json:"status"`    // open, done, interrupted or failed
	MsgIndex int64    `json:"msg_index"` // messages of the full line before the turn
	Messages int64    `json:"messages"`  // the turn's own
	Files    []Change `json:"files"`     // the turn's own changes, by path
	// Others are changes that lie in the turn, or between it and the next, and are not its own:
	// external ones are somebody else's, restore and carry come from moves of the head.
	Others          []Sourced `json:"others"`
	Gaps            []Gap     `json:"gaps"`
	Expired         bool      `json:"expired"`          // contents that a code rewind to here needs were dropped
	CanCode         bool      `json:"can_code"`         // a code rewind to here has something to take back
	CanConversation bool      `json:"can_conversation"` // a conversation rewind has
}

// Checkpoints is a page of a session's checkpoints, newest first.
type Checkpoints struct {
	Session     store.SessionID `json:"session"`
	Checkpoints []Checkpoint    `json:"checkpoints"`
	Turns       int             `json:"turns"` // of the whole session
	More        bool            `json:"more"`  // older ones than the page's are there
}

// Page says which checkpoints to read. Only what lies on the page is read.
type Page struct {
	Before int  // turns with a number below this; negative means from the newest on
	Limit  int  // at most so many; 0 means all
	Count  bool // also count lines, within the limits of a page
}

// batch is how many turns are read in one query.
const batch = 200

// Checkpoints reads a page. Errors: store.ErrNoSession.
func (v *Viewer) Checkpoints(ctx context.Context, id store.SessionID, page Page) (Checkpoints, error) {
	out := Checkpoints{Session: id, Checkpoints: []Checkpoint{}}
	err := v.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		out.Turns = s.Turns
		before := s.Turns
		if page.Before >= 0 {
			before = min(page.Before, before)
		}
		low := 0
		if page.Limit > 0 {
			low = max(before-page.Limit, 0)
		}
		out.More = low > 0
		for hi := before; hi > low; hi -= batch {
			part, err := v.between(tx, s, max(hi-batch, low), hi)
			if err != nil {
				return err
			}
			out.Checkpoints = append(out.Checkpoints, part...)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && page.Count {
		err = v.countAll(ctx, out.Checkpoints)
	}
	return out, err
}

// between reads the turns from lo up to, not including, hi, newest first.
func (v *Viewer) between(tx *store.Tx, s store.Session, lo, hi int) ([]Checkpoint, error) {
	turns, err := tx.Turns(s.Head, hi, hi-lo)
	if err != nil {
		return nil, err
	}
	rows, err := tx.ChangesBetween(s.Head, lo, hi-1)
	if err != nil {
		return nil, err
	}
	gaps, err := tx.GapsBetween(s.Head, lo, hi-1)
	if err != nil {
		return nil, err
	}
	last, err := tx.LastAgentTurn(s.Head)
	if err != nil {
		return nil, err
	}
	expired, err := tx.ExpiredTurns(s.Head, lo, hi-1)
	if err != nil {
		return nil, err
	}
	rowsOf, gapsOf := map[int][]store.Placed{}, map[int][]Gap{}
	for _, r := range rows {
		rowsOf[r.Node.Turn] = append(rowsOf[r.Node.Turn], r)
	}
	for _, g := range gaps {
		gapsOf[g.Turn] = append(gapsOf[g.Turn], gapOf(g))
	}
	all := make([]Checkpoint, 0, len(turns))
	for _, t := range turns {
		c := checkpointOf(t, joinRenames(own(rowsOf[t.Number()])), gapsOf[t.Number()])
		for _, p := range notOwn(rowsOf[t.Number()]) {
			c.Others = append(c.Others, sourced(changeOf(p)))
		}
		c.Expired = expired[t.Number()]
		c.CanCode = t.Number() <= last && !c.Expired
		c.CanConversation = t.MsgIndex < s.Messages || t.Number() < s.Turns
		all = append(all, c)
	}
	return all, nil
}

func checkpointOf(t store.Turn, files []Pair, gaps []Gap) Checkpoint {
	c := Checkpoint{
		Turn: t.Number(), TimeMS: t.StartedAt.UnixMilli(), Prompt: t.Prompt, Status: t.Status.String(),
		MsgIndex: t.MsgIndex, Messages: t.Messages, Files: []Change{}, Others: []Sourced{}, Gaps: gaps,
	}
	if gaps == nil {
		c.Gaps = []Gap{}
	}
	for _, p := range files {
		c.Files = append(c.Files, changeOf(p))
	}
	return c
}

// Turn is one checkpoint in full.
type Turn struct {
	Session store.SessionID `json:"session"`
	Checkpoint
	EndedMS *int64    `json:"ended_ms"` // nil while open
	Files   []Sourced `json:"files"`    // in place of the checkpoint's, which say less
}

// Sourced is a change with whose it is and what the path was on either side.
type Sourced struct {
	Change
	Origin string `json:"origin"` // agent or external
	Before State  `json:"before"`
	After  State  `json:"after"`
}

func sourced(c Change) Sourced {
	return Sourced{
		Change: c, Origin: c.Pair.Origin.String(),
		Before: stateOf(c.Pair.Before), After: stateOf(c.Pair.After),
	}
}

// Turn reads one turn, with the lines counted. Errors: store.ErrNoSession, store.ErrNoTurn.
func (v *Viewer) Turn(ctx context.Context, id store.SessionID, n int) (Turn, error) {
	out := Turn{Session: id, Files: []Sourced{}}
	err := v.capture.Store.View(ctx, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		t, err := tx.Turn(s.Head, n)
		if err != nil {
			return err
		}
		part, err := v.between(tx, s, n, n+1)
		if err != nil {
			return err
		}
		out.Checkpoint = part[0]
		if !t.EndedAt.IsZero() {
			ended := t.EndedAt.UnixMilli()
			out.EndedMS = &ended
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	one := []Checkpoint{out.Checkpoint}
	err = v.countAll(ctx, one)
	out.Checkpoint = one[0]
	for _, c := range one[0].Files {
		out.Files = append(out.Files, sourced(c))
	}
	return out, err
}

// pageBytes bounds what is read to count the lines of one page, in bytes; fileBytes, of one
// file. What is over it is not counted.
const (
	pageBytes = 32 << 20
	fileBytes = 1 << 20
)

// countAll fills in the lines that the files of checkpoints gained and lost.
func (v *Viewer) countAll(ctx context.Context, all []Checkpoint) error {
	left := int64(pageBytes)
	for i := range all {
		for j := range all[i].Files {
			c := &all[i].Files[j]
			size := c.Pair.Before.Size + c.Pair.After.Size
			if !c.Pair.Before.HasContent() && !c.Pair.After.HasContent() {
				continue
			}
			if size > left || max(c.Pair.Before.Size, c.Pair.After.Size) > fileBytes {
				continue
			}
			left -= size
			f, err := v.File(ctx, c.Pair)
			if err != nil {
				return err
			}
			if !f.Binary && !f.Large && f.Unreadable == "" {
				c.Added, c.Removed = &f.Added, &f.Removed
			}
		}
	}
	return nil
}

// Oldest turns a page round, for those who show the oldest first.
func (c Checkpoints) Oldest() []Checkpoint {
	all := slices.Clone(c.Checkpoints)
	slices.Reverse(all)
	return all
}
