// Package tool holds the tools that the program's own agent gives to a model: reading, searching,
// editing and moving files of one workspace, and running commands.
//
// A call is prepared first, which checks its arguments and plans it without changing anything; what
// it will write is then known, so that it can be shown, and captured, before it runs. Everything stays
// below the root: names that lead out of it, through links too, are refused, as are .git and what
// Options protect. Errors are texts for the model: they say what to do differently.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind says what a tool may do.
type Kind uint8

// The kinds.
const (
	Read Kind = 1 // changes nothing, and may run beside others
	Edit Kind = 2 // changes the paths that it names beforehand
	Exec Kind = 3 // runs a command, which may change anything
)

// ErrArguments is returned for arguments that are not as the schema wants them.
var ErrArguments = errors.New("invalid arguments")

// Tool is one tool. It is safe for concurrent use.
type Tool interface {
	Name() string
	Description() string
	// Schema is the JSON schema of the arguments: the same bytes each time.
	Schema() json.RawMessage
	Kind() Kind
	// Prepare checks the arguments and plans the call. It changes nothing.
	Prepare(ctx context.Context, args json.RawMessage) (Call, error)
}

// Call is a prepared call, good for one Run.
type Call interface {
	// Paths are those that Run may write, relative to the root with '/'; none of other kinds.
	Paths() []string
	// Preview says what Run would do.
	Preview(ctx context.Context) (Preview, error)
	// Run does it. An edit refuses when a file is not as it was prepared for. After an error of an
	// edit nothing of it was done, unless the error says so.
	Run(ctx context.Context) (Result, error)
}

// Preview is what a person approves.
type Preview struct {
	Title   string // such as "edit src/main.go"
	Diff    string // unified, of an edit
	Command string // of a command
}

// Result is what a call gave.
type Result struct {
	Text string // for the model
	// Failed says that what was asked for did not happen although the call ran: a command that
	// exited with an error.
	Failed bool
}

// Options say where tools work, and their limits. Zero limits mean the defaults.
type Options struct {
	Root      string        // the workspace
	Protected []string      // absolute paths that are never written, such as the store
	MaxText   int           // bytes that a result gives to the model; 0 means 48 KiB
	MaxFile   int64         // bytes of a file that is read or edited as text; 0 means 8 MiB
	Timeout   time.Duration // of a command that names none; 0 means 2 minutes
	MaxTime   time.Duration // that a command may ask for; 0 means 10 minutes
	Shell     string        // that runs commands; "" means /bin/sh, or cmd.exe on Windows
	Env       []string      // of commands; nil means that of the process
}

func (o Options) withDefaults() Options {
	if o.MaxText <= 0 {
		o.MaxText = 48 << 10
	}
	if o.MaxFile <= 0 {
		o.MaxFile = 8 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.MaxTime <= 0 {
		o.MaxTime = 10 * time.Minute
	}
	return o
}

// All are the tools, in a fixed order.
func All(o Options) []Tool {
	o = o.withDefaults()
	return []Tool{
		readFile(o), listDir(o), globFiles(o), grepFiles(o),
		writeFile(o), editFile(o), multiEdit(o), moveFile(o), deleteFile(o), bash(o),
	}
}

// simple is a tool whose arguments are an A.
type simple[A any] struct {
	name, description, schema string
	kind                      Kind
	prepare                   func(ctx context.Context, args A) (Call, error)
}

func (s *simple[A]) Name() string            { return s.name }
func (s *simple[A]) Description() string     { return s.description }
func (s *simple[A]) Schema() json.RawMessage { return json.RawMessage(s.schema) }
func (s *simple[A]) Kind() Kind              { return s.kind }

func (s *simple[A]) Prepare(ctx context.Context, raw json.RawMessage) (Call, error) {
	var args A
	if err := decode(raw, &args); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	c, err := s.prepare(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return c, nil
}

// reading is a call that changes nothing.
type reading struct {
	title string
	run   func(ctx context.Context) (string, error)
}

func (r *reading) Paths() []string                          { return nil }
func (r *reading) Preview(context.Context) (Preview, error) { return Preview{Title: r.title}, nil }

func (r *reading) Run(ctx context.Context) (Result, error) {
	text, err := r.run(ctx)
	return Result{Text: text}, err
}
