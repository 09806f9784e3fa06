package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/rewind"
	"reasonix/store"
)

// What rewind, undo, redo, switch and fork have in common: each is a request that is planned,
// shown, and applied unless it is a dry run.

// moveFlags are the flags of a move that may write files; back says how that is undone.
func moveFlags(back string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "show what would be done, change nothing"},
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "go on over conflicts and close a running turn; " + back},
		&cli.BoolFlag{Name: "skip-conflicts", Usage: "leave conflicting paths alone and do the rest"},
	}
}

// move plans a request, and applies it unless that is not wanted.
func (a *app) move(c *cli.Context, w *world, r rewind.Request) error {
	r.Force, r.Skip = c.Bool("force"), c.Bool("skip-conflicts")
	if r.Force && r.Skip {
		return badUsage("--force and --skip-conflicts contradict each other")
	}
	dry := c.Bool("dry-run")
	res, err := w.mover().Do(c.Context, r, dry)
	if err != nil && res.Session == "" {
		return busyHint(r, err)
	}
	ctx := c.Context
	if err == nil && !dry {
		// What is done is told, even to someone who interrupts just now.
		ctx = context.WithoutCancel(ctx)
	}
	return a.emitMove(ctx, w, res, dry, err)
}

// emitMove prints the result of a move. err, if any, is why it did not happen.
func (a *app) emitMove(ctx context.Context, w *world, res rewind.Result, dry bool, err error) error {
	out := report.NewMove(res, dry)
	switch {
	case err != nil && a.json:
		return &withResult{error: conflictError(res, err), result: out}
	case err != nil:
		if perr := a.printConflicts(a.stdout, res); perr != nil {
			return perr
		}
		return conflictError(res, err)
	}
	return a.emit(out, func(to io.Writer) error { return a.printMove(ctx, to, w, res, dry) })
}

func conflictError(res rewind.Result, err error) error {
	n := len(res.Conflicts)
	if !errors.Is(err, rewind.ErrConflict) || n == 0 {
		return err
	}
	err = fmt.Errorf("%s; nothing was changed: %w", count(n, "conflict"), err)
	const skip = "--skip-conflicts leaves those paths alone"
	final := true
	for _, c := range res.Conflicts {
		final = final && c.Final
	}
	switch {
	case final:
		return withHint(err, "%s; --force does not help here", skip)
	case res.Kind == store.OpFork || res.Kind == store.OpSwitch: // undo passes these over
		return withHint(err, "--force goes on (reasonix switch - brings the files back), %s", skip)
	case res.Kind == store.OpUndo:
		return withHint(err, "--force goes on (reasonix redo-rewind brings all back), %s", skip)
	}
	return err
}

// busyHint says that it is another session which is busy, where it is.
func busyHint(r rewind.Request, err error) error {
	var busy *rewind.BusyError
	if errors.As(err, &busy) && busy.Session != r.Session {
		return withHint(err, "that is another session than %s; wait for it to end, or --force closes its turn at once", r.Session)
	}
	return err
}
