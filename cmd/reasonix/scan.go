package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/capture"
	"reasonix/internal/config"
	"reasonix/internal/view"
)

func scanCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "scan",
		Usage:    "capture the whole workspace now, so that the first command of an agent need not wait for it",
		Category: "agents",
		Description: "Makes the store where there is none. What lies under ignore rules is left out, and so is what is\n" +
			"over the limits: reasonix doctor shows both. Interrupt it at any time: the next scan goes on.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "max-file-size", Usage: "leave out files over `SIZE`, or none for no limit"},
			&cli.StringFlag{Name: "max-files", Usage: "cover at most `N` files, or none"},
			&cli.StringFlag{Name: "max-bytes", Usage: "read at most `SIZE` that no scan has seen, or none"},
			&cli.StringFlag{Name: "deadline", Usage: "stop after `TIME`, such as 30s"},
		},
		Action: a.scan,
	}
}

// scanFlags are the settings that flags of scan change for this time.
var scanFlags = map[string]string{
	"max-file-size": "capture.max_file_size", "max-files": "capture.max_files",
	"max-bytes": "capture.max_bytes", "deadline": "capture.scan_deadline",
}

type scanJSON struct {
	Files    int        `json:"files"` // covered
	Read     int        `json:"read"`  // of them, those that were new or changed since the last scan
	Bytes    int64      `json:"bytes"` // that were read
	New      int        `json:"new"`   // contents stored
	Complete bool       `json:"complete"`
	Gaps     []view.Gap `json:"gaps"`
}

func (a *app) scan(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("scan takes no arguments; -C names another workspace")
	}
	set, err := config.Load(a.env)
	for flag, name := range scanFlags {
		if err == nil && c.IsSet(flag) {
			err = set.Set(name, c.String(flag))
		}
	}
	if err != nil {
		return err
	}
	w, err := a.openOrMake(c.Context, func(root string) error { return refusal(a.scanning(set, root)) })
	if err != nil {
		return err
	}
	defer w.Close()
	w.Capture.Scanning = a.scanning(set, w.Root.Path())
	if err := refusal(w.Capture.Scanning); err != nil {
		return err
	}
	out := scanJSON{}
	progress := a.progress("files stored")
	w.Capture.Scanning.Progress = func(contents int, _ int64) {
		if out.New = contents; progress != nil {
			progress(int64(contents), -1)
		}
	}
	found, err := scanLocked(c.Context, w.Capture)
	if progress != nil {
		progress(-1, -1)
	}
	if err != nil {
		return err
	}
	out.Files, out.Read, out.Bytes, out.Complete = found.Files, found.Read, found.Bytes, found.Complete
	out.Gaps = view.Gaps(found.Gaps)
	return a.emit(out, func(to io.Writer) error { return a.printScan(to, out) })
}

// errNotScanned is returned where a workspace is never scanned.
var errNotScanned = errors.New("this workspace is not scanned")

// scanLocked scans while no operation moves files.
func scanLocked(ctx context.Context, c *capture.Capturer) (capture.Scanned, error) {
	unlock, err := c.LockShared(ctx)
	if err != nil {
		return capture.Scanned{}, err
	}
	defer unlock()
	return c.Scan(ctx, "", false)
}

func (a *app) printScan(w io.Writer, s scanJSON) error {
	t := &text{w: w, a: a}
	t.line("%s covered, %d read (%s), %s stored", count(s.Files, "file"), s.Read, size(s.Bytes), count(s.New, "content"))
	if t.err != nil {
		return t.err
	}
	return a.writeGaps(w, s.Gaps)
}

// refusal says that a workspace is not scanned, where it is not.
func refusal(s capture.Scanning) error {
	if s.Never == "" {
		return nil
	}
	return withHint(fmt.Errorf("%w: %s", errNotScanned, s.Never), "edits that an agent's tools announce are captured nevertheless")
}
