package blob_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"reasonix/blob"
	"reasonix/db"
)

func TestAFaultAtEachStep(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		content []byte
		base    []byte
		tick    time.Duration // what the clock gains at each look: much makes many transactions
	}{
		"small":                     {text(1, 50_000), nil, 0},
		"against a base":            {text(1, 50_000), text(1, 49_000), 0},
		"long, a commit each chunk": {noise(1, 5<<18), nil, 6 * time.Minute},
		"long, against others":      {changed(noise(1, 5<<18), 7, 1<<20), noise(1, 5<<18), 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			content, now := c.content, time.UnixMilli(0)
			for n := int64(1); ; n++ {
				var calls atomic.Int64
				calls.Store(1 << 40)
				d := openDB(t, db.Options{Fault: func(string) error {
					if calls.Add(1) == n {
						return boom
					}
					return nil
				}})
				s := blob.New(d, func() time.Time { now = now.Add(c.tick); return now })
				base := mustPut(t, s, d, c.base)
				calls.Store(0)
				_, err := putAgainst(s, d, content, base)
				passed := calls.Swap(1 << 40)
				if passed < n {
					if err != nil {
						t.Fatal(err)
					}
					if n < 5 {
						t.Errorf("only %d steps", n-1)
					}
					return
				}
				if !errors.Is(err, boom) {
					t.Fatalf("step %d: got %v", n, err)
				}
				if _, err := putAgainst(s, d, content, base); err != nil {
					t.Error(err)
				}
				wantContent(t, s, d, content)
				checkForms(t, d)
				verifyAll(t, s)
				if leases := query(t, d, "SELECT count(*) FROM blob_lease"); leases > 1 {
					t.Errorf("step %d: %d leases", n, leases)
				}
			}
		})
	}
}

func TestAFullDisk(t *testing.T) {
	d := openDB(t, db.Options{MaxPages: 3000})
	s := blob.New(d, nil)
	if _, _, err := put(s, d, bytes.NewReader(noise(1, 40<<20))); !db.IsFull(err) {
		t.Errorf("got %v", err)
	}
	verifyAll(t, s)
	small := text(1, 2000)
	mustPut(t, s, d, small)
	wantContent(t, s, d, small)
}

// stream gives n bytes, half of which compress, without holding them.
type stream struct {
	n    int64
	at   int64
	tick func(at int64)
}

func (s *stream) Read(p []byte) (int, error) {
	if s.at == s.n {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), s.n-s.at, 64<<10))
	x := uint64(s.at) * 0x9e3779b97f4a7c15
	for i := range p[:n] {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x)
		if i&8 != 0 {
			p[i] = 'x'
		}
	}
	s.at += int64(n)
	if s.tick != nil {
		s.tick(s.at)
	}
	return n, nil
}

func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 256 MiB; left out by -short")
	}
	const size, limit = 256 << 20, 100 << 20
	s, d := newStore(t)
	runtime.GC()
	var start, now runtime.MemStats
	runtime.ReadMemStats(&start)
	peak := uint64(0)
	tick := func(at int64) {
		if at%(8<<20) < 64<<10 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	p, _, err := put(s, d, &stream{n: size, tick: tick})
	if err != nil {
		t.Fatal(err)
	}
	written := int64(peak) - int64(start.HeapAlloc)
	runtime.GC()
	peak = 0
	r, err := s.Open(ctx, p.Hash())
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	for buf := make([]byte, 64<<10); err == nil; tick(at) {
		var n int
		n, err = r.Read(buf)
		at += int64(n)
	}
	if !errors.Is(err, io.EOF) || at != size {
		t.Errorf("read back %d bytes, %v", at, err)
	}
	read := int64(peak) - int64(start.HeapAlloc)
	t.Logf("heap growth: %d MiB writing, %d MiB reading", written>>20, read>>20)
	if written > limit || read > limit {
		t.Errorf("the heap grew by %d bytes writing, %d reading", written, read)
	}
}

// The test program itself is the process that is killed.
const childVar = "REASONIX_BLOB_TEST_STORE"

func TestMain(m *testing.M) {
	path := os.Getenv(childVar)
	if path == "" {
		os.Exit(m.Run())
	}
	d, err := db.Open(ctx, path, db.Options{Migrations: migrations()})
	if err != nil {
		panic(err)
	}
	told := int64(0)
	_, _, err = put(blob.New(d, nil), d, &stream{n: 1 << 40, tick: func(at int64) {
		for ; told < at>>20; told++ {
			fmt.Println(told + 1)
		}
	}})
	panic(err) // there is no end to reach
}

func TestAKilledPrepare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for _, after := range []string{"2", "9", "21"} {
		cmd := osexec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVar+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != after {
		}
		if lines.Text() != after {
			t.Fatalf("the child ended before %s MiB: %v", after, lines.Err())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	d, err := db.Open(ctx, path, db.Options{Migrations: migrations()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := blob.New(d, nil)
	verifyAll(t, s)
	if n := query(t, d, "SELECT count(*) FROM blob WHERE encoding = 3"); n != 0 {
		t.Errorf("%d contents of a killed process", n)
	}
	if n := query(t, d, "SELECT count(*) FROM blob_lease WHERE expires_ms > ?", time.Now().Add(time.Hour).UnixMilli()); n != 0 {
		t.Errorf("%d leases that last", n)
	}
	content := noise(1, 3<<20)
	mustPut(t, s, d, content)
	wantContent(t, s, d, content)
}
