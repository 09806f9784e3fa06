package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func readFile(o Options) Tool {
	return &simple[readArgs]{
		name: "read_file", kind: Read,
		description: "Read a text file of the workspace. Lines are numbered. For a long file name the first line (offset, from 1) and how many (limit).",
		schema: `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},` +
			`"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},"limit":{"type":"integer","minimum":1,"description":"how many lines"}},` +
			`"required":["path"],"additionalProperties":false}`,
		prepare: func(_ context.Context, a readArgs) (Call, error) {
			if a.Offset < 0 || a.Limit < 0 {
				return nil, badArgs("offset and limit are above 0")
			}
			return &reading{"read " + a.Path, func(context.Context) (string, error) {
				return with(o, func(t *tree) (string, error) { return t.read(a) })
			}}, nil
		},
	}
}

func (t *tree) read(a readArgs) (string, error) {
	p, err := t.resolve(a.Path)
	if err != nil {
		return "", err
	}
	f, err := t.load(p)
	switch {
	case errors.Is(err, errBinary):
		return fmt.Sprintf("%s is no text: %d bytes", p, len(f.raw)), nil
	case err != nil:
		return "", err
	case !f.found:
		return "", fmt.Errorf("there is no %s; list_dir and glob find names", p)
	case f.text == "":
		return "(the file is empty)", nil
	}
	lines := strings.SplitAfter(f.text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	from := max(a.Offset, 1)
	if from > len(lines) {
		return "", fmt.Errorf("%s has %d lines", p, len(lines))
	}
	to := len(lines)
	if a.Limit > 0 {
		to = min(from-1+a.Limit, to)
	}
	return numbered(lines, from, to, t.o.MaxText), nil
}

// numbered are lines from to to, as far as they fit.
func numbered(lines []string, from, to, most int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		line := strings.TrimSuffix(lines[n-1], "\n")
		if r := []rune(line); len(r) > 2000 {
			line = string(r[:2000]) + "… (the line goes on)"
		}
		if b.Len()+len(line) > most && n > from {
			fmt.Fprintf(&b, "(lines %d to %d of %d; go on with offset %d)\n", from, n-1, len(lines), n)
			return b.String()
		}
		fmt.Fprintf(&b, "%6d\t%s\n", n, line)
	}
	if from > 1 || to < len(lines) {
		fmt.Fprintf(&b, "(lines %d to %d of %d)\n", from, to, len(lines))
	}
	return b.String()
}

type listArgs struct {
	Path string `json:"path"`
}

func listDir(o Options) Tool {
	return &simple[listArgs]{
		name: "list_dir", kind: Read,
		description: "List a folder of the workspace: folders end in /, links show where they lead, files their size in bytes.",
		schema: `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace; the workspace itself when left out"}},` +
			`"additionalProperties":false}`,
		prepare: func(_ context.Context, a listArgs) (Call, error) {
			return &reading{"list " + a.Path, func(context.Context) (string, error) {
				return with(o, func(t *tree) (string, error) { return t.list(a.Path) })
			}}, nil
		},
	}
}

func (t *tree) list(name string) (string, error) {
	p, err := t.resolveDir(name)
	if err != nil {
		return "", err
	}
	d, err := t.dir.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s", p)
	}
	if err != nil {
		return "", err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return "", fmt.Errorf("%s can not be listed: %w", p, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil: // it went meanwhile
		case e.IsDir():
			fmt.Fprintf(&b, "%s/\n", valid(e.Name()))
		case e.Type()&fs.ModeSymlink != 0:
			to, _ := t.dir.Readlink(joined(p, e.Name()))
			fmt.Fprintf(&b, "%s -> %s\n", valid(e.Name()), valid(to))
		default:
			fmt.Fprintf(&b, "%s %d\n", valid(e.Name()), info.Size())
		}
	}
	if b.Len() == 0 {
		return "(the folder is empty)", nil
	}
	return limited(b.String(), t.o.MaxText, "glob finds names by a pattern"), nil
}

func joined(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
