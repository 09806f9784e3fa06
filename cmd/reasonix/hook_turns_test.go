package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hooked is a workspace that is recorded by processes of the program, one for each event.
type hooked struct {
	t   *testing.T
	dir string
	env []string
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &hooked{t: t, dir: filepath.Join(base, "workspace")}
	h.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(base, "home"),
		"XDG_STATE_HOME=" + filepath.Join(base, "state"),
	}
	if err := os.Mkdir(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs the program and returns its standard output.
func (h *hooked) run(stdin []byte, args ...string) []byte {
	h.t.Helper()
	cmd := exec.Command("reasonix", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, h.env, bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("reasonix %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// event sends an event; messages are put in as they are.
func (h *hooked) event(kind string, fields map[string]any, messages ...string) {
	h.t.Helper()
	e := map[string]any{"v": 1, "event": kind, "source": "test", "session": "s", "cwd": h.dir}
	for k, v := range fields {
		e[k] = v
	}
	b, err := json.Marshal(e)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(messages) > 0 { // Marshal would compact them
		b = append(b[:len(b)-1], `,"messages":[`+strings.Join(messages, " , ")+"]}"...)
	}
	if out := h.run(b, "hook", "--strict"); len(out) > 0 {
		h.t.Fatalf("hook printed %q", out)
	}
}

func (h *hooked) messages(args ...string) string {
	h.t.Helper()
	return string(h.run(nil, append([]string{"messages", "-z"}, args...)...))
}

// change makes a random change to a path, as a tool would.
func (h *hooked) change(r *rand.Rand, name string) {
	h.t.Helper()
	file := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.t.Fatal(err)
	}
	var err error
	switch was, lerr := os.Lstat(file); {
	case lerr == nil && r.IntN(5) == 0:
		err = os.Remove(file)
	case lerr == nil && was.Mode().IsRegular() && r.IntN(4) == 0:
		err = os.Chmod(file, []os.FileMode{0o600, 0o755, 0o644, 0o400}[r.IntN(4)])
	case r.IntN(6) == 0:
		_ = os.Remove(file)
		err = os.Symlink(fmt.Sprintf("target-%d", r.IntN(3)), file)
	default:
		_ = os.Remove(file)
		content := make([]byte, r.IntN(3000))
		for i := range content {
			content[i] = byte(r.IntN(256))
		}
		err = os.WriteFile(file, content, 0o644)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// Six turns over 30 files, driven by hooks of separate processes: every rewind, its undo and
// its redo give the exact files and messages, and a fork has the parent's messages.
func TestSixTurnsThroughHooks(t *testing.T) {
	t.Parallel()
	const turns, files = 6, 30
	h := newHooked(t)
	r := rand.New(rand.NewPCG(6, 30))
	names := make([]string, files)
	for i := range names {
		names[i] = []string{"f%02d", "dir/f%02d", "dir/sub/f%02d", "other dir/ü%02d"}[i%4]
		names[i] = fmt.Sprintf(names[i], i)
	}
	for _, n := range names[:files/2] {
		h.change(r, n)
	}

	var at, said [turns + 1]string // files and messages at the start of each turn, and at the end
	h.event("session-start", nil, `{"role":"system","content":"be exact"}`)
	for k := range turns {
		at[k], said[k] = manifest(h.dir), h.messages()
		h.event("begin-turn", map[string]any{"prompt": fmt.Sprint("turn ", k), "turn_key": fmt.Sprint(k)},
			fmt.Sprintf("{ \"role\":\"user\",\n\"content\":\"turn %d \\u00e9\"}", k))
		for call := range 3 {
			var touched []string
			for range 5 {
				touched = append(touched, names[r.IntN(files)])
			}
			id := fmt.Sprintf("%d.%d", k, call)
			h.event("before-edit", map[string]any{"call": id, "tool": "edit", "paths": touched})
			for _, n := range touched {
				h.change(r, n)
			}
			h.event("after-edit", map[string]any{"call": id, "tool": "edit", "paths": touched})
		}
		h.event("end-turn", nil, fmt.Sprintf(`{"role":"assistant","n":1.%d0}`, k))
	}
	at[turns], said[turns] = manifest(h.dir), h.messages()

	expect := func(what, wantFiles, wantSaid string) {
		t.Helper()
		if got := manifest(h.dir); got != wantFiles {
			t.Fatalf("%s: files\n%s\nwant\n%s", what, got, wantFiles)
		}
		if got := h.messages(); got != wantSaid {
			t.Fatalf("%s: messages\n%q\nwant\n%q", what, got, wantSaid)
		}
	}
	for k := range turns + 1 {
		if testing.Short() && k%turns != 0 {
			continue // under the race detector each process takes long to start
		}
		if got := h.messages("--at", fmt.Sprint(k)); got != said[k] {
			t.Fatalf("messages --at %d: %q, want %q", k, got, said[k])
		}
		for _, scope := range []string{"both", "code", "conversation"} {
			wantFiles, wantSaid := at[k], said[k]
			switch scope {
			case "code":
				wantSaid = said[turns]
			case "conversation":
				wantFiles = at[turns]
			}
			what := fmt.Sprintf("rewind %d %s", k, scope)
			h.run(nil, "rewind", fmt.Sprint(k), scope)
			expect(what, wantFiles, wantSaid)
			h.run(nil, "undo-rewind")
			expect(what+", undo", at[turns], said[turns])
			h.run(nil, "redo-rewind")
			expect(what+", undo, redo", wantFiles, wantSaid)
			h.run(nil, "undo-rewind")
			expect(what+", undo, redo, undo", at[turns], said[turns])
		}
	}

	h.run(nil, "fork", "3", "--name", "branch")
	expect("fork 3", at[turns], said[3])
	h.run(nil, "switch", "-")
	expect("fork 3, switch back", at[turns], said[turns])
	h.run(nil, "verify", "--deep")
}
