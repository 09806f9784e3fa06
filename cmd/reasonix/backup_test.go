package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestBackupWhileOthersWrite copies a store that four agents write into, through processes of their
// own: each copy is whole, and holds all that was recorded before it began.
func TestBackupWhileOthersWrite(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) ([]byte, error) {
		cmd := exec.Command("reasonix", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base, "XDG_STATE_HOME=" + filepath.Join(base, "state")}
		return cmd.CombinedOutput()
	}
	event := func(session int, fields string) error {
		out, err := run(fmt.Sprintf(`{"v":1,"source":"test","session":"s%d","call":"c",%s}`, session, fields), "hook", "--strict")
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", fields, err, out)
		}
		return nil
	}
	if err := event(0, `"event":"begin-turn","prompt":"first"`); err != nil {
		t.Fatal(err)
	}
	var (
		wg    sync.WaitGroup
		stop  atomic.Bool
		turns [4]atomic.Int64 // ended, of each session
	)
	for s := range turns {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				name := fmt.Sprintf("f%d", s)
				for _, e := range []string{`"event":"begin-turn","prompt":"p"`, `"event":"before-edit","paths":["` + name + `"]`} {
					if err := event(s, e); err != nil {
						t.Error(err)
						return
					}
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(fmt.Sprintf("%d %d\n", s, n), 2000)), 0o644); err != nil {
					t.Error(err)
					return
				}
				for _, e := range []string{`"event":"after-edit"`, `"event":"end-turn"`} {
					if err := event(s, e); err != nil {
						t.Error(err)
						return
					}
				}
				turns[s].Add(1)
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	for n := range 5 {
		for turns[0].Load() < int64(2*n+1) && !t.Failed() { // so that each copy meets other states
			if out, err := run("", "sessions"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		var before [4]int64
		for s := range turns {
			before[s] = turns[s].Load()
		}
		file := filepath.Join(base, fmt.Sprintf("copy%d.db", n))
		if out, err := run("", "backup", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := run("", "--store", file, "verify", "--deep"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := run("", "--store", file, "--json", "sessions")
		var got struct {
			Sessions []struct {
				SourceID string `json:"source_id"`
				Turns    int64
			}
		}
		if err != nil || json.Unmarshal(out, &got) != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, s := range got.Sessions {
			var id int
			if _, err := fmt.Sscanf(s.SourceID, "s%d", &id); err != nil || s.Turns < before[id] {
				t.Errorf("copy %d has %d turns of %s, %d were recorded before it", n, s.Turns, s.SourceID, before[id])
			}
		}
	}
}
