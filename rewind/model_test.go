package rewind_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reasonix/store"
)

// model plays a world and the reference side by side. What step n does depends on the seed, on
// n and on what there is, so that a run is a list of numbers and any part of it is a run too.
type model struct {
	*world
	ref    *reference
	seed   uint64
	names  []string  // that paths are made of
	open   []call    // left open by their turns
	runs   []command // likewise
	starts map[*refNode]folder
	dirty  map[string]bool // paths that somebody changed and did not announce, or two sessions did
	owner  map[string]int
	wrote  int // operations before the last change of a file
}

// seedSteps are the steps of one seed; a history that is much longer shows little more and
// takes longer for each step.
const seedSteps = 60

// failure is what a step panics with.
type failure string

func newModel(t testing.TB, seed uint64, dir string) *model {
	m := &model{
		ref: newReference(), seed: seed, starts: map[*refNode]folder{}, dirty: map[string]bool{}, owner: map[string]int{},
		world: &world{
			t: t, dir: filepath.Join(dir, "w"), file: filepath.Join(dir, "store.db"),
			clock: time.Unix(1_800_000_000, 0), tick: time.Microsecond, rnd: rand.New(rand.NewPCG(seed, 0)),
		},
	}
	m.world.model = m
	for _, i := range m.rnd.Perm(len(oddNames))[:4] {
		m.names = append(m.names, oddNames[i])
	}
	m.must(os.Mkdir(m.dir, 0o755))
	m.start()
	for range m.rnd.IntN(12) { // what was there before the agent came
		m.byHand()
	}
	return m
}

func (m *model) step(n int) {
	m.rnd = rand.New(rand.NewPCG(m.seed, uint64(n)+1))
	m.value = (n + 1) * 1000
	pause := []int{7, 23, 23, 23, 23, 1201}[m.rnd.IntN(6)]
	// Within a step the stored time, in milliseconds, does not change.
	m.clock, m.ref.now = m.clock.Truncate(time.Second).Add(time.Duration(pause)*time.Second), m.ref.now+pause
	m.note("step %d, %d s later", n, pause)
	if m.rnd.IntN(5) == 0 {
		m.byHand()
	}
	switch x := m.rnd.IntN(100); {
	case x < 30:
		m.turn()
	case x < 34:
		m.act(m.at())
	case x < 36:
		m.endTurn(m.at())
	case x < 38:
		m.say(m.at())
	case x < 41:
		m.late()
	case x < 51:
		m.rewind(store.Both)
	case x < 60:
		m.rewind(store.Code)
	case x < 67:
		m.rewind(store.Conversation)
	case x < 72:
		m.fork()
	case x < 75:
		m.newSession()
	case x < 81:
		m.switchTo()
	case x < 88:
		m.undo(m.at(), m.rnd.IntN(3) == 0, 0)
	case x < 90:
		m.undoTo(m.at())
	case x < 96:
		m.redo(m.at(), m.rnd.IntN(3) == 0)
	case x < 98:
		m.compact(m.at())
	case m.rnd.IntN(2) == 0:
		m.collect()
	default:
		m.note("reopen")
		m.close()
		m.world.open()
	}
	m.check(n%8 == 7)
}

// run plays steps of a seed; it returns how many were played, and of a failure the text and
// all that led to it.
func run(t testing.TB, seed uint64, steps []int) (played int, failed string, trace []string) {
	dir, err := os.MkdirTemp(memory(), "rewind-model-")
	if err != nil {
		dir = t.TempDir()
	}
	defer os.RemoveAll(dir)
	var m *model
	defer func() {
		switch r := recover().(type) {
		case nil:
			return
		case failure:
			failed = string(r)
		default:
			failed = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
		if m != nil {
			trace = m.trace
			_ = m.capture.Store.Close()
			_ = m.capture.Root.Close()
		}
	}()
	m = newModel(t, seed, dir)
	for _, n := range steps {
		m.step(n)
		played++
	}
	m.checkAll()
	m.close()
	return played, "", nil
}

// memory is a folder in memory where the system has one.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

// shrink leaves steps out of a failing run for as long as what remains fails, and time is left:
// halves, then ever smaller parts, and single steps until each of them is needed.
func shrink(t testing.TB, seed uint64, steps []int, until time.Time) []int {
	for size := max(1, len(steps)/2); ; size = max(1, size/2) {
		again := size > 1
		for at := len(steps) - size; at >= 0 && time.Now().Before(until); at -= size {
			fewer := slices.Delete(slices.Clone(steps), at, at+size)
			if _, failed, _ := run(t, seed, fewer); failed != "" {
				steps, again = fewer, true
			}
		}
		if !again || time.Now().After(until) {
			return steps
		}
	}
}

// report plays a failing run again and tells it in full.
func report(t *testing.T, seed uint64, steps []int, first string) {
	_, failed, trace := run(t, seed, steps)
	if failed == "" {
		failed, trace = "it fails no more when it is played again; it was:\n"+first, nil
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(steps), " ", ","), "[]")
	t.Fatalf("seed %d: %s\nafter:\n  %s\nagain with: REASONIX_MODEL_REPLAY=%d:%s go test -run TestModel ./rewind",
		seed, failed, strings.Join(trace, "\n  "), seed, list)
}

// setting is a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestModel plays random turns, hand edits, moves, forks, compactions, collections and reopenings in trees
// of files, folders and links against the reference, and against full copies
// (I2–I7, I9, I10, I12, I13). Two goroutines or more play one seed each, until one fails.
func TestModel(t *testing.T) {
	if seed, list, ok := strings.Cut(os.Getenv("REASONIX_MODEL_REPLAY"), ":"); ok {
		replay(t, seed, list)
		return
	}
	total := uint64(2400)
	if testing.Short() {
		total = 240
	}
	total = setting(t, "REASONIX_MODEL_STEPS", total)
	first := setting(t, "REASONIX_MODEL_SEED", 0)
	stop := func() bool { return false }
	if text := os.Getenv("REASONIX_MODEL_TIME"); text != "" {
		budget, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(budget)
		stop = func() bool { return time.Now().After(end) }
	}
	steps := make([]int, seedSteps)
	for i := range steps {
		steps[i] = i
	}
	var (
		wg           sync.WaitGroup
		next, played atomic.Uint64
		mu           sync.Mutex
		broken       uint64 // a seed that failed, guarded by mu
		how          string // and how, "" for none yet
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop() {
				seed := next.Add(1) - 1
				if seed*seedSteps >= total {
					return
				}
				n, failed, _ := run(t, first+seed, steps)
				played.Add(uint64(n))
				if failed != "" {
					mu.Lock()
					broken, how = first+seed, failed
					mu.Unlock()
					next.Store(total) // nobody begins another one
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d steps from seed %d on", played.Load(), first)
	if how != "" {
		report(t, broken, shrink(t, broken, steps, time.Now().Add(time.Minute)), how)
	}
	if played.Load() == 0 {
		t.Fatal("nothing was played")
	}
}

func replay(t *testing.T, seed, list string) {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var steps []int
	for s := range strings.FieldsFuncSeq(list, func(c rune) bool { return c == ',' }) {
		step, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if _, failed, _ := run(t, n, steps); failed != "" {
		report(t, n, steps, failed)
	}
}
