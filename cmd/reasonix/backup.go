package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"reasonix/db"
	"reasonix/internal/place"
	"reasonix/internal/report"
	"reasonix/store"
)

func backupCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "backup",
		Usage:     "write a copy of the store, while agents work",
		ArgsUsage: "FILE",
		Category:  "store",
		Description: "FILE must not be there. The copy holds what was recorded when the command began; it is checked, and\n" +
			"is a store of its own: --store FILE reads it.",
		Action: a.backup,
	}
}

func restoreCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "restore-backup",
		Usage:     "put a backup in the place of the store",
		ArgsUsage: "FILE",
		Category:  "store",
		Description: "The present store is kept beside it under another name, and FILE stays. Files of the workspace are\n" +
			"not touched. Let no agent run meanwhile.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "other-folder", Usage: "take a backup that is of another folder"},
		},
		Action: a.restoreBackup,
	}
}

func (a *app) backup(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("backup takes the name of a new file")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	to, err := a.file(c.Args().First())
	if err != nil {
		return err
	}
	n, err := place.Backup(c.Context, w.Store, to)
	if errors.Is(err, fs.ErrExist) {
		return withHint(&taken{to}, "name a file that is not there")
	}
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	out := struct {
		Store  string `json:"store"`
		Backup string `json:"backup"`
		Size   int64  `json:"size"`
	}{report.Text(w.Store.Path()), report.Text(to), n}
	return a.emit(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s written to %s\nrestore with: reasonix restore-backup %s\n", size(n), printable(to), printable(to))
		return err
	})
}

func (a *app) restoreBackup(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("restore-backup takes a file that backup wrote")
	}
	file, err := a.file(c.Args().First())
	if err != nil {
		return err
	}
	p, err := a.restorePlace()
	if err != nil {
		return err
	}
	unlock, err := a.nobodyRuns(c.Context, p)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := p.Restore(c.Context, file, place.RestoreOptions{Now: a.now(), Other: c.Bool("other-folder")})
	if err != nil {
		return restoreError(err)
	}
	out := struct {
		Store string  `json:"store"`
		From  string  `json:"from"`
		Kept  *string `json:"kept"`
	}{Store: report.Text(r.Store), From: report.Text(r.From)}
	if r.Kept != "" {
		kept := report.Text(r.Kept)
		out.Kept = &kept
	}
	return a.emit(out, func(w io.Writer) error {
		t := &text{w: w, a: a}
		t.line("%s is the store of the workspace again", printable(file))
		if r.Kept != "" {
			t.line("the one before is kept as %s", printable(r.Kept))
		}
		return t.err
	})
}

// file is a file that a person names, relative to the folder that the command is about.
func (a *app) file(name string) (string, error) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Abs(filepath.Join(a.dir(), name))
}

// restorePlace is where a backup goes: the place of the workspace's store, also where none is yet.
func (a *app) restorePlace() (place.Place, error) {
	p, err := a.find()
	if err == nil && p.Root != "" {
		return p, nil
	}
	if err != nil && !errors.Is(err, place.ErrNoStore) {
		return p, err
	}
	root, err := place.Canonical(a.dir())
	if err != nil {
		return p, a.noFolder(err)
	}
	return a.where().Make(root)
}

// nobodyRuns waits for what is at work in the workspace, refuses while a turn runs, and keeps moves
// and captures out until unlock. A store that cannot be opened is no hindrance: it may be the reason
// for restoring.
func (a *app) nobodyRuns(ctx context.Context, p place.Place) (unlock func(), err error) {
	w, err := a.openAt(ctx, p, false)
	if err != nil {
		return func() {}, nil //nolint:nilerr // see above
	}
	if err := w.Rewind.Idle(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	unlock, err = w.Capture.LockExclusive(ctx)
	return unlock, errors.Join(err, w.Close())
}

func restoreError(err error) error {
	switch {
	case errors.Is(err, place.ErrOtherFolder):
		return withHint(err, "--other-folder takes it all the same; nothing was changed")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, db.ErrNotExist), errors.Is(err, store.ErrNoStore):
		return withHint(fmt.Errorf("restore: %w", err), "name a file that reasonix backup wrote")
	}
	return fmt.Errorf("restore: %w", err)
}

// taken is the name of a file that is there already.
type taken struct{ name string }

func (e *taken) Error() string { return printable(e.name) + " is there already" }

// Is makes it what a place that is taken is to programs.
func (e *taken) Is(target error) bool { return target == place.ErrOccupied }
