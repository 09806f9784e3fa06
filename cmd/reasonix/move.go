package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"reasonix/rewind"
	"reasonix/store"
)

// What rewind, undo, redo, switch and fork have in common: each is a request that is planned,
// shown, and applied unless it is a dry run.

// moveFlags are the flags of a move that may write files.
func moveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "show what would be done, change nothing"},
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "go on over conflicts and close a running turn; undo-rewind brings all back"},
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
	plan, err := w.Rewind.Plan(c.Context, r)
	if plan == nil && err != nil {
		return err
	}
	res := plan.Result()
	if err == nil && !dry {
		if res, err = w.Rewind.Apply(c.Context, plan); err != nil && res.Session == "" {
			return err
		}
	}
	return a.emitMove(c.Context, w, res, dry, err)
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
	if n := len(res.Conflicts); errors.Is(err, rewind.ErrConflict) && n > 0 {
		return fmt.Errorf("%s; nothing was changed: %w", count(n, "conflict"), err)
	}
	return err
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
		PathsB64: exactNames(res.Written, res.Deleted, res.Left),
	}
	if res.Turn >= 0 {
		out.Turn = &res.Turn
	}
	if res.Scope != 0 {
		name := res.Scope.String()
		out.Scope = &name
	}
	if res.Branch != "" {
		out.Session = res.Branch
	}
	for _, c := range res.Conflicts {
		out.Conflicts = append(out.Conflicts, conflictJSON{
			Path: jsonPath(c.Path), PathB64: pathB64(c.Path), Reason: c.Reason, LastWriter: c.LastWriter,
			Entries: plainNames(c.Entries), Final: c.Final,
		})
		out.PathsB64 = append(out.PathsB64, exactNames(c.Entries)...)
	}
	for _, u := range res.AlsoUndoes {
		out.AlsoUndoes = append(out.AlsoUndoes, alsoUndoesJSON{Path: jsonPath(u.Path), PathB64: pathB64(u.Path), Writer: u.Writer})
	}
	for _, n := range res.NotCovered {
		out.NotCovered = append(out.NotCovered, notCoveredJSON{Path: jsonPath(n.Path), PathB64: pathB64(n.Path), Reason: n.Reason})
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
		name := jsonPath(p)
		if res.Folders[p] {
			name += "/"
		}
		all = append(all, name)
	}
	return all
}

func plainNames(paths []store.Path) []string {
	var all []string
	for _, p := range paths {
		all = append(all, jsonPath(p))
	}
	return all
}
