//go:build unix

package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reasonix/internal/llm/fakellm"
	"reasonix/store"
)

// killed is a workspace in which the agent runs as a process of its own, against a fake server in
// this one.
type killed struct {
	t    *testing.T
	dir  string
	env  []string
	fake *fakellm.Server
}

func newKilled(t *testing.T) *killed {
	base := t.TempDir()
	k := &killed{t: t, dir: filepath.Join(base, "w"), fake: fakellm.New(fakellm.Options{Key: "secret-key", Chunk: 64 << 10})}
	srv := httptest.NewServer(k.fake)
	t.Cleanup(func() { k.fake.Close(); srv.CloseClientConnections(); srv.Close() })
	k.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + base, "XDG_STATE_HOME=" + filepath.Join(base, "state"),
		"DEEPSEEK_API_KEY=secret-key", "REASONIX_BASE_URL=" + srv.URL, "REASONIX_APPROVE=full",
	}
	if err := os.Mkdir(k.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *killed) command(args ...string) *exec.Cmd {
	cmd := exec.Command("reasonix", args...)
	cmd.Dir, cmd.Env = k.dir, k.env
	return cmd
}

func (k *killed) do(args ...string) string {
	k.t.Helper()
	out, err := k.command(args...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (k *killed) until(what string, done func() bool) {
	k.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) { // a poll
		if time.Now().After(end) {
			k.t.Fatalf("%s never came", what)
		}
	}
}

func fakeCall(name string, args map[string]string) fakellm.Reply {
	b, _ := json.Marshal(args)
	return fakellm.Reply{Reasoning: "hm", ToolCalls: []fakellm.Call{{Name: name, Arguments: b}}}
}

// TestRunKilled kills the agent in the middle of an answer, of a command and of an edit. The next
// command finds the turn interrupted, rewinds it exactly, and the conversation goes on.
func TestRunKilled(t *testing.T) {
	write := fakeCall("write_file", map[string]string{"path": "a", "content": "changed\n"})
	for name, c := range map[string]struct {
		replies []fakellm.Reply
		ready   func(k *killed) bool
	}{
		"answer": {
			[]fakellm.Reply{write, {Reasoning: "a long thought", Text: "an answer that never ends", Stall: 4}},
			func(k *killed) bool { return len(k.fake.Requests()) == 4 },
		},
		"command": {
			[]fakellm.Reply{write, fakeCall("bash", map[string]string{"command": "echo half > a; echo new > b; echo $$ > ready; exec sleep 30"})},
			func(k *killed) bool { return k.orphan() != 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKilled(t)
			k.fake.Add(fakeCall("write_file", map[string]string{"path": "a", "content": "first\n"}), fakellm.Reply{Text: "ok"})
			k.do("run", "begin")
			start := manifest(k.dir)
			k.fake.Add(c.replies...)
			run := k.command("run", "be killed")
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			k.until("the moment", func() bool { return c.ready(k) })
			if err := run.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = run.Wait()
			if pid := k.orphan(); pid != 0 { // nothing ends what a killed agent started
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			k.goesOn(1, start)
		})
	}
}

// TestRunInterrupted: Ctrl-C ends the turn in an answer and in a command, which dies with all that
// it started, and exits with 130.
func TestRunInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		reply fakellm.Reply
		ready func(k *killed) bool
	}{
		"answer":  {fakellm.Reply{Text: "an answer that never ends", Stall: 4}, func(k *killed) bool { return len(k.fake.Requests()) == 1 }},
		"command": {fakeCall("bash", map[string]string{"command": "echo x > b; sh -c 'echo $$ > ready; exec sleep 30'"}), func(k *killed) bool { return k.orphan() != 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKilled(t)
			start := manifest(k.dir)
			k.fake.Add(c.reply)
			run := k.command("run", "be interrupted")
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			k.until("the moment", func() bool { return c.ready(k) })
			if err := run.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := run.Wait(); exitCode(err) != exitInterrupted {
				t.Errorf("ended with %v", err)
			}
			if pid := k.orphan(); pid != 0 {
				k.until("the end of the command", func() bool { return syscall.Kill(pid, 0) != nil })
			}
			k.goesOn(0, start)
		})
	}
}

// goesOn checks what has to hold after a kill in a turn, before which the workspace was as start.
func (k *killed) goesOn(turn int, start string) {
	k.t.Helper()
	n := strconv.Itoa(turn)
	out := k.do("log", "--limit", "1")
	if !strings.Contains(out, "turn "+n) || !strings.Contains(out, "interrupted") {
		k.t.Errorf("log: %s", out)
	}
	k.do("rewind", n, "both")
	if got := manifest(k.dir); got != start {
		k.t.Errorf("rewound:\n%swant\n%s", got, start)
	}
	k.do("undo-rewind")
	k.fake.Add(fakellm.Reply{Text: "went on"})
	if out := k.do("run", "go on"); !strings.Contains(out, "went on") {
		k.t.Errorf("run: %s", out)
	}
	if refused := k.fake.Refused(); len(refused) > 0 {
		k.t.Errorf("refused: %v", refused)
	}
	k.do("rewind", n, "both")
	if got := manifest(k.dir); got != start {
		k.t.Errorf("rewound after all:\n%swant\n%s", got, start)
	}
	k.do("verify", "--deep")
	k.secretIsNowhere()
}

// orphan is the command that waits in the workspace; 0 before it does.
func (k *killed) orphan() int {
	b, _ := os.ReadFile(filepath.Join(k.dir, "ready"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// TestRunKilledInEdit kills the agent while an edit is announced and has not ended, which takes a
// few attempts to hit.
func TestRunKilledInEdit(t *testing.T) {
	k := newKilled(t)
	k.fake.Add(fakeCall("write_file", map[string]string{"path": "a", "content": "first\n"}), fakellm.Reply{Text: "ok"})
	k.do("run", "begin")
	start := manifest(k.dir)
	s, err := store.Open(t.Context(), strings.TrimSpace(k.do("store")), store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	editing := func() (n int) {
		err := s.View(t.Context(), func(tx *store.Tx) error {
			all, err := tx.Running()
			n = len(all)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	big := strings.Repeat("a line of a large file\n", 60_000)
	for range 50 {
		k.fake.Add(fakeCall("write_file", map[string]string{"path": "a", "content": big}), fakellm.Reply{Text: "too late"})
		run := k.command("run", "be killed")
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = run.Wait(); close(ended) }()
		for live := true; live && editing() == 0; {
			select {
			case <-ended:
				live = false
			default:
			}
		}
		_ = run.Process.Kill() // it may have ended
		<-ended
		if editing() > 0 {
			k.fake.Drop()
			k.goesOn(1, start)
			return
		}
		k.fake.Drop()
		k.do("rewind", "1", "both")
	}
	t.Fatal("no kill came in the middle of an edit")
}

// secretIsNowhere looks for the key in all that was stored.
func (k *killed) secretIsNowhere() {
	k.t.Helper()
	err := filepath.WalkDir(filepath.Dir(k.dir), func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.Contains(string(b), "secret-key") {
			k.t.Errorf("the key is in %s", name)
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
}
