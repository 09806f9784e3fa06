package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// maxMoved bounds the entries of a folder that is moved: each is a path that is written.
const maxMoved = 2000

type moveArgs struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func moveFile(o Options) Tool {
	return &simple[moveArgs]{
		name: "move_file", kind: Edit,
		description: "Move or rename a file or folder. The new name must be free; missing folders are made.",
		schema: `{"type":"object","properties":{"from":{"type":"string","description":"relative to the workspace"},` +
			`"to":{"type":"string","description":"the new name, relative to the workspace"}},"required":["from","to"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a moveArgs) (Call, error) {
			return with(o, func(t *tree) (Call, error) { return t.planMove(a) })
		},
	}
}

// moving is a call that gives a path another name.
type moving struct {
	o        Options
	from, to string
	was      fs.FileInfo
	paths    []string
}

func (t *tree) planMove(a moveArgs) (Call, error) {
	if a.From == "" || a.To == "" {
		return nil, badArgs("from and to are names")
	}
	from, err := t.root.Resolve(t.root.Path(), a.From)
	if err != nil {
		return nil, explain(a.From, err)
	}
	to, err := t.root.Resolve(t.root.Path(), a.To)
	if err != nil {
		return nil, explain(a.To, err)
	}
	m := &moving{o: t.o, from: string(from), to: string(to)}
	m.was, err = t.dir.Lstat(m.from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s", from)
	}
	if err != nil {
		return nil, err
	}
	switch _, err := t.dir.Lstat(m.to); {
	case m.from == m.to || strings.HasPrefix(m.to, m.from+"/"):
		return nil, fmt.Errorf("%s can not be moved to %s", from, to)
	case err == nil:
		return nil, fmt.Errorf("%s is there already; delete it first, or choose another name", to)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return m, t.entries(m)
}

// entries lists what is moved, under both names.
func (t *tree) entries(m *moving) error {
	m.paths = []string{m.from, m.to}
	if !m.was.IsDir() {
		return nil
	}
	return fs.WalkDir(t.dir.FS(), m.from, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == m.from {
			return nil
		}
		if strings.EqualFold(e.Name(), ".git") {
			return fmt.Errorf("%s holds a repository; use bash for it", m.from)
		}
		if len(m.paths) > 2*maxMoved {
			return fmt.Errorf("%s has more than %d entries; use bash for it", m.from, maxMoved)
		}
		m.paths = append(m.paths, p, m.to+strings.TrimPrefix(p, m.from))
		return nil
	})
}

func (m *moving) Paths() []string { return m.paths }

func (m *moving) Preview(context.Context) (Preview, error) {
	return Preview{Title: "move " + m.from + " to " + m.to}, nil
}

func (m *moving) Run(context.Context) (Result, error) {
	return with(m.o, func(t *tree) (Result, error) {
		now, err := t.dir.Lstat(m.from)
		if err != nil || now.Mode() != m.was.Mode() || !now.ModTime().Equal(m.was.ModTime()) {
			return Result{}, fmt.Errorf("%s: %w", m.from, errChanged)
		}
		if _, err := t.dir.Lstat(m.to); !errors.Is(err, fs.ErrNotExist) {
			return Result{}, fmt.Errorf("%s: %w", m.to, errChanged)
		}
		if dir := path.Dir(m.to); dir != "." {
			if err := t.dir.MkdirAll(dir, 0o755); err != nil {
				return Result{}, err
			}
		}
		if err := t.dir.Rename(m.from, m.to); err != nil {
			return Result{}, fmt.Errorf("move %s: %w", m.from, err)
		}
		return Result{Text: "moved " + m.from + " to " + m.to}, nil
	})
}
