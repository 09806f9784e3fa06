package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"reasonix/blob"
	"reasonix/internal/place"
	"reasonix/internal/report"
	"reasonix/internal/view"
	"reasonix/store"
)

func catCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "cat",
		Usage:     "print a file as it was at the start of a turn, or a blob",
		ArgsUsage: "TURN:PATH | BLOB",
		Category:  "history",
		Description: "PATH is relative to the current folder. Of a symbolic link its target is printed.\n" +
			"BLOB is the 64 hexadecimal digits that --json and the views show.",
		Action: a.cat,
	}
}

// catJSON is the result of cat. One of Text and Base64 is there.
type catJSON struct {
	Session store.SessionID `json:"session,omitempty"`
	Turn    *int            `json:"turn,omitempty"`
	Path    string          `json:"path,omitempty"`
	B64     string          `json:"path_b64,omitempty"`
	Kind    string          `json:"kind,omitempty"`
	Mode    string          `json:"mode,omitempty"`
	Blob    string          `json:"blob"`
	Size    int64           `json:"size"`
	Text    *string         `json:"text,omitempty"`
	Base64  *string         `json:"base64,omitempty"` // of what is not UTF-8
}

func (a *app) cat(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("cat takes one TURN:PATH or one blob")
	}
	arg := c.Args().First()
	turn, name, isFile := a.cutTurn(c.Context, arg)
	h, err := blob.ParseHash(arg)
	if !isFile && err != nil {
		return &usage{text: quote(arg) + " is neither TURN:PATH nor a blob", hint: "such as 3:src/main.go, or 64 hexadecimal digits"}
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	if !isFile {
		if _, err := w.Store.Blobs().Stat(c.Context, h); err != nil {
			if errors.Is(err, blob.ErrNotFound) {
				err = fmt.Errorf("no blob %s: %w", h, errNoPath)
			}
			return err
		}
		return a.writeBlob(c.Context, w, h, catJSON{Blob: h.String()})
	}
	s, n, err := a.at(c.Context, w, turn)
	if err != nil {
		return err
	}
	p, err := a.path(w, name)
	if err != nil {
		return err
	}
	state, err := view.New(w.Capture).StateAt(c.Context, view.Side{Session: s.ID, Turn: n}, p)
	if err != nil {
		return err
	}
	if err := printableState(p, n, state); err != nil {
		return err
	}
	out := catJSON{Session: s.ID, Turn: &n, Path: report.Text(p), B64: report.B64(p), Kind: state.Kind.String(), Blob: state.Blob.String()}
	if state.Kind == store.File {
		out.Mode = fmt.Sprintf("%04o", state.Mode)
	}
	return a.writeBlob(c.Context, w, state.Blob, out)
}

func printableState(p store.Path, turn int, s store.State) error {
	switch s.Kind {
	case store.File, store.Symlink:
		return nil
	case store.Absent:
		return fmt.Errorf("%s was not there at the start of turn %d: %w", p, turn, errNoPath)
	case store.Dir:
		return badUsage("%s was a folder at the start of turn %d", p, turn)
	case store.Uncaptured:
		return fmt.Errorf("%s was there at the start of turn %d but was not captured: %w", p, turn, errNoPath)
	}
	return fmt.Errorf("%s was never recorded: %w", p, errNoPath)
}

// writeBlob streams a content; as JSON it is held.
func (a *app) writeBlob(ctx context.Context, w *world, h blob.Hash, out catJSON) error {
	r, err := w.Store.Blobs().Open(ctx, h)
	if err != nil {
		return err
	}
	defer r.Close()
	if !a.json {
		_, err = io.Copy(a.stdout, r)
		return err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	out.Size = int64(len(b))
	text, exact := string(b), base64.StdEncoding.EncodeToString(b)
	if utf8.Valid(b) {
		out.Text = &text
	} else {
		out.Base64 = &exact
	}
	return a.writeJSON(out)
}

// cutTurn cuts TURN:PATH, where TURN may itself be SESSION:TURN.
func (a *app) cutTurn(ctx context.Context, arg string) (turn, path string, ok bool) {
	first, rest, found := strings.Cut(arg, ":")
	if !found || first == "" || rest == "" {
		return "", "", false
	}
	if a.namesTurn(ctx, first) {
		return first, rest, true
	}
	second, path, found := strings.Cut(rest, ":")
	if turn = first + ":" + second; !found || path == "" || !isTurn(turn) {
		return "", "", false
	}
	return turn, path, true
}

// pathOrRoot resolves a path argument that may also name the workspace itself: ".".
func (a *app) pathOrRoot(w *world, name string) (store.Path, error) {
	dir := name
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.dir(), name)
	}
	if real, err := place.Canonical(dir); err == nil && real == w.Root.Path() {
		return ".", nil
	}
	return a.path(w, name)
}
