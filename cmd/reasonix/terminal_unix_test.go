//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// terminal is a process of the program on a terminal of its own, with what a person sees of it.
type terminal struct {
	t   *testing.T
	pty *os.File
	cmd *exec.Cmd
	vt  vt10x.Terminal

	mu  sync.Mutex
	raw bytes.Buffer // everything that was printed
	eof chan struct{}
}

func newTerminal(t *testing.T, cmd *exec.Cmd, columns, rows uint16) *terminal {
	t.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	s := &terminal{t: t, pty: f, cmd: cmd, vt: vt10x.New(vt10x.WithSize(int(columns), int(rows)), vt10x.WithWriter(io.Discard)), eof: make(chan struct{})}
	go func() {
		defer close(s.eof)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			s.mu.Lock()
			s.raw.Write(buf[:n])
			_, _ = s.vt.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return // on Linux an EIO is the end
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		f.Close()
		<-s.eof
	})
	return s
}

// screen is what a person sees, without trailing blanks.
func (s *terminal) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.vt.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func (s *terminal) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// see waits until all texts are on the screen.
func (s *terminal) see(texts ...string) {
	s.t.Helper()
	s.wait("never seen: "+strings.Join(texts, " | "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// idle waits until all texts are on the screen and an empty line waits for the next prompt.
func (s *terminal) idle(texts ...string) {
	s.t.Helper()
	s.see(texts...)
	s.wait("no empty prompt", func(screen string) bool { return strings.HasSuffix(screen, "\n>\n") })
}

func (s *terminal) wait(failed string, done func(screen string) bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // a poll
		screen := s.screen()
		if done(screen) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s\n%s", failed, screen)
		}
	}
}

// What keys send.
const (
	keyEnter = "\r"
	keyUp    = "\x1b[A"
	keyDown  = "\x1b[B"
	keyEsc   = "\x1b"
	keyTab   = "\t"
	keyCtrlC = "\x03"
	keyCtrlD = "\x04"
	keyCtrlU = "\x15"
)

func (s *terminal) press(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		if _, err := s.pty.WriteString(k); err != nil {
			s.t.Fatalf("%v\n%s", err, s.screen())
		}
	}
}

// ends waits for the end of the process and checks that the terminal is left as it was.
func (s *terminal) ends(code int) {
	s.t.Helper()
	select {
	case <-s.eof:
	case <-time.After(20 * time.Second):
		s.t.Fatalf("it does not end\n%s", s.screen())
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("exit code %d, want %d\n%s", got, code, s.screen())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vt.Mode()&vt10x.ModeAltScreen != 0 || !s.vt.CursorVisible() {
		s.t.Fatalf("the terminal was not given back:\n%q", s.raw.String())
	}
}
