package main

import (
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"reasonix/internal/report"
	"reasonix/internal/view"
	"reasonix/store"
)

func diffCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show differences between checkpoints, or a checkpoint and the disk",
		ArgsUsage: "[A [B]] [-- PATH...]",
		Category:  "history",
		Description: "Without B, A is compared with the disk; without A, that is the latest checkpoint.\n" +
			"The number after the last turn stands for where that turn ended.\n" +
			"The text is what patch -p1 applies in the workspace's root. Binary files and very large ones are\n" +
			"only named in it: rewind and cat restore them.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stat", Usage: "only how much each file changed"},
			&cli.BoolFlag{Name: "name-status", Usage: "only names, each with what happened to it"},
		},
		Action: a.diff,
	}
}

func (a *app) diff(c *cli.Context) error {
	if c.Bool("stat") && c.Bool("name-status") {
		return badUsage("--stat and --name-status are two ways to show one thing")
	}
	turns, names, err := a.diffArgs(c.Context, c.Args().Slice())
	if err != nil {
		return err
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	var sides [2]view.Side
	sides[1].Disk = len(turns) < 2
	for i, t := range turns {
		s, n, err := a.at(c.Context, w, t)
		if err != nil {
			return err
		}
		sides[i] = view.Side{Session: s.ID, Turn: n}
	}
	var only []store.Path
	for _, name := range names {
		p, err := a.pathOrRoot(w, name)
		if err != nil {
			return err
		}
		only = append(only, p)
	}
	v := view.New(w.Capture)
	pairs, err := v.Pairs(c.Context, sides[0], sides[1], only)
	if errors.Is(err, view.ErrNoPath) && a.dash < 0 {
		err = withHint(err, "%s; paths come after --; two turns are two words: reasonix diff 1 2", hintTurn)
	}
	if err != nil {
		return err
	}
	return a.writeDiff(c, v, sides, pairs)
}

// diffArgs tells turns from paths: what comes after "--" is a path, as is what has not the
// form of a turn.
func (a *app) diffArgs(ctx context.Context, args []string) (turns, names []string, err error) {
	before := len(args)
	if a.dash >= 0 {
		before = min(a.dash, len(args))
	}
	for i, arg := range args {
		switch {
		case i < before && len(names) == 0 && a.namesTurn(ctx, arg):
			turns = append(turns, arg)
		case i < before && a.dash >= 0:
			_, err := parseTurn(arg)
			return nil, nil, err
		default:
			names = append(names, arg)
		}
	}
	if len(turns) > 2 {
		return nil, nil, badUsage("diff compares two checkpoints, not %d; paths come after --", len(turns))
	}
	if len(turns) == 0 {
		turns = []string{"latest"}
	}
	return turns, names, nil
}

func (a *app) writeDiff(c *cli.Context, v *view.Viewer, sides [2]view.Side, pairs []view.Pair) error {
	short := c.Bool("stat") || c.Bool("name-status")
	if short {
		pairs = view.JoinRenames(pairs)
	}
	if !a.json && !short {
		// One file after the other: what was written need not be kept.
		return a.page(func(out io.Writer) error {
			for _, p := range pairs {
				f, err := v.File(c.Context, p)
				if err != nil {
					return err
				}
				if err := view.WritePatch(out, f, a.viewPaint(out)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	result := report.Diff{From: report.NewSide(sides[0]), To: report.NewSide(sides[1]), Files: []view.File{}}
	for _, p := range pairs {
		f, err := v.File(c.Context, p)
		if err != nil {
			return err
		}
		if short {
			f.Hunks = []view.Hunk{}
		}
		result.Files = append(result.Files, f)
	}
	return a.emitPaged(result, func(out io.Writer) error {
		if c.Bool("stat") {
			return view.WriteStat(out, result.Files, a.viewPaint(out))
		}
		for _, f := range result.Files {
			if err := view.WriteNameStatus(out, f.Change); err != nil {
				return err
			}
		}
		return nil
	})
}
