package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

func TestReadEveryKind(t *testing.T) {
	w := newWorld(t, tree{
		"f": "640:content", "empty": "600:", "l": "->\xffwhere/../ever", "d/": "711", "d/f": "444:deep", "tod": "->d",
	})
	content := func(kind store.Kind, mode uint32, s string) store.State {
		return store.State{Kind: kind, Mode: mode, Blob: blob.Sum([]byte(s)), Size: int64(len(s))}
	}
	for _, c := range []struct {
		path    store.Path
		want    store.State
		blocker store.Path
	}{
		{"f", content(store.File, 0o640, "content"), ""},
		{"empty", content(store.File, 0o600, ""), ""},
		{"l", content(store.Symlink, 0, "\xffwhere/../ever"), ""},
		{"d", store.State{Kind: store.Dir, Mode: 0o711}, ""},
		{"d/f", content(store.File, 0o444, "deep"), ""},
		{"no", store.AbsentState, ""},
		{"no/no/no", store.AbsentState, ""},
		{"f/no", store.AbsentState, "f"},
		{"f/no/no", store.AbsentState, "f"},
		{"tod/f", store.AbsentState, "tod"},
		{"l/x/y", store.AbsentState, "l"},
	} {
		r := w.readOne(c.path)
		if r.State != c.want || r.Blocker != c.blocker || r.Reason != "" {
			t.Errorf("%q: %v, blocker %q, reason %q; want %v, %q", c.path, r.State, r.Blocker, r.Reason, c.want, c.blocker)
		}
		if r.Sig.Kind != c.want.Kind {
			t.Errorf("%q: signature of kind %v", c.path, r.Sig.Kind)
		}
		if c.want.HasContent() != (r.Content != nil) || r.Content != nil && r.Content.Hash() != c.want.Blob {
			t.Errorf("%q: content %v", c.path, r.Content)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	w := newWorld(t, tree{"store/": "755", "store/db": "600:db", "hidden/": "755", ".git/": "755", ".git/config": "644:c"})
	w.root = w.opened(workspace.Options{Protected: []string{w.name("store"), w.name("later")}})
	w.must(os.Mkdir(w.name("later"), 0o755))
	for p, want := range map[store.Path]error{
		"../x": workspace.ErrInvalid, "": workspace.ErrInvalid, "/etc/passwd": workspace.ErrInvalid,
		".git/config": workspace.ErrProtected, "store": workspace.ErrProtected, "store/db": workspace.ErrProtected,
		"later": workspace.ErrProtected,
	} {
		if _, err := w.root.Read(t.Context(), p, w.mem.put); !errors.Is(err, want) {
			t.Errorf("Read(%q): %v, want %v", p, err, want)
		}
	}
	// The store under another name: identity counts.
	w.must(os.Rename(w.name("later"), w.name("renamed")))
	w.root = w.opened(workspace.Options{Protected: []string{w.name("store"), w.name("renamed")}})
	w.must(os.Rename(w.name("renamed"), w.name("again")))
	for _, p := range []store.Path{"again", "again/db"} {
		if _, err := w.root.Read(t.Context(), p, w.mem.put); !errors.Is(err, workspace.ErrProtected) {
			t.Errorf("Read(%q): %v, want ErrProtected", p, err)
		}
	}
}

// TestChangedWhileRead: a file that does not hold still is not captured; one that does so in
// the end is.
func TestChangedWhileRead(t *testing.T) {
	w := newWorld(t, tree{"f": "644:"})
	for _, times := range []int{3, 100} {
		n := 0
		put := func(ctx context.Context, r io.Reader, was blob.Hash) (*blob.Prepared, error) {
			if n++; n <= times {
				f, err := os.OpenFile(w.name("f"), os.O_APPEND|os.O_WRONLY, 0)
				w.must(err)
				_, err = f.WriteString("more")
				w.must(err)
				w.must(f.Close())
			}
			return w.mem.put(ctx, r, was)
		}
		r, err := w.root.Read(t.Context(), "f", put)
		w.must(err)
		if times > 3 {
			if r.State != store.UncapturedState || r.Reason != store.GapChangedWhileRead || r.Content != nil {
				t.Errorf("it never held still: %v, %q", r.State, r.Reason)
			}
		} else if r.State.Kind != store.File || r.State.Size != 12 || r.Reason != "" {
			t.Errorf("it held still: %v, %q", r.State, r.Reason)
		}
	}
}

// TestReplacedWhileRead: the bytes, the mode and the signature are of one file.
func TestReplacedWhileRead(t *testing.T) {
	w := newWorld(t, tree{"f": "644:old", "other": "600:planted"})
	for op, other := range map[string]func() error{
		"open": func() error { return os.Rename(w.name("other"), w.name("f")) },
		"read": func() error { return os.Symlink("other", w.name("f")) },
	} {
		w.must(os.RemoveAll(w.name("f")))
		w.put("f", "644:old")
		w.put("other", "600:planted")
		done := false
		r := w.faulty(func(o string, p store.Path) error {
			if o == op && p == "f" && !done {
				done = true
				w.must(os.Remove(w.name("f")))
				w.must(other())
			}
			return nil
		})
		got, err := r.Read(t.Context(), "f", w.mem.put)
		w.must(err)
		old := got.State.Mode == 0o644 && got.State.Blob == blob.Sum([]byte("old"))
		planted := got.State.Mode == 0o600 && got.State.Blob == blob.Sum([]byte("planted"))
		if !old && !planted {
			t.Errorf("replaced before %s: %v", op, got.State)
		}
	}
}

func TestReadErrors(t *testing.T) {
	w := newWorld(t, tree{"f": "644:f", "d/": "755", "d/l": "->x"})
	for _, op := range []string{"lstat", "open", "read", "readlink"} {
		for err, unreadable := range map[error]bool{errBroken: false, fs.ErrPermission: true} {
			r := w.faulty(func(o string, _ store.Path) error {
				if o == op {
					return err
				}
				return nil
			})
			p := store.Path("f")
			if op == "readlink" {
				if unreadable {
					continue // a link that can be seen can be read
				}
				p = "d/l"
			}
			got, gotErr := r.Read(t.Context(), p, w.mem.put)
			if unreadable {
				if gotErr != nil || got.Reason != store.GapUnreadable || got.State != store.UncapturedState || got.Detail == "" {
					t.Errorf("%s refused: %+v, %v", op, got, gotErr)
				}
			} else if !errors.Is(gotErr, errBroken) {
				t.Errorf("%s broken: %+v, %v", op, got, gotErr)
			}
		}
	}
	failing := func(context.Context, io.Reader, blob.Hash) (*blob.Prepared, error) { return nil, errBroken }
	if _, err := w.root.Read(t.Context(), "f", failing); !errors.Is(err, errBroken) {
		t.Errorf("put fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.root.Read(ctx, "f", w.mem.put); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := w.root.ReadAll(ctx, []store.Path{"f", "d"}, nil, w.mem.put); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReadAll(t *testing.T) {
	files, ps := tree{}, []store.Path{}
	for i := range 300 {
		p := fmt.Sprintf("d%d/e%d/f%d", i%3, i%7, i)
		files[p] = fmt.Sprintf("644:%d", i)
		ps = append(ps, store.Path(p))
	}
	ps = append(ps, "no", "d0", ps[0])
	w := newWorld(t, files)
	readings := w.read(ps)
	for i := range 300 {
		if want := blob.Sum(fmt.Append(nil, i)); readings[i].State.Blob != want || readings[i].State.Kind != store.File {
			t.Fatalf("%q: %v", ps[i], readings[i].State)
		}
	}
	if readings[300].State != store.AbsentState || readings[301].State.Kind != store.Dir || readings[302].State != readings[0].State {
		t.Fatalf("the last three: %v %v %v", readings[300].State, readings[301].State, readings[302].State)
	}
	if none, err := w.root.ReadAll(t.Context(), nil, nil, w.mem.put); err != nil || len(none) != 0 {
		t.Fatalf("nothing: %v, %v", none, err)
	}
}

func TestReadLargeFileInOnePass(t *testing.T) {
	w := newWorld(t, tree{})
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	w.must(os.WriteFile(w.name("f"), content, 0o644))
	if got := w.readOne("f").State; got.Size != int64(len(content)) || got.Blob != blob.Sum(content) {
		t.Fatalf("%v", got)
	}
}

func TestList(t *testing.T) {
	w := newWorld(t, tree{
		"b": "644:b", "a-b": "644:", "a/": "755", "a/x": "->b", ".git/": "755", ".rx-0123456789abcdef": "644:staged",
		"\xff": "644:", "store/": "755", "link": "->a",
	})
	w.root = w.opened(workspace.Options{Protected: []string{w.name("store")}})
	want := []workspace.Entry{
		{Path: ".git", Kind: store.Dir, Protected: true},
		{Path: "a", Kind: store.Dir},
		{Path: "a-b", Kind: store.File},
		{Path: "b", Kind: store.File},
		{Path: "link", Kind: store.Symlink},
		{Path: "store", Kind: store.Dir, Protected: true},
		{Path: "\xff", Kind: store.File},
	}
	for _, p := range []store.Path{"", "."} {
		got, err := w.root.List(p)
		w.must(err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	got, err := w.root.List("a")
	w.must(err)
	if diff := cmp.Diff([]workspace.Entry{{Path: "a/x", Kind: store.Symlink}}, got); diff != "" {
		t.Error(diff)
	}
	var blocked *workspace.BlockedError
	if _, err := w.root.List("link"); !errors.As(err, &blocked) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := w.root.List("no"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	for _, p := range []store.Path{".git", "store", "../x"} {
		if _, err := w.root.List(p); err == nil {
			t.Errorf("%q was listed", p)
		}
	}
}

// TestProtectedFilesThatComeLater are looked up by many readers at once.
func TestProtectedFilesThatComeLater(t *testing.T) {
	w := newWorld(t, tree{"d/": "755", "d/a": "644:a", "e/": "755", "e/b": "644:b", "f": "644:f"})
	root, err := workspace.Open(w.dir, workspace.Options{Protected: []string{w.name("db"), w.name("db-wal"), w.name("db-shm")}})
	w.must(err)
	defer root.Close()
	w.must(os.WriteFile(w.name("db"), []byte("store"), 0o600))
	w.must(os.Link(w.name("db"), w.name("d/hard")))
	_, err = root.ReadAll(t.Context(), []store.Path{"d/a", "e/b", "f", "d/a", "e/b", "f", "d/a"}, nil, w.mem.put)
	w.must(err)
	if _, err := root.Read(t.Context(), "d/hard", w.mem.put); !errors.Is(err, workspace.ErrProtected) {
		t.Errorf("the store under another name: %v", err)
	}
}
