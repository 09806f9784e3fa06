package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"reasonix/internal/charset"
)

// editing is a call that gives one file a new text.
type editing struct {
	o      Options
	title  string
	path   string
	before text
	after  string // the new text, with \n
	raw    []byte // and as bytes
	note   string // for the model
}

func (e *editing) Paths() []string { return []string{e.path} }

func (e *editing) Preview(context.Context) (Preview, error) {
	return Preview{Title: e.title, Diff: udiff.Unified("a/"+e.path, "b/"+e.path, e.before.text, e.after)}, nil
}

func (e *editing) Run(context.Context) (Result, error) {
	return with(e.o, func(t *tree) (Result, error) {
		if err := t.same(e.path, e.before); err != nil {
			return Result{}, err
		}
		if err := t.write(e.path, e.raw, e.before.mode); err != nil {
			return Result{}, fmt.Errorf("write %s: %w", e.path, err)
		}
		return Result{Text: e.note}, nil
	})
}

// plan makes an editing of a file that change gives its new text.
func plan(o Options, name, verb string, change func(p string, f text) (after, note string, err error)) (Call, error) {
	return with(o, func(t *tree) (Call, error) {
		p, err := t.resolve(name)
		if err != nil {
			return nil, err
		}
		f, err := t.load(p)
		if err != nil && !errors.Is(err, errBinary) {
			return nil, err
		}
		if errors.Is(err, errBinary) && verb != "write" {
			return nil, fmt.Errorf("%s: %w; use bash for it", p, err)
		}
		if errors.Is(err, errBinary) { // what replaces it is text of the usual kind
			f.kind, f.crlf, f.text = charset.UTF8, false, ""
		}
		e := &editing{o: o, title: verb + " " + p, path: p, before: f}
		if e.after, e.note, err = change(p, f); err != nil {
			return nil, err
		}
		e.raw, err = f.bytes(e.after)
		return e, err
	})
}

type writeArgs struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func writeFile(o Options) Tool {
	return &simple[writeArgs]{
		name: "write_file", kind: Edit,
		description: "Write a whole file: a new one, or in place of what it held. Encoding, ends of lines and permissions of an old one are kept.",
		schema: `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"content":{"type":"string"}},` +
			`"required":["path","content"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a writeArgs) (Call, error) {
			if a.Content == nil {
				return nil, badArgs("content is missing")
			}
			return plan(o, a.Path, "write", func(p string, f text) (string, string, error) {
				what := "created"
				if f.found {
					what = "replaced"
				}
				return *a.Content, fmt.Sprintf("%s %s (%d bytes)", what, p, len(*a.Content)), nil
			})
		},
	}
}

type editArgs struct {
	Path string  `json:"path"`
	Old  string  `json:"old_string"`
	New  *string `json:"new_string"`
}

func editFile(o Options) Tool {
	return &simple[editArgs]{
		name: "edit_file", kind: Edit,
		description: "Replace one piece of text in a file. old_string must be in the file exactly once, with its blanks and line breaks: take in enough lines around it.",
		schema: `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"old_string":{"type":"string"},` +
			`"new_string":{"type":"string"}},"required":["path","old_string","new_string"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a editArgs) (Call, error) {
			return planEdits(o, a.Path, []replacement{{a.Old, a.New}})
		},
	}
}

type replacement struct {
	Old string  `json:"old_string"`
	New *string `json:"new_string"`
}

type multiArgs struct {
	Path  string        `json:"path"`
	Edits []replacement `json:"edits"`
}

func multiEdit(o Options) Tool {
	return &simple[multiArgs]{
		name: "multi_edit", kind: Edit,
		description: "Replace several pieces of text in one file, one after the other, all or none. Each old_string must then be in the file exactly once.",
		schema: `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"edits":{"type":"array","minItems":1,` +
			`"items":{"type":"object","properties":{"old_string":{"type":"string"},"new_string":{"type":"string"}},"required":["old_string","new_string"],` +
			`"additionalProperties":false}}},"required":["path","edits"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a multiArgs) (Call, error) {
			if len(a.Edits) == 0 {
				return nil, badArgs("edits is empty")
			}
			return planEdits(o, a.Path, a.Edits)
		},
	}
}

func planEdits(o Options, name string, edits []replacement) (Call, error) {
	return plan(o, name, "edit", func(p string, f text) (string, string, error) {
		if !f.found {
			return "", "", fmt.Errorf("there is no %s; write_file makes it", p)
		}
		now := f.text
		for n, e := range edits {
			var err error
			if now, err = e.apply(now, f.crlf); err != nil {
				if len(edits) > 1 {
					err = fmt.Errorf("edit %d: %w; no edit was made", n+1, err)
				}
				return "", "", err
			}
		}
		note := "edited " + p
		if len(edits) > 1 {
			note = fmt.Sprintf("made %d edits in %s", len(edits), p)
		}
		return now, note, nil
	})
}

// apply replaces the one place where the old text is.
func (e replacement) apply(text string, crlf bool) (string, error) {
	if e.New == nil {
		return "", badArgs("new_string is missing")
	}
	was, now := e.Old, *e.New
	if crlf { // the text has \n, whatever the model wrote
		was, now = strings.ReplaceAll(was, "\r\n", "\n"), strings.ReplaceAll(now, "\r\n", "\n")
	}
	switch n := strings.Count(text, was); {
	case was == "":
		return "", badArgs("old_string is empty; write_file writes a whole file")
	case was == now:
		return "", badArgs("old_string and new_string are the same")
	case n == 0:
		return "", errors.New("old_string is not in the file; read it again and copy the text exactly, blanks included")
	case n > 1:
		return "", fmt.Errorf("old_string is in the file %d times; take in more lines around the one you mean", n)
	}
	return strings.Replace(text, was, now, 1), nil
}

type deleteArgs struct {
	Path string `json:"path"`
}

func deleteFile(o Options) Tool {
	return &simple[deleteArgs]{
		name: "delete_file", kind: Edit,
		description: "Delete a file, a link, or an empty folder.",
		schema: `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"}},` +
			`"required":["path"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a deleteArgs) (Call, error) {
			return with(o, func(t *tree) (Call, error) { return t.planDelete(a.Path) })
		},
	}
}

// removal is a call that deletes one path.
type removal struct {
	o    Options
	path string
	was  fs.FileInfo
	text text // of a text file, for the preview
}

func (t *tree) planDelete(name string) (Call, error) {
	if name == "" {
		return nil, badArgs("path is empty")
	}
	p, err := t.root.Resolve(t.root.Path(), name) // a link is deleted, not what it leads to
	if err != nil {
		return nil, explain(name, err)
	}
	r := &removal{o: t.o, path: string(p)}
	r.was, err = t.dir.Lstat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s", p)
	}
	if err != nil {
		return nil, err
	}
	if r.was.IsDir() {
		d, err := t.dir.Open(r.path)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		if names, _ := d.Readdirnames(1); len(names) > 0 {
			return nil, fmt.Errorf("%s is a folder that holds something; delete that first, or use bash", p)
		}
	} else if r.was.Mode().IsRegular() {
		r.text, _ = t.load(r.path) // no text: no preview
	}
	return r, nil
}

func (r *removal) Paths() []string { return []string{r.path} }

func (r *removal) Preview(context.Context) (Preview, error) {
	return Preview{Title: "delete " + r.path, Diff: udiff.Unified("a/"+r.path, "/dev/null", r.text.text, "")}, nil
}

func (r *removal) Run(context.Context) (Result, error) {
	return with(r.o, func(t *tree) (Result, error) {
		now, err := t.dir.Lstat(r.path)
		if err != nil || now.Mode() != r.was.Mode() || now.Size() != r.was.Size() || !now.ModTime().Equal(r.was.ModTime()) {
			return Result{}, fmt.Errorf("%s: %w", r.path, errChanged)
		}
		if err := t.dir.Remove(r.path); err != nil {
			return Result{}, fmt.Errorf("delete %s: %w", r.path, err)
		}
		return Result{Text: "deleted " + r.path}, nil
	})
}
