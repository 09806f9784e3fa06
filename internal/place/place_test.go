package place

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reasonix/db"
	"reasonix/internal/asuser"
	"reasonix/store"
)

// town is a folder with a home, a temporary folder and a state folder of its own.
type town struct {
	t     *testing.T
	base  string
	where Where
}

func newTown(t *testing.T) *town {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, base: base}
	env := map[string]string{"HOME": w.mkdir("home"), "XDG_STATE_HOME": filepath.Join(base, "state")}
	w.where = FromEnv(func(name string) string { return env[name] })
	w.where.Temp = []string{w.mkdir("tmp")}
	return w
}

func (w *town) mkdir(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// settle makes the store of a folder.
func (w *town) settle(dir string) Place {
	w.t.Helper()
	p, err := w.where.Make(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := p.Open(context.Background(), Options{Create: true})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *town) open(p Place, o Options) error {
	w.t.Helper()
	opened, err := p.Open(context.Background(), o)
	if err == nil {
		err = opened.Close()
	}
	return err
}

func TestNearestWorkspaceWins(t *testing.T) {
	w := newTown(t)
	outer, inner := w.mkdir("home/p"), w.mkdir("home/p/vendor/q")
	deep := w.mkdir("home/p/vendor/q/x/y")
	w.settle(w.where.Home)
	if _, err := w.where.Find(deep); !errors.Is(err, ErrNoStore) {
		t.Fatalf("the home folder stands for what lies in it: %v", err)
	}
	w.settle(outer)
	for dir, want := range map[string]string{deep: outer, outer: outer, w.where.Home: w.where.Home} {
		if p, err := w.where.Find(dir); err != nil || p.Root != want {
			t.Errorf("%s: %s, %v; want %s", dir, p.Root, err, want)
		}
	}
	w.settle(inner)
	if p, err := w.where.Find(deep); err != nil || p.Root != inner {
		t.Fatalf("%s, %v", p.Root, err)
	}
	nested, err := w.where.Nested(context.Background(), outer)
	if err != nil || !slices.Equal(nested, []string{inner}) {
		t.Fatalf("%q, %v", nested, err)
	}
	if nested, err = w.where.Nested(context.Background(), inner); err != nil || !slices.Equal(nested, []string{outer}) {
		t.Fatalf("%q, %v", nested, err)
	}
	// Through a link it is the same workspace.
	link := filepath.Join(w.base, "link")
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	if p, err := w.where.Find(link); err != nil || p.Root != inner {
		t.Fatalf("%s, %v", p.Root, err)
	}
}

func TestFoldersThatStandForThemselves(t *testing.T) {
	w := newTown(t)
	for dir, alone := range map[string]bool{
		"/": true, w.where.Home: true, w.where.Temp[0]: true, w.base: false, w.mkdir("home/x"): false, w.mkdir("tmp/x"): false,
	} {
		if got := w.where.Alone(dir); got != alone {
			t.Errorf("Alone(%s) = %v", dir, got)
		}
	}
	if !w.where.Wide("/") || !w.where.Wide(w.where.Home) || w.where.Wide(w.where.Temp[0]) {
		t.Error("only $HOME and / are too wide")
	}
	w.settle(w.where.Temp[0])
	if _, err := w.where.Find(w.mkdir("tmp/x")); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
}

func TestFromEnv(t *testing.T) {
	env := map[string]string{"HOME": "/h", "XDG_STATE_HOME": "relative", "REASONIX_HOME": "/other", "REASONIX_STORE": "/s.db"}
	w := FromEnv(func(name string) string { return env[name] })
	if w.State != "/h/.local/state/reasonix" || w.Store != "/s.db" || !slices.Equal(w.Reserved, []string{"/h/.reasonix", "/other"}) {
		t.Fatalf("%+v", w)
	}
	p := w.Of("/a/b")
	if ok := strings.HasPrefix(p.Store, "/h/.local/state/reasonix/b-"); !ok || filepath.Base(p.Store) != "store.db" {
		t.Fatal(p.Store)
	}
	if long := w.Of("/" + strings.Repeat("x", 300)); len(filepath.Base(filepath.Dir(long.Store))) > 100 {
		t.Fatal(long.Store)
	}
	if w.Of("/a/b").Store == w.Of("/c/b").Store || filepath.Base(filepath.Dir(w.Of("/").Store))[:5] != "root-" {
		t.Fatal("two workspaces share a place")
	}
}

func TestAnotherFolderAtTheSamePath(t *testing.T) {
	w := newTown(t)
	dir := w.mkdir("p")
	p := w.settle(dir)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	w.mkdir("p")
	if err := w.open(p, Options{}); !errors.Is(err, ErrOtherFolder) {
		t.Fatal(err)
	}
	if err := w.open(p, Options{Create: true}); !errors.Is(err, ErrOtherFolder) {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := w.open(p, Options{}); !errors.Is(err, ErrNoFolder) {
		t.Fatal(err)
	}
	all, err := w.where.List(context.Background())
	if err != nil || len(all) != 1 || !all[0].Missing || all[0].Place.Root != dir {
		t.Fatalf("%+v, %v", all, err)
	}
}

func TestMove(t *testing.T) {
	w, ctx := newTown(t), context.Background()
	dir, to := w.mkdir("p"), filepath.Join(w.base, "q")
	w.settle(dir)
	if _, err := w.where.PlanMove(ctx, dir, w.mkdir("other")); !errors.Is(err, ErrOccupied) {
		t.Fatalf("a workspace that is still there was moved: %v", err)
	}
	if err := os.Rename(dir, to); err != nil {
		t.Fatal(err)
	}
	if _, err := w.where.PlanMove(ctx, filepath.Join(w.base, "nowhere"), to); !errors.Is(err, ErrNoStore) {
		t.Fatal(err)
	}
	m, err := w.where.PlanMove(ctx, dir, to)
	if err != nil || m.From.Root != dir || m.To.Root != to {
		t.Fatalf("%+v, %v", m, err)
	}
	// A crash between binding and renaming: the same move goes on.
	bound := m
	bound.New = bound.Old
	if err := w.where.Move(ctx, bound, unlocked); err != nil {
		t.Fatal(err)
	}
	if m, err = w.where.PlanMove(ctx, dir, to); err != nil {
		t.Fatal(err)
	}
	if err := w.where.Move(ctx, m, unlocked); err != nil {
		t.Fatal(err)
	}
	p, err := w.where.Find(to)
	if err != nil || w.open(p, Options{}) != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := w.where.Find(w.mkdir("p")); !errors.Is(err, ErrNoStore) {
		t.Fatal(err)
	}
	w.settle(dir)
	if _, err := w.where.PlanMove(ctx, to, dir); !errors.Is(err, ErrOccupied) {
		t.Fatalf("a store would be put where one is: %v", err)
	}
}

func unlocked(*store.Store) (func(), error) { return func() {}, nil }

func TestReservedFolders(t *testing.T) {
	w := newTown(t)
	dir := w.mkdir("p")
	inside := filepath.Join(w.where.Home, ".reasonix", "sub", "store.db")
	link := filepath.Join(w.base, "link")
	if err := os.Symlink(w.mkdir("home/.reasonix"), link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{inside, filepath.Join(link, "store.db")} {
		w.where.Store = name
		if _, err := w.where.Make(dir); !errors.Is(err, ErrReserved) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.where.Store, w.where.State = "", filepath.Join(w.where.Home, ".reasonix", "state")
	if _, err := w.where.Make(dir); !errors.Is(err, ErrReserved) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(w.where.Home, ".reasonix")); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestNamedStores(t *testing.T) {
	w := newTown(t)
	dir, sub := w.mkdir("p"), w.mkdir("p/sub")
	w.where.Store = filepath.Join(dir, ".rx", "store.db")
	if _, err := w.where.Find(dir); !errors.Is(err, ErrNoStore) {
		t.Fatal(err)
	}
	w.settle(dir)
	p, err := w.where.Find("/")
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]error{"": nil, dir: nil, sub: nil, w.mkdir("else"): ErrOtherFolder} {
		if err := w.open(p, Options{Dir: from}); !errors.Is(err, want) {
			t.Errorf("from %q: %v, want %v", from, err, want)
		}
	}
	if got := p.Protected(dir); !slices.Contains(got, filepath.Join(dir, ".rx")) || !slices.Contains(got, p.Store) {
		t.Errorf("%q", got)
	}
	// A store that lies at the root must not make the whole workspace untouchable.
	p.Store = filepath.Join(dir, "store.db")
	if got := p.Protected(dir); len(got) < 5 || got[0] != p.Store || slices.Contains(got, dir) {
		t.Errorf("%q", got)
	}
}

func TestListShowsWhatCannotBeRead(t *testing.T) {
	w := newTown(t)
	w.settle(w.mkdir("p"))
	bad := w.where.Of(filepath.Join(w.base, "q")).Store
	if err := os.MkdirAll(filepath.Dir(bad), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, make([]byte, 200), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := w.where.List(context.Background())
	if err != nil || len(all) != 2 || all[0].Err != nil || !errors.Is(all[1].Err, db.ErrForeign) {
		t.Fatalf("%+v, %v", all, err)
	}
	if none, err := (Where{State: filepath.Join(w.base, "none")}).List(context.Background()); err != nil || len(none) > 0 {
		t.Fatalf("%v, %v", none, err)
	}
}

// A store whose making was interrupted holds nothing, so it counts as none.
func TestStoreThatWasNeverBegun(t *testing.T) {
	w := newTown(t)
	dir := w.mkdir("p")
	p, err := w.where.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Store, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.where.Find(dir); !errors.Is(err, ErrNoStore) {
		t.Fatal(err)
	}
	w.settle(dir)
	if _, err := w.where.Find(dir); err != nil {
		t.Fatal(err)
	}
}

// TestStoreWithoutAWorkspace: a process was killed after the schema and before the first row. It
// is as good as none, and whoever may make one finishes it.
func TestStoreWithoutAWorkspace(t *testing.T) {
	w := newTown(t)
	dir := w.mkdir("p")
	p, err := w.where.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.Context(), p.Store, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if p, err = w.where.Find(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), Options{}); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("for reading: %v", err)
	}
	for range 2 {
		o, err := p.Open(t.Context(), Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if o.Root.Path() != dir {
			t.Errorf("it is about %s", o.Root.Path())
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotScanned: home, the root of the file system and folders for temporary files are not
// scanned; what lies in them is.
func TestNotScanned(t *testing.T) {
	w := newTown(t)
	tmp := w.mkdir("tmp")
	w.where.Temp = append(w.where.Temp, tmp)
	for root, never := range map[string]bool{
		filepath.Join(w.base, "home"): true, tmp: true, "/": true,
		w.mkdir("home/p"): false, w.mkdir("tmp/p"): false, w.mkdir("p"): false,
	} {
		if why := w.where.NotScanned(root); (why != "") != never {
			t.Errorf("%s: %q", root, why)
		}
	}
}

// A store that may not be written can still be looked at.
func TestReadOnlyStore(t *testing.T) {
	if asuser.Ran(t) {
		return
	}
	w := newTown(t)
	p := w.settle(w.mkdir("p"))
	if err := os.Chmod(p.Store, 0o400); err != nil {
		t.Fatal(err)
	}
	o, err := p.Open(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = o.Store.Update(context.Background(), func(*store.WriteTx) error { return nil })
	if !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a file that may only be read: %v", err)
	}
	if err := errors.Join(o.Close(), os.Chmod(p.Store, 0o600), os.Chmod(filepath.Dir(p.Store), 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(p.Store), 0o700)
	if o, err = p.Open(context.Background(), Options{}); err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	err = o.Store.Update(context.Background(), func(*store.WriteTx) error { return nil })
	if !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a folder that may only be read: %v", err)
	}
}
