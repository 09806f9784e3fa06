package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/place"
	"reasonix/internal/retain"
	"reasonix/rewind"
	"reasonix/store"
)

// maxEvent bounds an event, in bytes.
const maxEvent = 64 << 20

// DefaultDeadline is how long a hook may take: agents wait for it, some block the tool when it
// is late.
const DefaultDeadline = 3 * time.Second

// Options say what a hook reads and where it records.
type Options struct {
	In    io.Reader
	Where place.Where
	// Workspace is a folder to record in when the event does not say; "" means the current one.
	Workspace string
	// Adapter reads the event; nil means Generic.
	Adapter Adapter
	// Deadline bounds the whole; 0 means DefaultDeadline.
	Deadline time.Duration
	// CallTimeout is that of rewind.Options.
	CallTimeout time.Duration
	// Scanning says how commands are scanned for.
	Scanning capture.Scanning
	// Retain says what the store keeps.
	Retain retain.Policy
	// Problems are settings that could not be used; they are told as warnings.
	Problems error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Reply says what was recorded.
type Reply struct {
	Version  int      `json:"v"`
	OK       bool     `json:"ok"`
	Session  string   `json:"session"` // ours; it continues the session in later events
	Turn     int      `json:"turn"`    // the last one so far; -1 before turn 0
	Captured int      `json:"captured"`
	Warnings []string `json:"warnings"`
}

// run is one event being recorded.
type run struct {
	Options
	place    *place.Opened
	capture  *capture.Capturer
	recorder *agent.Recorder
	session  store.SessionID
	cwd      string // absolute, for relative paths
	root     string
	wide     bool     // the root is $HOME or /
	paths    []string // that the event's edit names
	reserve  time.Duration
	reply    Reply
	kind     Kind // for the log
	source   string
}

// Run reads one event and records it. It never panics and ends soon after the deadline. What
// goes wrong is returned, and is a line in hook.log too; the reply is valid in either case.
func Run(ctx context.Context, o Options) (reply Reply, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Adapter == nil {
		o.Adapter = Generic
	}
	r := &run{Options: o, reply: Reply{Version: 1, Turn: -1, Warnings: []string{}}}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
			r.log("%v at %s", err, frame(debug.Stack()))
		} else if err != nil {
			r.log("%v", err)
		}
		if err != nil {
			r.warnings("%v", err)
		}
		r.reply.OK = err == nil
		reply = r.reply
	}()
	// A part is kept back to note, in time, what there was no time for.
	r.reserve = min(o.Deadline/5, 200*time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, o.Deadline-r.reserve)
	defer cancel()
	return r.reply, r.do(ctx)
}

func (r *run) do(ctx context.Context) (err error) {
	raw, err := readAll(ctx, r.In)
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	e, err := r.Adapter(raw)
	if err != nil {
		return err
	}
	r.kind, r.source = e.Kind, e.source()
	if r.Problems != nil {
		r.warn("%v", r.Problems)
	}
	if err := r.open(ctx, e); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.place.Close()) }()
	c := &capture.Capturer{Store: r.place.Store, Root: r.place.Root, Scanning: r.Scanning}
	if why := r.Where.NotScanned(r.root); why != "" {
		c.Scanning.Never = why
	}
	r.capture, r.recorder = c, agent.NewRecorder(c)
	done, rerr := rewind.New(c, rewind.Options{CallTimeout: r.CallTimeout}).Recover(ctx)
	for _, d := range done {
		r.warn("operation %d (%s) was interrupted and was taken back", d.Operation.ID, d.Operation.Kind)
		for _, p := range d.Left {
			r.warn("somebody changed %s meanwhile, it was left as it is", short(string(p)))
		}
	}
	// An operation that could not be taken back is no reason not to record.
	err = errors.Join(rerr, r.record(ctx, e))
	before := e.Kind == BeforeEdit || e.Kind == BeforeTool || e.Kind == BeforeExec
	if isLate(err) || err != nil && before {
		r.missed(e, err)
	}
	return err
}

// readAll reads to the end of in, or until ctx ends: a pipe that nobody closes must not hang
// the agent.
func readAll(ctx context.Context, in io.Reader) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		if r.err == nil && len(r.b) > maxEvent {
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, maxEvent)
		}
		return r.b, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open finds the workspace of an event: the nearest around its cwd that has a store, else a new
// one at its first root or its cwd.
func (r *run) open(ctx context.Context, e Event) error {
	dir := e.Cwd
	if dir == "" {
		dir = r.Workspace
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r.cwd = abs
	p, err := r.Where.Find(abs)
	create := errors.Is(err, place.ErrNoStore) && e.begins()
	if create {
		root := abs
		if len(e.Roots) > 0 {
			root = e.Roots[0]
		}
		if root, err = place.Canonical(root); err != nil {
			return err
		}
		p, err = r.Where.Make(root)
	}
	if err != nil {
		return err
	}
	r.place, err = p.Open(ctx, place.Options{Create: e.begins(), Now: r.Now, OneConnection: true})
	if err != nil {
		return fmt.Errorf("open the store of %s: %w", abs, err)
	}
	r.root = r.place.Root.Path()
	if r.wide = r.Where.Wide(r.root); r.wide && create {
		r.log("the workspace is %s: edits that tools announce are captured, it is never scanned", r.root)
	}
	return nil
}

// warn tells a problem in the reply and in the log.
func (r *run) warn(format string, args ...any) {
	r.warnings(format, args...)
	r.log(format, args...)
}

// warnings tells something in the reply alone.
func (r *run) warnings(format string, args ...any) {
	r.reply.Warnings = append(r.reply.Warnings, fmt.Sprintf(format, args...))
}

func (r *run) log(format string, args ...any) {
	what := "event"
	if r.kind != "" {
		what = r.source + " " + string(r.kind)
	}
	r.Where.Log(r.Now(), what+": "+fmt.Sprintf(format, args...))
}

// frame is where a panic happened: the first line of a stack in this program's own code.
func frame(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+3 < len(lines) {
			return strings.TrimSpace(lines[i+3])
		}
	}
	return "an unknown place"
}
