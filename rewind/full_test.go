//go:build unix

package rewind_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/capture"
	"reasonix/rewind"
	"reasonix/store"
)

// noise is n bytes that do not compress, as put takes them.
func noise(seed uint64, n int) string {
	b, r := make([]byte, n), rand.New(rand.NewPCG(seed, 9))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return "644:" + string(b)
}

// settled recovers and says whether all is as it was; else it must be as the move makes it.
func (w *world) settled(what string, was, becomes map[string]string) bool {
	w.t.Helper()
	if _, err := w.engine.Recover(w.t.Context()); err != nil {
		w.fail("%s: recover: %v", what, err)
	}
	is := w.shapeOf()
	before, after := cmp.Equal(was, is), cmp.Equal(becomes, is)
	if !before && !after {
		w.fail("%s: neither before nor after:\n%.2000s", what, cmp.Diff(was, is))
	}
	w.verify(true)
	return before
}

// TestCrashFullStore gives the store no page more than it has, then one more, and so on until a
// forced move, which has a hand edit to store, finds room (I8). A recovery needs no room at all.
func TestCrashFullStore(t *testing.T) {
	for _, scope := range []store.Scope{store.Code, store.Conversation, store.Both} {
		t.Run(scope.String(), func(t *testing.T) {
			t.Parallel()
			template := faultWorld(t, func(w *world) { w.put("b", noise(1, 60<<10)) })
			r := rewind.Request{Kind: store.OpRewind, Session: template.ids[0], Turn: 1, Scope: scope, Force: true}
			template.close()
			done := template.copy()
			was := done.shapeOf()
			done.mustMove(r)
			becomes := done.shapeOf()
			done.close()
			info, err := os.Stat(template.file)
			template.must(err)
			refused := 0
			for pages := info.Size() / 4096; ; pages++ {
				w := template.copy()
				s, err := store.Open(t.Context(), w.file, store.Options{MaxPages: pages})
				w.must(err)
				merr := move(t.Context(), rewind.New(&capture.Capturer{Store: s, Root: w.capture.Root}, rewind.Options{}), r)
				w.must(s.Close())
				before := w.settled(fmt.Sprint(pages, " pages"), was, becomes)
				w.close()
				if before != (merr != nil) {
					t.Fatalf("%d pages: %v, and before is %v", pages, merr, before)
				}
				if merr == nil {
					break
				}
				refused++
			}
			t.Logf("refused with %d numbers of pages", refused)
			if refused == 0 && scope != store.Conversation {
				t.Error("there was always room")
			}
		})
	}
}

// TestCrashFileSize moves with a limit on the size of files: a write that reaches it is cut short,
// the next one fails, whoever makes it. The limit grows until the move succeeds.
func TestCrashFileSize(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh to set a limit with")
	}
	template := faultWorld(t, func(w *world) {
		w.edits(0, "big", noise(1, 150<<10))
		w.edits(0, "big", noise(2, 10))
		w.put("b", noise(3, 90<<10))
	})
	r := rewind.Request{Kind: store.OpRewind, Session: template.ids[0], Turn: 4, Scope: store.Both, Force: true}
	template.close()
	done := template.copy()
	was := done.shapeOf()
	done.mustMove(r)
	becomes := done.shapeOf()
	done.close()
	failed := 0
	for blocks := 1; ; blocks += 1 + blocks/8 {
		w := template.copy()
		c := childProcess{Dir: w.dir, File: w.file, Job: "move", Request: r}.command(t.Context())
		// The shell counts blocks of 512 bytes, or of 1024.
		limited := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f "$1"; shift; exec "$@"`, "sh", fmt.Sprint(blocks), c.Path)
		limited.Env = c.Env
		err := limited.Run()
		before := w.settled(fmt.Sprint(blocks, " blocks"), was, becomes)
		left, gerr := filepath.Glob(filepath.Join(w.dir, ".rx-*"))
		w.must(gerr)
		w.close()
		if before != (err != nil) || len(left) > 0 {
			t.Fatalf("%d blocks: %v, before is %v, left are %v", blocks, err, before, left)
		}
		if err == nil {
			break
		}
		failed++
	}
	t.Logf("failed with %d limits", failed)
	if failed < 5 {
		t.Errorf("only %d limits stopped the move", failed)
	}
}
