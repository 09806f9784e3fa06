package tool

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

type bashArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds"`
}

func bash(o Options) Tool {
	return &simple[bashArgs]{
		name: "bash", kind: Exec,
		description: "Run a shell command in the workspace. It has no input and no terminal; what it prints is returned, the middle of long output left out. " +
			"It is ended, with all that it started, when its time is over.",
		schema: `{"type":"object","properties":{"command":{"type":"string"},"timeout_seconds":{"type":"integer","minimum":1,"description":"120 when left out"}},` +
			`"required":["command"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a bashArgs) (Call, error) {
			r := &running{o: o, command: a.Command, timeout: o.Timeout}
			switch {
			case a.Command == "":
				return nil, badArgs("command is empty")
			case a.Timeout < 0:
				return nil, badArgs("timeout_seconds is above 0")
			case a.Timeout > 0:
				r.timeout = min(time.Duration(min(a.Timeout, 1<<20))*time.Second, o.MaxTime)
			}
			return r, nil
		},
	}
}

// running is a call that runs a command.
type running struct {
	o       Options
	command string
	timeout time.Duration
}

func (r *running) Paths() []string { return nil }

func (r *running) Preview(context.Context) (Preview, error) {
	return Preview{Title: "run a command", Command: r.command}, nil
}

// grace is how long what a command printed is waited for after it has ended: something that it left
// running in the background may hold its output open for ever.
const grace = 2 * time.Second

func (r *running) Run(ctx context.Context) (Result, error) {
	timed, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	out := &capped{most: r.o.MaxText}
	cmd := exec.CommandContext(timed, r.shell(), r.flag(), r.command)
	cmd.Dir, cmd.Env = r.o.Root, r.o.Env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = grace
	group(cmd)
	err := cmd.Run()
	killGroup(cmd)
	text := out.String()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{Text: text + "\n(the command was ended: interrupted)", Failed: true}, ctx.Err()
	case timed.Err() != nil:
		return Result{Text: fmt.Sprintf("%s\n(the command was ended after %v)", text, r.timeout), Failed: true}, nil
	case errors.As(err, &exit):
		return Result{Text: fmt.Sprintf("%s\n(exit code %d)", text, exit.ExitCode()), Failed: true}, nil
	case errors.Is(err, exec.ErrWaitDelay): // something in the background holds the output
		return Result{Text: text + "\n(a process that it started was still running, and was ended)"}, nil
	case err != nil:
		return Result{}, fmt.Errorf("run the command: %w", err)
	case text == "":
		return Result{Text: "(no output)"}, nil
	}
	return Result{Text: text}, nil
}

// capped keeps the beginning and the end of what is written to it.
type capped struct {
	mu   sync.Mutex
	most int
	head []byte
	tail []byte // a ring, once it is full
	all  int64
}

func (c *capped) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += int64(len(b))
	n := min(len(b), c.most/2-len(c.head))
	c.head = append(c.head, b[:n]...)
	c.tail = append(c.tail, b[n:]...)
	if len(c.tail) > c.most { // cut now and then, not at each write
		c.tail = append(c.tail[:0:0], c.tail[len(c.tail)-c.most/2:]...)
	}
	return len(b), nil
}

func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail
	if len(tail) > c.most/2 {
		tail = tail[len(tail)-c.most/2:]
	}
	if left := c.all - int64(len(c.head)+len(tail)); left > 0 {
		return valid(string(c.head)) + fmt.Sprintf("\n(… %d bytes left out …)\n", left) + valid(string(tail))
	}
	return valid(string(c.head) + string(tail))
}
