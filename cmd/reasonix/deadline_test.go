package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRecoveryWithinADeadline leaves a rewind of 1,000 files that was killed before its commit to
// hooks that have too little time, then more and more of it. Each does what it can; the next goes
// on where it stopped. None says that it recorded what it did not: the event is there, or a gap
// is. In the end the files are as before the rewind.
func TestRecoveryWithinADeadline(t *testing.T) {
	const files = 1000
	h := newHooked(t)
	var paths []string
	write := func(content string) {
		for _, p := range paths {
			if err := os.WriteFile(filepath.Join(h.dir, p), []byte(content+p), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range files {
		paths = append(paths, fmt.Sprintf("d%d/f%04d", i%7, i))
		if err := os.MkdirAll(filepath.Dir(filepath.Join(h.dir, paths[i])), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.env = append(h.env, "REASONIX_HOOK_DEADLINE=5m")
	write("before ")
	h.event("begin-turn", nil)
	h.event("before-edit", map[string]any{"paths": paths, "call": "all"})
	write("after ")
	h.event("after-edit", map[string]any{"call": "all"})
	h.event("end-turn", nil)
	after := manifest(h.dir)
	h.die("written")
	back := func() (n int) {
		for _, p := range paths {
			b, err := os.ReadFile(filepath.Join(h.dir, p))
			if s := strings.TrimSuffix(string(b), p); err != nil || s != "before " && s != "after " {
				t.Fatalf("%s is %q, %v", p, b, err)
			} else if s == "after " {
				n++
			}
		}
		return n
	}
	if n := back(); n != 0 {
		t.Fatalf("%d files were not rewound", n)
	}
	left, done := 0, 0
	for deadline := 10 * time.Millisecond; ; deadline = deadline * 3 / 2 {
		call := fmt.Sprint("other-", deadline.Microseconds())
		reply := h.within(deadline, map[string]any{"event": "before-edit", "paths": []string{call}, "call": call})
		was := done
		done = back()
		t.Logf("%8s: ok %v, %4d files are back %s", deadline, reply.OK, done, reply.Warnings)
		if done < was {
			t.Fatalf("%d files were back, and only %d are", was, done)
		}
		if reply.OK {
			if done != files || manifest(h.dir) != after {
				t.Fatalf("success, and %d files are back", done)
			}
			break
		}
		gaps := string(h.run(nil, "sql", "select path, reason from gaps"))
		told := slices.ContainsFunc(reply.Warnings, func(w string) bool {
			return strings.Contains(w, "could not be recorded") || strings.Contains(w, "open the store")
		})
		if strings.Contains(gaps, call) {
			left++
		} else if !told {
			t.Fatalf("%s: neither the event is recorded nor a gap:\n%s", deadline, gaps)
		}
	}
	if got := string(h.run(nil, "sql", "select count(*) from operations where state = 'applying'")); !strings.Contains(got, "0") {
		t.Errorf("unfinished operations: %s", got)
	}
	t.Logf("%d events left gaps", left)
	h.run(nil, "verify", "--deep")
}

type hookReply struct {
	OK       bool
	Session  string
	Warnings []string
}

// within sends an event to a hook with a deadline and returns what it says.
func (h *hooked) within(deadline time.Duration, fields map[string]any) (r hookReply) {
	h.t.Helper()
	e := map[string]any{"v": 1, "source": "test", "session": "s", "cwd": h.dir}
	for k, v := range fields {
		e[k] = v
	}
	b, err := json.Marshal(e)
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command("reasonix", "hook", "--reply", "json")
	cmd.Dir, cmd.Stdin = h.dir, bytes.NewReader(b)
	cmd.Env = append(h.env, "REASONIX_HOOK_DEADLINE="+deadline.String())
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	return r
}
