// Package retain decides what a store keeps, and lets go of the rest: by age, by number of turns
// and by size, by itself or when a person asks. What "keep" means for the states of files is
// store.Keep's business.
package retain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"reasonix/blob"
	"reasonix/internal/capture"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// The limits where a Policy does not say otherwise.
const (
	DefaultAge  = 30 * 24 * time.Hour
	DefaultSize = 5 << 30
)

// Policy says what is kept. Zero limits mean the defaults, negative ones none.
type Policy struct {
	Age     time.Duration   // of a turn since it ended
	Turns   int             // newest turns of each session; 0 means all
	Size    int64           // bytes of the store: older turns go until it fits
	Session store.SessionID // only turns that it recorded go; "" means those of all sessions
	Repack  bool            // what stays is stored anew in less space (store.Store.Repack); Plan does not tell what that saves
}

// Outcome is what a collection did, or would do.
type Outcome struct {
	store.Collected
	Repacked blob.Repacked
	Before   int64     // bytes of the store before it
	After    int64     // and after it; of a plan, an estimate
	Since    time.Time // turns that ended before it were not kept; zero when all were
	// Over says that the store is larger than the policy allows although nothing more may go.
	Over bool
}

// Collector collects in one workspace. Recorders and moves may be at work meanwhile, also in other
// processes: each step is a short transaction of its own.
type Collector struct {
	Capture *capture.Capturer
	// Progress, if any, is told after each step what is done and what was planned, in contents.
	Progress func(done, total int64)
}

// Plan says what a policy lets go, and changes nothing.
func (c *Collector) Plan(ctx context.Context, p Policy) (Outcome, error) {
	_, o, err := c.plan(ctx, p)
	return o, err
}

// Run collects until nothing is left to go. A kill, or an error, leaves the steps before it done and
// the store whole; the next Run goes on. The space is given back to the system.
func (c *Collector) Run(ctx context.Context, p Policy) (Outcome, error) {
	k, o, err := c.plan(ctx, p)
	if err != nil {
		return o, err
	}
	total := int64(o.Contents)
	turns := o.Turns
	o.Collected = store.Collected{}
	err = c.steps(ctx, k, func(done store.Collected) {
		o.Add(done)
		if c.Progress != nil {
			c.Progress(min(int64(o.Contents), total), total)
		}
	})
	if err != nil {
		return o, err
	}
	o.Turns = turns
	if p.Repack {
		if err := c.repack(ctx, k, &o); err != nil {
			return o, err
		}
	}
	if o.Contents+o.Nodes+o.Sessions > 0 {
		if err := c.log(ctx); err != nil {
			return o, err
		}
	}
	if err := c.Capture.Store.Checkpoint(ctx); err != nil {
		return o, err
	}
	err = c.Capture.Store.View(ctx, func(tx *store.Tx) (err error) {
		o.After, _, err = tx.Size()
		return err
	})
	o.Over = p.size() > 0 && o.After > p.size()
	return o, err
}

// repack stores what is left anew; the steps after it give the space back.
func (c *Collector) repack(ctx context.Context, k store.Keep, o *Outcome) (err error) {
	if o.Repacked, err = c.Capture.Store.Repack(ctx, c.Progress); err != nil {
		return err
	}
	return c.steps(ctx, k, o.Add)
}

// log puts the collection into the log of the current session. It leads from nowhere to nowhere:
// the session's root, which is sealed, stands for that.
func (c *Collector) log(ctx context.Context) error {
	return c.Capture.Store.Update(ctx, func(tx *store.WriteTx) error {
		s, err := tx.Current()
		if errors.Is(err, store.ErrNoSession) {
			return nil
		}
		if err != nil || s.Open == s.Root {
			return err
		}
		_, err = tx.AddOperation(store.Operation{
			Session: s.ID, Kind: store.OpGC, Turn: -1, State: store.Applied, HeadFrom: s.Root, HeadTo: s.Root,
		}, nil)
		return err
	})
}

// steps runs a collection to its end. No move may be between its plan and its intent when
// something that it wants goes, so each step waits for moves.
func (c *Collector) steps(ctx context.Context, k store.Keep, tell func(store.Collected)) error {
	s := c.Capture.Store.Collector(func(tx *store.Tx) (store.Keep, error) {
		var err error
		k.Hashes, err = indexed(tx)
		return k, err
	})
	for more := true; more; {
		unlock, err := c.Capture.LockShared(ctx)
		if err != nil {
			return err
		}
		var done store.Collected
		done, more, err = s.Step(ctx)
		unlock()
		if err != nil {
			return err
		}
		tell(done)
	}
	return nil
}

// indexed are the contents of the stat index: the next scan takes what it knows for stored.
func indexed(tx *store.Tx) (iter.Seq[blob.Hash], error) {
	x, err := tx.ScanIndex()
	if err != nil {
		return nil, err
	}
	index, err := workspace.DecodeParts(x.Parts)
	if err != nil {
		return nil, nil //nolint:nilerr // a damaged index is made anew by the next scan
	}
	return index.Blobs(), nil
}

func (p Policy) age() time.Duration {
	if p.Age == 0 {
		return DefaultAge
	}
	return max(p.Age, 0)
}

func (p Policy) size() int64 {
	if p.Size == 0 {
		return DefaultSize
	}
	return max(p.Size, 0)
}

// keep is what a policy keeps apart from its limit of size.
func (p Policy) keep(now time.Time) store.Keep {
	k := store.Keep{Turns: max(p.Turns, 0), Session: p.Session}
	if p.age() > 0 {
		k.Since = now.Add(-p.age())
	}
	return k
}

// plan works out what is kept. Where the store would still be too large, more turns go.
func (c *Collector) plan(ctx context.Context, p Policy) (store.Keep, Outcome, error) {
	k := p.keep(c.Capture.Store.Now())
	all, err := c.estimate(ctx, []store.Keep{k})
	if err != nil {
		return k, Outcome{}, err
	}
	if p.size() == 0 || all[0].After <= p.size() {
		return k, all[0], nil
	}
	return c.shrink(ctx, p, k)
}

// lookAt is how many moments are tried in one round.
const lookAt = 12

// shrink finds the earliest moment from which on turns can be kept so that the store is small
// enough; the end of the newest turn when none is early enough.
func (c *Collector) shrink(ctx context.Context, p Policy, k store.Keep) (store.Keep, Outcome, error) {
	var times []time.Time
	err := c.Capture.Store.View(ctx, func(tx *store.Tx) (err error) { times, err = tx.TurnTimes(); return err })
	if err != nil {
		return k, Outcome{}, err
	}
	times = append(times, c.Capture.Store.Now().Add(time.Millisecond))
	for low, high := 0, len(times)-1; ; {
		var tried []int
		var keeps []store.Keep
		for i := low; ; i = min(i+max((high-low)/lookAt, 1), high) {
			one := k
			if times[i].After(k.Since) {
				one.Since = times[i]
			}
			tried, keeps = append(tried, i), append(keeps, one)
			if i == high {
				break
			}
		}
		all, err := c.estimate(ctx, keeps)
		if err != nil {
			return k, Outcome{}, err
		}
		fits := slices.IndexFunc(all, func(o Outcome) bool { return o.After <= p.size() })
		if fits < 0 {
			fits = len(all) - 1
		}
		if fits == 0 || tried[fits] == tried[fits-1]+1 {
			all[fits].Over = all[fits].After > p.size()
			return keeps[fits], all[fits], nil
		}
		low, high = tried[fits-1]+1, tried[fits]
	}
}

// estimate plans for several keeps at once.
func (c *Collector) estimate(ctx context.Context, keeps []store.Keep) ([]Outcome, error) {
	var size, free int64
	all, err := c.Capture.Store.PlanCollection(ctx, func(tx *store.Tx) (_ []store.Keep, err error) {
		if size, free, err = tx.Size(); err != nil {
			return nil, err
		}
		hashes, err := indexed(tx)
		for i := range keeps {
			keeps[i].Hashes = hashes
		}
		return keeps, err
	})
	if err != nil {
		return nil, fmt.Errorf("plan the collection: %w", err)
	}
	out := make([]Outcome, len(all))
	for i, one := range all {
		out[i] = Outcome{Collected: one, Before: size, After: size - free - one.Bytes, Since: keeps[i].Since}
	}
	return out, nil
}
