package retain_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/internal/retain"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

type world struct {
	*worldtest.World
	gc     *retain.Collector
	starts []map[string]worldtest.Entry // of each turn
}

func newWorld(t testing.TB) *world {
	w := worldtest.New(t)
	return &world{World: w, gc: &retain.Collector{Capture: w.Capture}}
}

// noise is n bytes that do not compress, the same for a seed.
func noise(seed, n int) string {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return string(b)
}

// play records turns that each write one file of size bytes, of three in turn.
func (w *world) play(turns, size int) {
	for range turns {
		n := len(w.starts)
		w.starts = append(w.starts, worldtest.Files(w.T, w.Dir))
		w.Turn(fmt.Sprint("turn ", n), nil, func() { w.Write(fmt.Sprintf("f%d", n%3), noise(n, size), 0o644) })
	}
}

// rewound takes the files back to a turn, and back again.
func (w *world) rewound(turn int) error {
	now := worldtest.Files(w.T, w.Dir)
	p, err := w.Engine.Plan(w.T.Context(), rewind.Request{Kind: store.OpRewind, Session: w.ID, Turn: turn, Scope: store.Code, Force: true})
	if err != nil {
		return err
	}
	_, err = w.Engine.Apply(w.T.Context(), p)
	w.Must(err)
	if d := cmp.Diff(w.starts[turn], worldtest.Files(w.T, w.Dir)); d != "" {
		w.T.Errorf("turn %d (-want +got):\n%s", turn, d)
	}
	w.Apply(rewind.Request{Kind: store.OpUndo})
	if d := cmp.Diff(now, worldtest.Files(w.T, w.Dir)); d != "" {
		w.T.Errorf("undo (-want +got):\n%s", d)
	}
	return nil
}

func (w *world) run(p retain.Policy) retain.Outcome {
	w.T.Helper()
	o, err := w.gc.Run(w.T.Context(), p)
	w.Must(err)
	return o
}

// onDisk is what the store's files take.
func (w *world) onDisk() (n int64) {
	for _, name := range []string{"", "-wal"} {
		if fi, err := os.Stat(w.Capture.Store.Path() + name); err == nil {
			n += fi.Size()
		}
	}
	return n
}

// unlimited keeps everything.
var unlimited = retain.Policy{Age: -1, Size: -1}

func TestSizeLimit(t *testing.T) {
	w := newWorld(t)
	w.play(40, 50_000)
	const limit = 900_000
	plan, err := w.gc.Plan(t.Context(), retain.Policy{Age: -1, Size: limit})
	w.Must(err)
	before := w.onDisk()
	o := w.run(retain.Policy{Age: -1, Size: limit})
	if d := cmp.Diff(plan.Turns, o.Turns); d != "" || plan.Contents != o.Contents || len(o.Turns) < 10 {
		t.Errorf("planned %+v, did %+v", plan.Collected, o.Collected)
	}
	if o.Over || o.After > limit || w.onDisk() > limit || before < 2_000_000 {
		t.Errorf("%d bytes before, %d after, %d reported; the limit is %d", before, w.onDisk(), o.After, limit)
	}
	gone := map[int]bool{}
	for _, r := range o.Turns {
		gone[r.Turn] = true
	}
	for turn := range w.starts {
		err := w.rewound(turn)
		if gone[turn] && !errors.Is(err, rewind.ErrExpired) || !gone[turn] && err != nil {
			t.Errorf("turn %d, gone %v: %v", turn, gone[turn], err)
		}
	}
	if o = w.run(retain.Policy{Age: -1, Size: 1000}); !o.Over {
		t.Error("a limit that cannot be met is not told")
	}
	if err := w.rewound(len(w.starts) - 1); err != nil {
		t.Errorf("the newest turn: %v", err)
	}
}

func TestAge(t *testing.T) {
	w := newWorld(t)
	w.play(5, 1000)
	w.Later(40 * 24 * time.Hour)
	w.play(3, 1000)
	if o := w.run(unlimited); o.Contents != 0 {
		t.Errorf("unlimited: %+v", o.Collected)
	}
	if o := w.run(retain.Policy{}); len(o.Turns) == 0 || o.Contents == 0 {
		t.Errorf("after 40 days: %+v", o.Collected)
	}
	for turn := range w.starts {
		switch err := w.rewound(turn); {
		case turn >= 5 && err != nil:
			t.Errorf("turn %d, which is young: %v", turn, err)
		case turn == 3 && !errors.Is(err, rewind.ErrExpired):
			t.Errorf("turn %d, which is old: %v", turn, err)
		}
	}
}

func TestAutoIsDueOnceADay(t *testing.T) {
	w := newWorld(t)
	w.play(6, 1000)
	auto := func() bool {
		_, did, err := w.gc.Auto(t.Context(), retain.Policy{}, time.Minute)
		w.Must(err)
		return did
	}
	for range 2 {
		if auto() {
			t.Error("a young store is collected")
		}
	}
	w.Later(31 * 24 * time.Hour)
	if first, second := auto(), auto(); !first || second {
		t.Error("it is due once")
	}
	w.Later(25 * time.Hour)
	if !auto() {
		t.Error("it is due again a day later")
	}
	large := retain.Policy{Size: 1000}
	if _, did, err := w.gc.Auto(t.Context(), large, time.Minute); did || err != nil {
		t.Errorf("a store that is too large is collected again within the hour: %v", err)
	}
	w.Later(2 * time.Hour)
	if _, did, err := w.gc.Auto(t.Context(), large, time.Minute); !did || err != nil {
		t.Errorf("a store that is too large is not collected: %v", err)
	}
}

// TestAutoGoesOnWhereItStopped gives collection no time: it is due until it has ended.
func TestAutoGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t)
	w.play(6, 1000)
	_, _, err := w.gc.Auto(t.Context(), retain.Policy{}, time.Minute)
	w.Must(err)
	w.Later(40 * 24 * time.Hour)
	if _, did, err := w.gc.Auto(t.Context(), retain.Policy{}, 0); !did || err != nil {
		t.Fatal(did, err)
	}
	if o, did, err := w.gc.Auto(t.Context(), retain.Policy{}, time.Minute); !did || err != nil || o.Contents == 0 {
		t.Errorf("%v, %v, %+v", did, err, o.Collected)
	}
}

// TestContentsComeBack records bytes again whose content was dropped.
func TestContentsComeBack(t *testing.T) {
	w := newWorld(t)
	w.play(6, 1000)
	w.run(retain.Policy{Age: -1, Size: -1, Turns: 1})
	if err := w.rewound(1); !errors.Is(err, rewind.ErrExpired) {
		t.Fatal(err)
	}
	w.starts = append(w.starts, worldtest.Files(t, w.Dir))
	w.Turn("again", nil, func() {
		for i := range 6 {
			w.Write("f9", noise(i, 1000), 0o644)
		}
	})
	for turn := range w.starts {
		if err := w.rewound(turn); err != nil && !errors.Is(err, rewind.ErrExpired) || turn >= 5 && err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}

// TestAbandonedWritesGo fills a store with contents that were being written when their process
// died (case: temporary packs that pile up).
func TestAbandonedWritesGo(t *testing.T) {
	w := newWorld(t)
	w.play(3, 100_000)
	live := w.onDisk()
	for i := range 10 {
		p, err := w.Capture.Store.Blobs().Prepare(t.Context(), bytes.NewReader([]byte(noise(100+i, 3<<20))))
		w.Must(err)
		if p.Size() != 3<<20 {
			t.Fatal(p.Size())
		}
	}
	if o := w.run(unlimited); o.Contents != 0 || o.Postponed == 0 {
		t.Errorf("contents that may still be bound: %+v", o.Collected)
	}
	w.Later(24 * time.Hour)
	full := w.onDisk()
	o := w.run(unlimited)
	if o.Contents == 0 || w.onDisk() > live+live/10 {
		t.Errorf("%d bytes live, %d with what was abandoned, %d after: %+v", live, full, w.onDisk(), o.Collected)
	}
}

// TestExtraSpaceIsBounded looks at the files at each step.
func TestExtraSpaceIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 14 {
		w.Turn("large", nil, func() { w.Write("large", noise(i, 2<<20), 0o644) })
	}
	before, most := w.onDisk(), int64(0)
	w.gc.Progress = func(int64, int64) { most = max(most, w.onDisk()) }
	o := w.run(retain.Policy{Age: -1, Size: -1, Turns: 1})
	if most == 0 || most > before+14<<20 || w.onDisk() > before/3 {
		t.Errorf("%d bytes before, at most %d meanwhile, %d after: %+v", before, most, w.onDisk(), o.Collected)
	}
}

// TestRecordersGoOn records, with contents that come and go, between the steps of a collection.
func TestRecordersGoOn(t *testing.T) {
	w := newWorld(t)
	w.play(30, 3000)
	w.gc.Progress = func(int64, int64) {
		n := len(w.starts)
		w.starts = append(w.starts, worldtest.Files(t, w.Dir))
		w.Turn("meanwhile", nil, func() { w.Write(fmt.Sprintf("f%d", n%3), noise(n%30, 3000), 0o644) })
	}
	o := w.run(retain.Policy{Age: -1, Size: -1, Turns: 4})
	if o.Contents == 0 || len(w.starts) == 30 {
		t.Fatalf("%+v, %d turns", o.Collected, len(w.starts))
	}
	for turn := len(w.starts) - 4; turn < len(w.starts); turn++ {
		if err := w.rewound(turn); err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}

// TestSharedBytes purges a file of which another one, and a chunk of a third, are copies.
func TestSharedBytes(t *testing.T) {
	w := newWorld(t)
	secret := noise(1, 3<<20)
	w.Turn("zero", nil, func() {
		w.Write("secret", secret, 0o600)
		w.Write("copy", secret, 0o600)
		w.Write("longer", secret+noise(2, 1<<20), 0o600)
		w.Write("other", noise(3, 2<<20), 0o600)
	})
	w.Turn("one", nil, func() {
		for _, name := range []string{"secret", "copy", "longer", "other"} {
			w.Write(name, "", 0o600)
		}
	})
	p, err := w.gc.Purge(t.Context(), []store.Path{"secret"}, retain.PurgeOptions{})
	w.Must(err)
	if d := cmp.Diff([]store.Path{"copy", "longer"}, p.Also); d != "" || !p.Clean {
		t.Errorf("clean %v, also (-want +got):\n%s", p.Clean, d)
	}
	b, err := os.ReadFile(w.Capture.Store.Path())
	w.Must(err)
	if wal, err := os.ReadFile(w.Capture.Store.Path() + "-wal"); err == nil {
		b = append(b, wal...)
	}
	for at := 0; at < len(secret); at += 100_000 {
		if bytes.Contains(b, []byte(secret[at:at+64])) {
			t.Fatalf("the store still holds byte %d", at)
		}
	}
	if err := w.Capture.Store.Blobs().Verify(t.Context(), blob.Sum([]byte(noise(3, 2<<20)))); err != nil {
		t.Errorf("another file: %v", err)
	}
	w.starts = []map[string]worldtest.Entry{nil, nil}
	if err := w.rewound(1); !errors.Is(err, rewind.ErrExpired) {
		t.Error(err)
	}
}
