package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"reasonix/internal/view"
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
	err := a.moveOnce(c, w, r)
	if errors.Is(err, rewind.ErrStale) {
		// Nobody was shown the plan. What made it stale may have been its own doing: closing a turn
		// records what the turn's command has done.
		err = a.moveOnce(c, w, r)
	}
	return err
}

func (a *app) moveOnce(c *cli.Context, w *world, r rewind.Request) error {
	dry := c.Bool("dry-run")
	plan, err := w.Rewind.Plan(c.Context, r)
	if plan == nil && err != nil {
		return busyHint(r, err)
	}
	res := plan.Result()
	// Afterwards it is no longer known what a path that was left would have become.
	folders, ferr := w.folders(c.Context, res)
	if ferr != nil {
		return ferr
	}
	ctx := c.Context
	if err == nil && !dry {
		if res, err = w.Rewind.Apply(ctx, plan); err != nil && res.Session == "" {
			return busyHint(r, err)
		}
		// What is done is told, even to someone who interrupts just now.
		ctx = context.WithoutCancel(ctx)
	}
	res.Folders = folders
	return a.emitMove(ctx, w, res, dry, err)
}

// emitMove prints the result of a move. err, if any, is why it did not happen.
func (a *app) emitMove(ctx context.Context, w *world, res rewind.Result, dry bool, err error) error {
	out := newMoveJSON(res, dry)
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

// folders are the paths of a planned result that are, were, or would become folders.
func (w *world) folders(ctx context.Context, res rewind.Result) (map[store.Path]bool, error) {
	paths := slices.Clone(res.Left)
	for _, c := range res.Conflicts {
		paths = append(append(paths, c.Path), c.Entries...)
	}
	for _, n := range res.NotCovered {
		paths = append(paths, n.Path)
	}
	all := map[store.Path]bool{}
	maps.Copy(all, res.Folders)
	if len(paths) == 0 {
		return all, nil
	}
	for _, p := range paths {
		if k, blocked, err := w.Capture.Kind(ctx, p); err == nil && !blocked && k == store.Dir {
			all[p] = true // what cannot be looked at is told elsewhere
		}
	}
	var s store.Session
	err := w.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s, err = tx.Session(res.Session); err != nil {
			return err
		}
		for _, p := range paths {
			row, err := tx.Newest(s.Head, p)
			if err != nil {
				return err
			}
			all[p] = all[p] || row != nil && (row.Before.Kind == store.Dir || row.After.Kind == store.Dir)
		}
		return nil
	})
	if err != nil || res.Kind != store.OpRewind {
		return all, err
	}
	pairs, err := view.New(w.Capture).Pairs(ctx, view.Side{Session: s.ID, Turn: res.Turn}, view.Side{Session: s.ID, Turn: s.Turns}, nil)
	for _, p := range pairs {
		if _, asked := all[p.Path]; asked && (p.Before.Kind == store.Dir || p.After.Kind == store.Dir) {
			all[p.Path] = true
		}
	}
	return all, err
}

type moveJSON struct {
	Operation  *string          `json:"operation"` // null of a plan
	Kind       string           `json:"kind"`
	Session    store.SessionID  `json:"session"`
	Turn       *int             `json:"turn"`
	Scope      *string          `json:"scope"`
	Written    []string         `json:"written"`
	Deleted    []string         `json:"deleted"`
	Conflicts  []conflictJSON   `json:"conflicts"`
	AlsoUndoes []alsoUndoesJSON `json:"also_undoes"`
	Left       []string         `json:"left"`
	NotCovered []notCoveredJSON `json:"not_covered"`
	Messages   int64            `json:"messages"`
	Prompt     string           `json:"prompt,omitempty"`
	Undoes     *string          `json:"undoes,omitempty"`
	DryRun     bool             `json:"dry_run"`
	PathsB64   []pathName       `json:"paths_b64,omitempty"`
	// Of a fork.
	Branch store.SessionID `json:"branchId,omitempty"`
	Parent store.SessionID `json:"parent,omitempty"`
}

type conflictJSON struct {
	Path       string   `json:"path"`
	PathB64    string   `json:"path_b64,omitempty"`
	Reason     string   `json:"reason"`
	LastWriter string   `json:"last_writer"`
	Entries    []string `json:"entries,omitempty"`
	Final      bool     `json:"final,omitempty"` // --force does not help
}

type alsoUndoesJSON struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"`
	Writer  string `json:"writer"`
}

type notCoveredJSON struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"`
	Reason  string `json:"reason"`
}

func newMoveJSON(res rewind.Result, dry bool) moveJSON {
	out := moveJSON{
		Operation: opID(res.Operation), Kind: res.Kind.String(), Session: res.Session, Written: names(res, res.Written),
		Deleted: names(res, res.Deleted), Left: names(res, res.Left), Messages: res.Messages, Prompt: res.Prompt,
		Undoes: opID(res.Undoes), DryRun: dry, Branch: res.Branch, Parent: res.Parent,
		Conflicts: []conflictJSON{}, AlsoUndoes: []alsoUndoesJSON{}, NotCovered: []notCoveredJSON{},
		PathsB64: exactNames(res, res.Written, res.Deleted, res.Left),
	}
	if res.Turn >= 0 {
		out.Turn = &res.Turn
	}
	if res.Kind == store.OpRewind {
		name := res.Scope.String()
		out.Scope = &name
	}
	if res.Branch != "" {
		out.Session = res.Branch
	}
	for _, c := range res.Conflicts {
		out.Conflicts = append(out.Conflicts, conflictJSON{
			Path: nameOf(res, c.Path), PathB64: exactName(res, c.Path), Reason: c.Reason, LastWriter: c.LastWriter,
			Entries: names(res, c.Entries), Final: c.Final,
		})
		out.PathsB64 = append(out.PathsB64, exactNames(res, c.Entries)...)
	}
	for _, u := range res.AlsoUndoes {
		out.AlsoUndoes = append(out.AlsoUndoes, alsoUndoesJSON{Path: nameOf(res, u.Path), PathB64: exactName(res, u.Path), Writer: u.Writer})
	}
	for _, n := range res.NotCovered {
		out.NotCovered = append(out.NotCovered, notCoveredJSON{Path: nameOf(res, n.Path), PathB64: exactName(res, n.Path), Reason: n.Reason})
	}
	return out
}

// opID is an operation's id as JSON has it: a string; nil for none.
func opID(id store.OpID) *string {
	if id == 0 {
		return nil
	}
	text := strconv.FormatInt(int64(id), 10)
	return &text
}

// names are paths for JSON lists; folders end in a slash.
func names(res rewind.Result, paths []store.Path) []string {
	all := make([]string, 0, len(paths))
	for _, p := range paths {
		all = append(all, nameOf(res, p))
	}
	return all
}

func nameOf(res rewind.Result, p store.Path) string {
	if res.Folders[p] {
		return jsonPath(p) + "/"
	}
	return jsonPath(p)
}

// exactName is the name beside one that is not UTF-8; empty, and left out, for others.
func exactName(res rewind.Result, p store.Path) string {
	if res.Folders[p] {
		p += "/"
	}
	return pathB64(p)
}

// exactNames are those of the paths that are not UTF-8.
func exactNames(res rewind.Result, lists ...[]store.Path) []pathName {
	var all []pathName
	for _, p := range slices.Concat(lists...) {
		if b := exactName(res, p); b != "" {
			all = append(all, pathName{Path: nameOf(res, p), B64: b})
		}
	}
	return all
}
