package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reasonix/internal/charset"
)

// source says where the files of a session lie; "" stands for one that is not there.
type source struct {
	id                        string // the base name
	stem                      string // path without an ending
	jsonl, events, ckpt, meta string
	odd                       []string // base names of those that are there and are no files
}

// locate finds the files that belong to path.
func locate(path string) (source, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return source{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return source{}, err
	}
	var s source
	switch name := filepath.Base(path); {
	case info.IsDir() && strings.HasSuffix(name, ".ckpt"):
		s.stem = strings.TrimSuffix(path, ".ckpt")
	case info.Mode().IsRegular() && strings.HasSuffix(name, ".jsonl") && !sidecar(name):
		s.stem = strings.TrimSuffix(path, ".jsonl")
	default:
		return s, fmt.Errorf("%s is neither a transcript (.jsonl) nor a folder of checkpoints (.ckpt): %w", path, ErrNoSource)
	}
	s.id = filepath.Base(s.stem)
	for ending, to := range map[string]*string{".jsonl": &s.jsonl, ".events.jsonl": &s.events, ".jsonl.meta": &s.meta} {
		if regular(s.stem + ending) {
			*to = s.stem + ending
		} else if _, err := os.Lstat(s.stem + ending); err == nil {
			s.odd = append(s.odd, s.id+ending)
		}
	}
	if info, err := os.Stat(s.stem + ".ckpt"); err == nil && info.IsDir() {
		s.ckpt = s.stem + ".ckpt"
	}
	return s, nil
}

// sidecar reports whether a .jsonl is no transcript.
func sidecar(name string) bool {
	for _, ending := range []string{".events.jsonl", ".conflicts.jsonl", ".guardian.jsonl"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}

// regular keeps pipes and devices, whose opening may never end, from being opened.
func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// branch is what is read of <session>.jsonl.meta.
type branch struct {
	ID               string `json:"id"`
	Name             string `json:"name"`
	CustomTitle      string `json:"custom_title"`
	ParentID         string `json:"parent_id"`
	ForkTurn         int    `json:"fork_turn"`
	ForkMessageIndex *int64 `json:"fork_message_index"`
	CreatedAt        string `json:"created_at"`
	UpdatedAt        string `json:"updated_at"`
	WorkspaceRoot    string `json:"workspace_root"`
}

func (b branch) created() time.Time { return parseTime(b.CreatedAt) }
func (b branch) updated() time.Time { return parseTime(b.UpdatedAt) }

// maxMeta bounds a .meta, in bytes.
const maxMeta = 1 << 20

func readBranch(path string) (b branch, err error) {
	f, err := os.Open(path)
	if err != nil {
		return b, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxMeta+1))
	if err != nil {
		return b, err
	}
	if len(raw) > maxMeta {
		return b, errors.New("it is too long")
	}
	return b, json.Unmarshal(raw, &b)
}

func (i *importer) readMeta() {
	if i.from.meta == "" {
		return
	}
	b, err := readBranch(i.from.meta)
	if err != nil {
		i.warn(Warning{Code: WarnCorrupt, File: filepath.Base(i.from.meta), Turn: -1, Detail: err.Error()})
		return
	}
	i.meta = b
	if b.WorkspaceRoot != "" && filepath.Clean(b.WorkspaceRoot) != filepath.Clean(i.o.FromRoot) {
		i.warn(Warning{
			Code: WarnRoot, File: filepath.Base(i.from.meta), Turn: -1, Path: b.WorkspaceRoot,
			Detail: "the session is about another folder; if its paths lie there: --from-root " + b.WorkspaceRoot,
		})
	}
}

// childrenOf are the sessions in a folder that say that they were forked from one.
func childrenOf(dir, id string) (all []branch) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.jsonl.meta"))
	if err != nil {
		return nil
	}
	for _, name := range names {
		if !regular(name) {
			continue
		}
		if b, err := readBranch(name); err == nil && b.ParentID == id {
			b.ID = strings.TrimSuffix(filepath.Base(name), ".jsonl.meta")
			all = append(all, b)
		}
	}
	return all
}

// escapeGlob makes a folder's name stand for itself in a pattern.
func escapeGlob(dir string) string {
	if filepath.Separator != '/' {
		return dir // there nothing can be escaped, and names hold no such characters
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// folder is a .ckpt folder. Nothing outside of it is opened, whatever links lie in it.
type folder struct{ root *os.Root }

func openFolder(path string) (*folder, error) {
	r, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folder{r}, nil
}

func (f *folder) close() error { return f.root.Close() }

// open opens a regular file.
func (f *folder) open(name string) (*os.File, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is no regular file")}
	}
	return f.root.Open(name)
}

// names lists a folder; one that is not there is empty.
func (f *folder) names(dir string) ([]string, error) {
	info, err := f.root.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() { // the opening of a pipe may never end
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errors.New("it is no folder")}
	}
	d, err := f.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// text reads a file as the other program does: whatever its encoding is.
func (f *folder) text(name string, limit int64) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("it has %d bytes, more than %d", info.Size(), limit)
	}
	kind, err := charset.Detect(file, info.Size())
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(kind.Text(file, info.Size()), limit+1))
}
