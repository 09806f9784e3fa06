package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/capture"
	"reasonix/internal/place"
	"reasonix/rewind"
	"reasonix/store"
)

// An operation that was killed is taken back by the next command, which says so on standard
// error; sql, which never writes, says that one waits.
func TestInterruptedOperationIsTold(t *testing.T) {
	h := newHooked(t)
	file := filepath.Join(h.dir, "a")
	h.event("begin-turn", nil)
	h.event("before-edit", map[string]any{"paths": []string{"a"}, "call": "c"})
	if err := os.WriteFile(file, []byte("after"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.event("after-edit", map[string]any{"call": "c"})
	h.event("end-turn", nil)
	before := manifest(h.dir)
	h.die("written")
	if manifest(h.dir) == before {
		t.Fatal("the operation was not cut off in the middle")
	}

	if got := h.stderr("sql", "select 1"); !strings.Contains(got, "an interrupted operation waits") {
		t.Errorf("sql says %q", got)
	}
	if got := h.stderr("log"); !strings.Contains(got, "operation 1 (rewind) was interrupted; it was taken back") {
		t.Errorf("log says %q", got)
	}
	if got := manifest(h.dir); got != before {
		t.Errorf("files\n%s\nwant\n%s", got, before)
	}
	if got := h.stderr("log"); got != "" {
		t.Errorf("log says %q again", got)
	}
	if out := h.run(nil, "ops"); !bytes.Contains(out, []byte("taken back after an interruption")) {
		t.Errorf("ops\n%s", out)
	}
	h.run(nil, "verify", "--deep")
}

// die rewinds to turn 0 and stops at a point as a killed process would.
func (h *hooked) die(point string) {
	h.t.Helper()
	ctx := context.Background()
	where := place.Where{State: filepath.Join(filepath.Dir(h.dir), "state", "reasonix")}
	p, err := where.Find(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	o, err := p.Open(ctx, place.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer o.Close()
	engine := rewind.New(&capture.Capturer{Store: o.Store, Root: o.Root}, rewind.Options{Point: func(name string) {
		if name == point {
			panic(point)
		}
	}})
	var current store.Session
	err = o.Store.View(ctx, func(tx *store.Tx) (err error) { current, err = tx.Current(); return err })
	if err != nil {
		h.t.Fatal(err)
	}
	plan, err := engine.Plan(ctx, rewind.Request{Kind: store.OpRewind, Session: current.ID, Scope: store.Both})
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() {
		if recover() != point {
			h.t.Fatalf("the rewind did not come to %s", point)
		}
	}()
	_, _ = engine.Apply(ctx, plan) // it panics
}

// stderr runs the program, which must succeed, and returns its standard error.
func (h *hooked) stderr(args ...string) string {
	h.t.Helper()
	cmd := exec.Command("reasonix", args...)
	cmd.Dir, cmd.Env = h.dir, h.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	return stderr.String()
}
