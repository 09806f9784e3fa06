//go:build unix

package rewind_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"reasonix/agent"
	"reasonix/internal/capture"
	"reasonix/rewind"
	"reasonix/store"
)

// sh runs a command as an agent does: announced, run, reported.
func (w *world) sh(session int, script string) (before, after agent.Captured) {
	w.t.Helper()
	e := agent.Exec{Call: fmt.Sprint(len(w.trace)), Tool: "bash"}
	w.note("sh %d %q", session, script)
	before, err := w.recorder.BeforeExec(w.t.Context(), w.ids[session], e)
	w.must(err)
	w.raw(script)
	after, err = w.recorder.AfterExec(w.t.Context(), w.ids[session], e)
	w.must(err)
	return before, after
}

// raw runs a command that nobody announces.
func (w *world) raw(script string) {
	w.t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		w.fail("%s: %v\n%s", script, err, out)
	}
}

// tree lays out files; a name that ends in a slash is a folder.
func (w *world) tree(files map[string]string) {
	w.t.Helper()
	for name, content := range files {
		full := filepath.Join(w.dir, name)
		if strings.HasSuffix(name, "/") {
			w.must(os.MkdirAll(full, 0o755))
			continue
		}
		w.must(os.MkdirAll(filepath.Dir(full), 0o755))
		w.must(os.WriteFile(full, []byte(content), 0o644))
	}
}

func (w *world) turnOf(session int, do func()) {
	w.t.Helper()
	_, err := w.recorder.BeginTurn(w.t.Context(), w.ids[session], "", "p", nil)
	w.must(err)
	do()
	w.must(w.recorder.EndTurn(w.t.Context(), w.ids[session], store.TurnDone))
}

// without leaves out what a name begins with: what is ignored.
func without(all map[string]string, prefixes ...string) map[string]string {
	kept := maps.Clone(all)
	for name := range all {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				delete(kept, name)
			}
		}
	}
	return kept
}

// TestShell: what a command changed comes back exactly, by rewind, undo and redo, and what is
// ignored is not touched.
func TestShell(t *testing.T) {
	start := map[string]string{
		".gitignore": "out/\n*.o\n", "main.go": "package main\n", "a/b/deep.txt": "deep\n", "a/c.txt": "c\n", "empty/": "",
		"run.sh": "#!/bin/sh\n", "x y/é\n.txt": "odd\n", "copy/one": "1\n", "copy/two": "2\n", "lib/.git/HEAD": "ref\n", "lib/code": "lib\n",
		"out/old.bin": "built before\n", "keep.o": "object\n",
	}
	cases := map[string]string{
		"sed -i":   `sed -i.bak s/main/other/ main.go && rm main.go.bak`,
		"rm -r":    `rm -r a empty`,
		"mv":       `mv a z && mv main.go renamed.go`,
		"cp -r":    `cp -r copy copied && echo more >> copied/one`,
		"chmod":    `chmod 755 run.sh && chmod 700 a`,
		"ln -s":    `ln -s main.go link && ln -sf ../copy a/c.txt`,
		"kinds":    `rm main.go && mkdir main.go && touch main.go/inner && rm -r copy && echo file > copy`,
		"checkout": `cp main.go /dev/null; printf 'package main // committed\n' > main.go && printf 'dirty gone\n' > a/c.txt`,
		"odd names": `printf x > 'x y/é
.txt' && touch -- -dash 'trail ' && mkdir 'new dir' && touch 'new dir/q"\'`,
		"empty folder":      `mkdir -p n1/n2/n3 && rmdir empty`,
		"truncate":          `: > main.go`,
		"ignored":           `mkdir -p out/deep && echo built > out/deep/x && echo y > out/old.bin && echo z > new.o && echo 1 >> main.go`,
		"nested repository": `echo changed > lib/code && echo new > lib/.git/index`,
		"touch":             `touch main.go a/c.txt`,
		"two in one":        `echo 1 > main.go; echo 2 > main.go; rm main.go; echo 3 > main.go`,
		"in a symlink":      `ln -s copy alias && echo through > alias/one`,
		"a script":          `for i in 1 2 3 4 5 6 7 8 9; do echo $i > gen$i; done; rm gen5`,
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			defer w.close()
			w.tree(start)
			w.must(os.WriteFile(filepath.Join(w.dir, "run.sh"), []byte("#!/bin/sh\n"), 0o644))
			before := manifest(t, w.dir)
			w.turnOf(0, func() { w.sh(0, script) })
			after := manifest(t, w.dir)
			ignored := []string{"out/", "keep.o", "new.o", "lib/.git/"}
			mtime := func() map[string]int64 {
				all := map[string]int64{}
				for _, p := range []string{"a/c.txt", "main.go", "out/old.bin"} {
					if fi, err := os.Lstat(filepath.Join(w.dir, p)); err == nil {
						all[p] = fi.ModTime().UnixNano()
					}
				}
				return all
			}
			times := mtime()
			w.do(rewind.Request{Turn: 0})
			if d := cmp.Diff(without(before, ignored...), without(manifest(t, w.dir), ignored...)); d != "" {
				t.Errorf("rewound (-before +now):\n%s", d)
			}
			left := manifest(t, w.dir)
			for p, content := range after {
				if without(map[string]string{p: ""}, ignored...)[p] == "" && hasAny(p, ignored) && left[p] != content {
					t.Errorf("ignored %s was touched: %q, was %q", p, left[p], content)
				}
			}
			if name == "touch" { // nothing changed, so nothing is written (I5)
				for p, at := range mtime() {
					if times[p] != at {
						t.Errorf("%s was written", p)
					}
				}
			}
			if name != "touch" {
				w.do(rewind.Request{Kind: store.OpUndo})
				w.same("undone", after)
				w.do(rewind.Request{Kind: store.OpRedo})
				if d := cmp.Diff(without(before, ignored...), without(manifest(t, w.dir), ignored...)); d != "" {
					t.Errorf("redone (-before +now):\n%s", d)
				}
			}
		})
	}
}

// look is the result of a plan, conflicts and all.
func (w *world) look(r rewind.Request) rewind.Result {
	w.t.Helper()
	p, res, err := w.plan(r)
	if p == nil {
		w.fail("plan %+v: %v", r, err)
	}
	return res
}

// sql changes the store, which is closed, behind its back.
func (w *world) sql(statement string) {
	w.t.Helper()
	plain, err := sqlx.Open("sqlite", "file:"+w.file)
	w.must(err)
	_, err = plain.Exec(statement)
	w.must(err)
	w.must(plain.Close())
}

func hasAny(p string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return false
}

// TestShellMany: a build that writes 2,000 ignored files and a generator that rewrites 500
// covered ones.
func TestShellMany(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{".gitignore": "build/\n"})
	for i := range 500 {
		w.tree(map[string]string{fmt.Sprintf("gen/%d/f%d.go", i%7, i): fmt.Sprintf("package g // %d\n", i)})
	}
	before := manifest(t, w.dir)
	var found agent.Captured
	w.turnOf(0, func() {
		_, found = w.sh(0, `mkdir -p build/a; i=0; while [ $i -lt 2000 ]; do echo $i > build/a/$i.o; i=$((i+1)); done
			for f in gen/*/*.go; do echo "// again" >> $f; done`)
	})
	if len(found.Paths) != 500 {
		t.Errorf("the command changed %d paths, 500 are covered", len(found.Paths))
	}
	w.do(rewind.Request{Turn: 0})
	if d := cmp.Diff(before, without(manifest(t, w.dir), "build/")); d != "" {
		t.Errorf("rewound (-before +now):\n%s", d)
	}
	if n := len(manifest(t, w.dir)) - len(before); n != 2002 {
		t.Errorf("%d paths of the build are left, 2002 were made", n)
	}
}

// TestShellTurns: several commands and edits by turns, rewound to each.
func TestShellTurns(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"f": "0\n", "g": "0\n"})
	var at []map[string]string
	for i := range 5 {
		at = append(at, manifest(t, w.dir))
		w.turnOf(0, func() {
			w.sh(0, fmt.Sprintf(`echo %d >> f; mkdir -p d%d; echo %d > d%d/x`, i, i, i, i))
			w.edit(0, "g", fmt.Sprintf("644:%d", i))
			w.sh(0, `echo more >> g; rm -f d0/x`)
		})
	}
	at = append(at, manifest(t, w.dir))
	for k := len(at) - 2; k >= 0; k-- {
		w.do(rewind.Request{Turn: k})
		w.same(fmt.Sprint("rewind ", k), at[k])
		w.do(rewind.Request{Kind: store.OpUndo})
		w.same(fmt.Sprint("undo of rewind ", k), at[len(at)-1])
	}
}

// TestShellAndHandEdits: a hand edit between turns and one between commands is nobody's of the
// agent (I13), also of a path that the line knew before.
func TestShellAndHandEdits(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"theirs": "0\n", "ours": "0\n", "both": "0\n"})
	w.turnOf(0, func() { w.sh(0, `echo 1 > ours; echo 1 > both`) })
	w.tree(map[string]string{"theirs": "by hand\n", "both": "by hand\n"})
	w.turnOf(0, func() {
		w.tree(map[string]string{"theirs": "by hand again\n"})
		w.sh(0, `echo 2 > ours`)
	})
	if c := w.look(rewind.Request{Turn: 1}).Conflicts; len(c) != 0 {
		t.Errorf("conflicts %+v", c)
	}
	w.do(rewind.Request{Turn: 1})
	w.same("rewind 1", map[string]string{"theirs": "644:by hand again\n", "ours": "644:1\n", "both": "644:by hand\n"})
	// Turn 0 wrote both; somebody else wrote it last.
	if c := w.look(rewind.Request{Turn: 0}).Conflicts; len(c) != 1 || c[0].Path != "both" || c[0].Reason != rewind.ChangedByOther {
		t.Errorf("conflicts %+v", c)
	}
}

// TestOverlappingCommands: what two sessions' commands may both have written is recorded in
// both, and is a conflict in a rewind of either.
func TestOverlappingCommands(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"shared": "0\n", "alone": "0\n"})
	w.newSession()
	ctx := t.Context()
	for i := range 2 {
		_, err := w.recorder.BeginTurn(ctx, w.ids[i], "", "p", nil)
		w.must(err)
	}
	first, second := agent.Exec{Call: "1", Tool: "bash"}, agent.Exec{Call: "2", Tool: "bash"}
	_, err := w.recorder.BeforeExec(ctx, w.ids[0], first)
	w.must(err)
	w.raw(`echo first > alone`)
	_, err = w.recorder.BeforeExec(ctx, w.ids[1], second) // sees what the first did so far
	w.must(err)
	w.raw(`echo either > shared`)
	_, err = w.recorder.AfterExec(ctx, w.ids[0], first)
	w.must(err)
	_, err = w.recorder.AfterExec(ctx, w.ids[1], second)
	w.must(err)
	for i := range 2 {
		w.must(w.recorder.EndTurn(ctx, w.ids[i], store.TurnDone))
		w.must(w.capture.Store.View(ctx, func(tx *store.Tx) error {
			s, err := tx.Session(w.ids[i])
			if err != nil {
				return err
			}
			rows, err := tx.NodeChanges(mustNode(w, tx, s.Head))
			if err != nil {
				return err
			}
			var paths []string
			for _, r := range rows {
				paths = append(paths, fmt.Sprintf("%s %s", r.Path, r.Source))
			}
			want := "[alone shell shared shell]"
			if i == 1 {
				want = "[shared shell]"
			}
			if fmt.Sprint(paths) != want {
				t.Errorf("session %d has rows %v, want %s", i, paths, want)
			}
			gaps, err := tx.Gaps(s.Head, -1)
			if err == nil && (len(gaps) != 1 || gaps[0].Reason != store.GapOverlap || gaps[0].Path != "shared") {
				t.Errorf("session %d has gaps %+v", i, gaps)
			}
			return err
		}))
		plan, err := w.engine.Plan(ctx, rewind.Request{Kind: store.OpRewind, Session: w.ids[i], Turn: 0, Scope: store.Code})
		if err == nil || len(plan.Result().Conflicts) != 1 || plan.Result().Conflicts[0].Reason != rewind.Overlapping {
			t.Errorf("session %d: %v", i, err)
		}
	}
	w.do(rewind.Request{Turn: 0, Force: true})
	w.same("forced", map[string]string{"shared": "644:0\n", "alone": "644:0\n"})
}

func mustNode(w *world, tx *store.Tx, id store.NodeID) store.Node {
	w.t.Helper()
	n, err := tx.Node(id)
	w.must(err)
	return n
}

// TestAnnouncedEditBesideACommand: what another session's tool writes while a command runs is
// that session's.
func TestAnnouncedEditBesideACommand(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.tree(map[string]string{"tool": "0\n", "shell": "0\n"})
	w.newSession()
	ctx := t.Context()
	for i := range 2 {
		_, err := w.recorder.BeginTurn(ctx, w.ids[i], "", "p", nil)
		w.must(err)
	}
	_, err := w.recorder.BeforeExec(ctx, w.ids[0], agent.Exec{Call: "1"})
	w.must(err)
	w.raw(`echo 1 > shell`)
	w.edit(1, "tool", "644:edited")
	found, err := w.recorder.AfterExec(ctx, w.ids[0], agent.Exec{Call: "1"})
	w.must(err)
	for i := range 2 {
		w.must(w.recorder.EndTurn(ctx, w.ids[i], store.TurnDone))
	}
	if len(found.Gaps) != 0 {
		t.Errorf("gaps %v", found.Gaps)
	}
	w.do(rewind.Request{Turn: 0})
	w.same("only the command's", map[string]string{"tool": "644:edited", "shell": "644:0\n"})
}

// TestKilledCommand: a command whose end nobody reports is looked at when its turn is closed, by
// the next turn or by a rewind.
func TestKilledCommand(t *testing.T) {
	for _, byRewind := range []bool{false, true} {
		w := newWorld(t, 1)
		w.tree(map[string]string{"f": "0\n"})
		ctx := t.Context()
		_, err := w.recorder.BeginTurn(ctx, w.ids[0], "", "p", nil)
		w.must(err)
		_, err = w.recorder.BeforeExec(ctx, w.ids[0], agent.Exec{Call: "1"})
		w.must(err)
		w.raw(`echo half > f; mkdir d; echo new > d/g`)
		if !byRewind {
			w.turnOf(0, func() {})
		}
		r := rewind.Request{Kind: store.OpRewind, Session: w.ids[0], Turn: 0, Scope: store.Both, Force: byRewind}
		for range 2 { // closing the turn makes the first plan stale
			var p *rewind.Plan
			p, err = w.engine.Plan(ctx, r)
			if err == nil {
				_, err = w.engine.Apply(ctx, p)
			}
			if err == nil {
				break
			}
		}
		w.must(err)
		w.same("rewound", map[string]string{"f": "644:0\n"})
		w.close()
	}
}

// TestScanIndexIsACache: without it, or with a damaged one, a rewind is as exact as before.
func TestScanIndexIsACache(t *testing.T) {
	for _, damage := range []string{`DELETE FROM scan_part`, `UPDATE scan_part SET data = x'00'`} {
		w := newWorld(t, 1)
		w.tree(map[string]string{"f": "0\n", "g": "0\n"})
		w.turnOf(0, func() { w.sh(0, `echo 1 > f`) })
		w.close()
		w.sql(damage)
		w.open()
		w.tree(map[string]string{"f": "by hand\n"})
		w.turnOf(0, func() { w.sh(0, `echo 2 > g`) })
		w.do(rewind.Request{Turn: 1})
		w.same(damage, map[string]string{"f": "644:by hand\n", "g": "644:0\n"})
		if c := w.look(rewind.Request{Turn: 0}).Conflicts; len(c) != 1 || c[0].Path != "f" {
			t.Errorf("%s: conflicts %+v", damage, c)
		}
		w.close()
	}
}

// TestNeverScanned leaves the gap, and what tools announce is covered.
func TestNeverScanned(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	w.capture.Scanning = capture.Scanning{Never: "a reason"}
	w.tree(map[string]string{"f": "0\n"})
	w.turnOf(0, func() {
		before, after := w.sh(0, `echo 1 > f`)
		for _, c := range []agent.Captured{before, after} {
			if len(c.Gaps) != 1 || c.Gaps[0].Reason != store.GapShellNotScanned || c.Gaps[0].Detail != "a reason" {
				t.Errorf("gaps %+v", c.Gaps)
			}
		}
	})
	if r := w.look(rewind.Request{Turn: 0}); len(r.Written) != 0 {
		t.Errorf("written %v", r.Written)
	}
}

// TestAlwaysScanned: a person's edit between turns is told from the agent's without any command,
// if that is wanted; else nobody looks.
func TestAlwaysScanned(t *testing.T) {
	for _, always := range []bool{false, true} {
		w := newWorld(t, 1)
		w.capture.Scanning = capture.Scanning{Always: always}
		w.tree(map[string]string{"a": "0\n", "b": "0\n"})
		w.turnOf(0, func() { w.edit(0, "a", "644:1") })
		w.tree(map[string]string{"a": "by hand\n"})
		w.turnOf(0, func() { w.edit(0, "b", "644:1") })
		var rows []string
		w.must(w.capture.Store.View(t.Context(), func(tx *store.Tx) error {
			s, err := tx.Session(w.ids[0])
			if err != nil {
				return err
			}
			placed, err := tx.TurnChanges(s.Head, 0)
			for _, p := range placed {
				rows = append(rows, fmt.Sprintf("%s %s", p.Path, p.Source))
			}
			return err
		}))
		want := "[a tool]"
		if always {
			want = "[a tool a external]"
		}
		if fmt.Sprint(rows) != want {
			t.Errorf("always=%v: rows %v, want %s", always, rows, want)
		}
		w.close()
	}
}
