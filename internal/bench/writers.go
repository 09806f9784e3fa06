package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"reasonix/internal/capture"
	"reasonix/store"
)

func writerLines() []line {
	return []line{{
		name: "writers", what: "append a message while 32 write, each with the store open for itself", unit: "ms",
		targets: []Target{{Of: "p99", AtMost: 120}}, measure: measureWriters,
	}}
}

// measureWriters has many write to one store. Each opens it for itself, and so waits for the lock of
// the file as processes do.
func measureWriters(r *rig) (figures, error) {
	w, err := r.world("")
	if err != nil {
		return figures{}, err
	}
	writers, span := r.size(32, 4), time.Duration(r.size(5000, 100))*time.Millisecond
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	start := r.o.Now()
	end := start.Add(span)
	for i := range writers {
		wg.Go(func() {
			took, err := w.writer(i, end)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return figures{}, failed
	}
	slices.Sort(all)
	return figures{
		value: milliseconds(median(all)), p99: milliseconds(all[len(all)*99/100]),
		note: fmt.Sprintf("%.0f a second, the slowest after %.0f ms", float64(len(all))/r.o.Now().Sub(start).Seconds(), milliseconds(all[len(all)-1])),
	}, nil
}

// writer appends to a session of its own until end.
func (w *world) writer(i int, end time.Time) (took []time.Duration, err error) {
	s, err := store.Open(w.r.ctx, w.file, store.Options{Now: w.r.o.Now})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	one := &world{r: w.r, store: s, capture: &capture.Capturer{Store: s, Root: w.capture.Root}}
	if err := one.open(fmt.Sprint("writer ", i)); err != nil {
		return nil, err
	}
	for n := 0; n < 3 || w.r.o.Now().Before(end); n++ { // some at least, also where to open took all the time
		start := w.r.o.Now()
		if err := one.recorder.Append(w.r.ctx, one.id, []json.RawMessage{message(n)}); err != nil {
			return took, err
		}
		took = append(took, w.r.o.Now().Sub(start))
	}
	return took, nil
}
