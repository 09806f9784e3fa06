package serve

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
)

// event is one thing that happened.
type event struct {
	id   uint64 // from 1, without holes
	name string
	data []byte // one JSON object
}

// hub keeps the newest events for the streams. A stream reads at its own pace from what is kept,
// so that a slow one costs nothing; one that falls behind is told so.
type hub struct {
	instance string // begins the ids, so that those of an earlier server are known as such

	mu      sync.Mutex // guards what follows
	kept    []event    // the newest, oldest first
	most    int
	last    uint64
	wake    chan struct{} // closed at the next event
	closed  bool
	streams int
}

func newHub(instance string, most int) *hub {
	return &hub{instance: instance, most: most, wake: make(chan struct{})}
}

// publish adds an event.
func (h *hub) publish(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		return // no shape of ours does that
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.kept = append(h.kept, event{h.last, name, b})
	if extra := len(h.kept) - h.most; extra > 0 {
		h.kept = append([]event(nil), h.kept[extra:]...)
	}
	close(h.wake)
	h.wake = make(chan struct{})
}

// after gives the events that came after one. missed says that some of them are not kept any
// more; wake is closed when there are others, or the hub is closed.
func (h *hub) after(id uint64) (all []event, missed, closed bool, wake <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.last + 1 - uint64(len(h.kept))
	if id > h.last || id+1 < first {
		return nil, true, h.closed, h.wake
	}
	return h.kept[id+1-first:], false, h.closed, h.wake
}

// newest is the id of the newest event, 0 before the first.
func (h *hub) newest() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// join counts a stream; ok is false when there are most already.
func (h *hub) join(most int) (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= most || h.closed {
		return nil, false
	}
	h.streams++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.streams--
	}, true
}

// open is the number of streams.
func (h *hub) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// close ends all streams, and lets no other begin.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.wake)
		h.wake = make(chan struct{})
	}
}

// name is an event's id as a stream writes it.
func (h *hub) name(id uint64) string { return h.instance + "-" + strconv.FormatUint(id, 10) }

// parse reads an id; ok is false when it is none of this hub's.
func (h *hub) parse(text string) (id uint64, ok bool) {
	number, ours := strings.CutPrefix(text, h.instance+"-")
	id, err := strconv.ParseUint(number, 10, 64)
	return id, ours && err == nil
}
