package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// full runs the program where no file may grow beyond so many blocks of 512 bytes: to the program the
// disk is full there. It returns the exit code and what was printed.
func (h *hooked) full(blocks int, stdin string, args ...string) (int, string) {
	h.t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec reasonix "$@"`, blocks), "sh"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, h.env, strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return exitCode(cmd.Run()), out.String()
}

// TestCaseDiskFull: what cannot be stored is refused before a tool writes, a rewind that has no room leaves
// everything as it was, nothing that was recorded is lost, and it works again once there is room.
func TestCaseDiskFull(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	h := newHooked(t)
	h.fill("large", size)
	h.event("begin-turn", map[string]any{"prompt": "first"})
	h.event("before-edit", map[string]any{"paths": []string{"large"}, "call": "1"})
	h.fill("large", size-1)
	h.event("after-edit", map[string]any{"call": "1"})
	h.event("end-turn", nil)
	h.fill("new", size)
	h.event("begin-turn", map[string]any{"prompt": "second"})
	before, log := manifest(h.dir), string(h.run(nil, "log", "--json"))
	event := fmt.Sprintf(`{"v":1,"event":"before-edit","source":"test","session":"s","cwd":%q,"paths":["new"],"call":"2"}`, h.dir)
	for _, blocks := range []int{0, 1, 64, size / 512 / 2} {
		code, out := h.full(blocks, event, "hook", "--strict")
		if code != 1 || !strings.Contains(out, "error: ") || strings.Contains(out, "goroutine") {
			t.Errorf("%d blocks: exit code %d\n%s", blocks, code, out)
		}
		code, out = h.full(blocks, "", "rewind", "0", "--force")
		if code != 1 || strings.Contains(out, "goroutine") {
			t.Errorf("%d blocks: a rewind: exit code %d\n%s", blocks, code, out)
		}
		if now := manifest(h.dir); now != before {
			t.Fatalf("%d blocks: files are not as they were", blocks)
		}
		h.run(nil, "verify", "--deep")
	}
	if now := string(h.run(nil, "log", "--json")); strings.Count(now, `"prompt"`) < strings.Count(log, `"prompt"`) {
		t.Errorf("turns were lost: %s", now)
	}
	h.run([]byte(event), "hook", "--strict")
	h.run(nil, "rewind", "0", "code", "--force")
	if now := manifest(h.dir); now == before {
		t.Error("nothing was rewound once there was room")
	}
	h.run(nil, "undo-rewind")
	if now := manifest(h.dir); now != before {
		t.Error("an undo did not bring everything back")
	}
}

// TestCaseNobodyElseReads: what is kept of files, secrets among them, is for their owner alone, whatever
// the umask.
func TestCaseNobodyElseReads(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.fill("secret", 100)
	event := fmt.Sprintf(`{"v":1,"event":"before-edit","source":"test","session":"s","cwd":%q,"paths":["secret"]}`, h.dir)
	out := filepath.Join(filepath.Dir(h.dir), "out")
	for _, args := range [][]string{
		{"hook", "--strict"}, {"export-ckpt", "--out", out}, {"backup", filepath.Join(out, "backup.db")}, {"hook", "--wrong-flag"}, {"log"},
	} {
		cmd := exec.Command("sh", append([]string{"-c", `umask 0; exec reasonix "$@"`, "sh"}, args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = h.dir, h.env, strings.NewReader(event)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, b)
		}
	}
	n := 0
	for _, dir := range []string{filepath.Join(filepath.Dir(h.dir), "state", "reasonix"), out} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			n++
			info, err := os.Lstat(name)
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n < 8 {
		t.Errorf("only %d files were made", n)
	}
}
