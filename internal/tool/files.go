package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"reasonix/internal/charset"
	"reasonix/internal/workspace"
)

var (
	// errChanged is returned when a file is no longer as the call was prepared for.
	errChanged = errors.New("the file changed meanwhile; read it again")
	errBinary  = errors.New("it is no text")
)

// tree is the workspace, open for one call.
type tree struct {
	o    Options
	root *workspace.Root // resolves names
	dir  *os.Root        // does the work
}

func open(o Options) (*tree, error) {
	root, err := workspace.Open(o.Root, workspace.Options{Protected: o.Protected})
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(root.Path())
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &tree{o, root, dir}, nil
}

func (t *tree) close() { _ = t.dir.Close(); _ = t.root.Close() }

// with runs fn in the open workspace.
func with[T any](o Options, fn func(*tree) (T, error)) (T, error) {
	t, err := open(o)
	if err != nil {
		var none T
		return none, err
	}
	defer t.close()
	return fn(t)
}

// resolve gives the path of a name that the model wrote: relative to the root or absolute. A link as
// the last component is followed where it leads to a path below the root.
func (t *tree) resolve(name string) (string, error) {
	if name == "" {
		return "", badArgs("path is empty")
	}
	p, err := t.root.Resolve(t.root.Path(), name)
	if err != nil {
		return "", explain(name, err)
	}
	for range 16 {
		info, err := t.dir.Lstat(string(p))
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return string(p), nil
		}
		to, ok := t.root.LinkTarget(p)
		if !ok {
			return "", fmt.Errorf("%s is a link that leads out of the workspace", name)
		}
		p = to
	}
	return "", fmt.Errorf("%s is a link that leads to itself", name)
}

// resolveDir is resolve of a folder, which may be the root itself: ".".
func (t *tree) resolveDir(name string) (string, error) {
	abs := name
	if name == "" || name == "." || name == "./" {
		return ".", nil
	}
	if filepath.IsAbs(abs) && filepath.Clean(abs) == t.root.Path() {
		return ".", nil
	}
	return t.resolve(name)
}

func explain(name string, err error) error {
	switch {
	case errors.Is(err, workspace.ErrOutside):
		return fmt.Errorf("%s lies outside of the workspace; use a path below it", name)
	case errors.Is(err, workspace.ErrProtected):
		return fmt.Errorf("%s is protected and can not be used", name)
	}
	return err
}

// text is a file as text, with all that is needed to write it back in its own way.
type text struct {
	raw   []byte
	text  string // with \n as the end of lines
	kind  charset.Encoding
	crlf  bool // lines ended in \r\n
	mode  fs.FileMode
	found bool
}

// load reads a file as text. One that is not there is not an error: found is false.
func (t *tree) load(p string) (text, error) {
	f := text{mode: 0o644}
	file, err := t.dir.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return f, err
	case info.IsDir():
		return f, fmt.Errorf("%s is a folder", p)
	case !info.Mode().IsRegular():
		return f, fmt.Errorf("%s is no regular file", p)
	case info.Size() > t.o.MaxFile:
		return f, fmt.Errorf("%s has %d bytes, more than %d; use bash for it", p, info.Size(), t.o.MaxFile)
	}
	f.found, f.mode = true, info.Mode().Perm()
	if f.raw, err = io.ReadAll(io.LimitReader(file, t.o.MaxFile+1)); err != nil {
		return f, err
	}
	return f, f.decode()
}

func (f *text) decode() error {
	r := bytes.NewReader(f.raw)
	kind, err := charset.Detect(r, int64(len(f.raw)))
	if err != nil {
		return err
	}
	decoded, err := io.ReadAll(kind.Text(r, int64(len(f.raw))))
	if err != nil {
		return err
	}
	f.kind, f.text = kind, string(decoded)
	wide := kind == charset.UTF16LE || kind == charset.UTF16BE || kind == charset.UTF16LEBOM || kind == charset.UTF16BEBOM
	if back, err := kind.Encode(f.text); err != nil || !bytes.Equal(back, f.raw) || !wide && bytes.IndexByte(f.raw, 0) >= 0 {
		return errBinary
	}
	f.crlf = strings.Contains(f.text, "\r\n") && strings.Count(f.text, "\r\n") == strings.Count(f.text, "\n")
	if f.crlf {
		f.text = strings.ReplaceAll(f.text, "\r\n", "\n")
	}
	return nil
}

// bytes are the file with another text, in its own encoding and with its own ends of lines.
func (f *text) bytes(now string) ([]byte, error) {
	if f.crlf {
		now = strings.ReplaceAll(strings.ReplaceAll(now, "\r\n", "\n"), "\n", "\r\n")
	}
	b, err := f.kind.Encode(now)
	if err != nil {
		return nil, fmt.Errorf("the file's encoding can not hold the new text: %w", err)
	}
	return b, nil
}

// same fails when the file is not as f any more.
func (t *tree) same(p string, f text) error {
	raw, err := t.dir.ReadFile(p)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.found:
		return nil
	case err == nil && f.found && bytes.Equal(raw, f.raw):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return fmt.Errorf("%s: %w", p, errChanged)
}

// StageID is what files are staged under while they are written: after a crash
// workspace.Root.Sweep removes what was left of them.
const StageID = "tool"

// write puts a file in place of what is there, at once: nobody sees a part of it. Missing folders are
// made.
func (t *tree) write(p string, content []byte, mode fs.FileMode) (err error) {
	if dir := path.Dir(p); dir != "." {
		if err := t.dir.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	staged := path.Join(path.Dir(p), workspace.StagedName(StageID, p))
	const fresh = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := t.dir.OpenFile(staged, fresh, 0o600)
	if errors.Is(err, fs.ErrExist) && t.dir.Remove(staged) == nil { // a crash left it
		f, err = t.dir.OpenFile(staged, fresh, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = t.dir.Rename(staged, p)
	}
	if err != nil {
		return errors.Join(err, t.dir.Remove(staged))
	}
	return nil
}
