package retain

import (
	"context"
	"time"

	"reasonix/store"
)

// How often collection comes by itself: once a day for what has become too old, and once an hour
// where the store is too large.
const (
	every      = 24 * time.Hour
	everyLarge = time.Hour
)

// Auto collects when that is due, as far as ctx and within allow; the next Auto goes on. It is
// cheap when nothing is due: one look at the store. It reports whether it has collected.
func (c *Collector) Auto(ctx context.Context, p Policy, within time.Duration) (o Outcome, did bool, err error) {
	now := c.Capture.Store.Now()
	var (
		due  time.Time
		size int64
	)
	err = c.Capture.Store.View(ctx, func(tx *store.Tx) error {
		all, free, err := tx.Size()
		if err != nil {
			return err
		}
		size = all - free
		due, err = tx.Due()
		return err
	})
	if err != nil {
		return Outcome{}, false, err
	}
	large := p.size() > 0 && size > p.size()
	switch {
	case due.IsZero() && !large: // a young store has nothing old
		return Outcome{}, false, c.setDue(ctx, now.Add(every))
	case now.Before(due) && (!large || now.Before(due.Add(everyLarge-every))):
		return Outcome{}, false, nil
	}
	running, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	o, err = c.Run(running, p)
	if running.Err() != nil && ctx.Err() == nil {
		return o, true, nil // due stays as it is
	}
	if err != nil {
		return o, true, err
	}
	return o, true, c.setDue(ctx, now.Add(every))
}

func (c *Collector) setDue(ctx context.Context, due time.Time) error {
	return c.Capture.Store.Update(ctx, func(tx *store.WriteTx) error { return tx.SetDue(due) })
}
