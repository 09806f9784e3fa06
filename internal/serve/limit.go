package serve

import (
	"context"
	"sync/atomic"
	"time"
)

// limiter lets a few requests work at once and some more wait, so that neither memory nor
// connections to the store grow with the number of clients.
type limiter struct {
	running chan struct{} // holds a token for each request at work
	waiting atomic.Int64
	most    int64 // that may wait
	wait    time.Duration
}

func newLimiter(l Limits) *limiter {
	return &limiter{running: make(chan struct{}, l.Running), most: int64(l.Waiting), wait: l.Wait}
}

// acquire waits for the request's turn; ok is false when too many wait already or it takes too
// long.
func (l *limiter) acquire(ctx context.Context) (release func(), ok bool) {
	release = func() { <-l.running }
	select {
	case l.running <- struct{}{}:
		return release, true
	default:
	}
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > l.most {
		return nil, false
	}
	late := time.NewTimer(l.wait)
	defer late.Stop()
	select {
	case l.running <- struct{}{}:
		return release, true
	case <-ctx.Done():
	case <-late.C:
	}
	return nil, false
}
