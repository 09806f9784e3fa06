package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/internal/config"
	"reasonix/internal/move"
	"reasonix/internal/place"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// app is one run of the program: its streams and its global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time
	env            func(string) string

	workspace  string // --workspace; "" means the current folder
	storeFile  string // --store
	sessionRef string // --session
	json       bool
	quiet      bool
	verbose    bool
	color      string // --color: auto, always or never
	noPager    bool

	// dash is how many arguments came before "--"; -1 when there was none.
	dash int
}

func (a *app) globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "workspace", Aliases: []string{"C"}, Usage: "work as if started in `DIR`", Destination: &a.workspace},
		&cli.StringFlag{Name: "store", Usage: "use the store in `FILE`", Destination: &a.storeFile},
		&cli.StringFlag{Name: "session", Aliases: []string{"s"}, Usage: "`ID`, its beginning, a name or \"current\"", Destination: &a.sessionRef},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON object", Destination: &a.json},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print results only", Destination: &a.quiet},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print all of long lists", Destination: &a.verbose},
		&cli.StringFlag{Name: "color", Usage: "auto, always or never", Value: "auto", Destination: &a.color},
		&cli.BoolFlag{Name: "no-pager", Usage: "never start a pager", Destination: &a.noPager},
	}
}

func (a *app) checkGlobals(*cli.Context) error {
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return badUsage("unknown value %q of --color: it is auto, always or never", a.color)
}

// where says where to look for stores, as flags and environment have it.
func (a *app) where() place.Where {
	w := place.FromEnv(a.env)
	if a.storeFile != "" {
		w.Store = a.storeFile
	}
	return w
}

// dir is the folder that the command is about.
func (a *app) dir() string {
	if a.workspace != "" {
		return a.workspace
	}
	return "."
}

// find finds the store that the command is about.
func (a *app) find() (place.Place, error) {
	p, err := a.where().Find(a.dir())
	return p, a.noFolder(err)
}

// noFolder says of a folder that is not there how it came to be meant.
func (a *app) noFolder(err error) error {
	switch {
	case !errors.Is(err, place.ErrNoFolder):
		return err
	case a.workspace != "":
		return withHint(err, "-C names the workspace or a folder in it")
	}
	return withHint(fmt.Errorf("the current folder is not there any more: %w", place.ErrNoFolder),
		"cd to a folder that is, or name one with -C")
}

// world is an open workspace with its store.
type world struct {
	Store   *store.Store
	Root    *workspace.Root
	Capture *capture.Capturer
	Rewind  *rewind.Engine
	Place   place.Place
}

// open finds the store of the workspace and opens both, for commands that need them. What a
// crashed operation left is taken back first, and told on standard error. The caller closes
// the world.
func (a *app) open(c *cli.Context) (*world, error) {
	p, err := a.find()
	if err != nil {
		return nil, err
	}
	return a.openWhole(c.Context, p, false)
}

// openWhole opens a place where no crashed operation is left.
func (a *app) openWhole(ctx context.Context, p place.Place, create bool) (*world, error) {
	w, err := a.openAt(ctx, p, create)
	if err != nil {
		return nil, err
	}
	if err := a.recover(ctx, w); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (a *app) openAt(ctx context.Context, p place.Place, create bool) (*world, error) {
	set, err := config.Load(a.env)
	if err != nil {
		return nil, err
	}
	o, err := p.Open(ctx, place.Options{Create: create, Dir: a.workspace, Now: a.now})
	if err != nil {
		return nil, err
	}
	w := &world{Store: o.Store, Root: o.Root, Place: o.Place}
	w.Capture = &capture.Capturer{Store: o.Store, Root: o.Root, Scanning: a.scanning(set, o.Root.Path())}
	w.Rewind = rewind.New(w.Capture, rewind.Options{CallTimeout: set.CallTimeout})
	return w, nil
}

// scanning says how the workspace at root is scanned.
func (a *app) scanning(set config.Settings, root string) capture.Scanning {
	s := scanningOf(set)
	if why := a.where().NotScanned(root); why != "" {
		s.Never = why
	}
	return s
}

// scanningOf is what settings say about scans.
func scanningOf(set config.Settings) capture.Scanning {
	s := capture.Scanning{
		Always: set.Scan == config.ScanAlways, MaxFile: set.MaxFile, MaxFiles: set.MaxFiles, MaxBytes: set.MaxBytes,
		Deadline: set.ScanDeadline,
	}
	if set.Scan == config.ScanNever {
		s.Never = "capture.scan is never"
	}
	return s
}

// recover takes back what crashed operations did, and closes turns of agents that crashed.
func (a *app) recover(ctx context.Context, w *world) error {
	done, err := w.Rewind.Recover(ctx)
	for _, r := range done {
		a.note("operation %d (%s) was interrupted; it was taken back and the files are as before it", r.Operation.ID, r.Operation.Kind)
		for _, p := range r.Left {
			a.note("  left as it is, since somebody changed it meanwhile: %s", shown(p))
		}
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	settled, err := agent.Settle(ctx, w.Capture)
	for _, id := range settled {
		a.note("the last turn of session %s was interrupted; it can be rewound: reasonix -s %s rewind", id, id)
	}
	return err
}

// Close closes the workspace and the store.
func (w *world) Close() error { return errors.Join(w.Root.Close(), w.Store.Close()) }

// Recorder records into the world's store.
func (w *world) Recorder() *agent.Recorder { return agent.NewRecorder(w.Capture) }

// mover makes the moves of the world.
func (w *world) mover() move.Mover { return move.Mover{Capture: w.Capture, Engine: w.Rewind} }

// session resolves what --session, or a part of TURN, names; "" means the current one.
func (w *world) session(ctx context.Context, ref string) (s store.Session, err error) {
	err = w.Store.View(ctx, func(tx *store.Tx) error {
		s, err = tx.FindSession(ref)
		return err
	})
	return s, err
}

// path resolves a path argument, which is relative to the folder that the command runs in.
func (a *app) path(w *world, name string) (store.Path, error) {
	cwd, err := place.Canonical(a.dir())
	if err != nil {
		return "", err
	}
	return w.Root.Resolve(cwd, name)
}

// note writes a message for a person.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// onTerminal reports whether a stream is a terminal.
func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isTerminal(f)
}
