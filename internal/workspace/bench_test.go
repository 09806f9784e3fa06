package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// BenchmarkReplace1000 stages and applies 1,000 files of 10 KB in 50 folders, durably: half of
// the rounds replace, half go back.
func BenchmarkReplace1000(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	w := newWorld(b, tree{})
	var there, back []workspace.Step
	for i := range 1000 {
		p := store.Path(fmt.Sprintf("d%d/f%d", i%50, i))
		w.put(string(p), "644:"+noise(rnd))
		from := w.readOne(p)
		s := w.file(p, 0o644, noise(rnd))
		there = append(there, workspace.Step{Path: p, From: from.State, To: s.To})
		back = append(back, workspace.Step{Path: p, From: s.To, To: from.State})
	}
	ps := make([]store.Path, len(there))
	for i := range there {
		ps[i] = there[i].Path
	}
	w.root = w.opened(workspace.Options{Now: later})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i, r := range w.read(ps) {
			there[i].Sig = r.Sig
		}
		b.StartTimer()
		w.must(w.apply(w.root, there))
		there, back = back, there
	}
}

// BenchmarkReplaceOne is the every-day case: one file, durably.
func BenchmarkReplaceOne(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	w := newWorld(b, tree{"a/b/c/": "755"})
	w.put("a/b/c/f", "644:"+noise(rnd))
	there := w.file("a/b/c/f", 0o644, noise(rnd))
	back := workspace.Step{Path: there.Path, From: there.To, To: there.From}
	b.ReportAllocs()
	for b.Loop() {
		there.Sig = workspace.Sig{}
		w.must(w.apply(w.root, []workspace.Step{there}))
		there, back = back, there
	}
}

func BenchmarkRead10KB(b *testing.B) {
	w := newWorld(b, tree{})
	w.must(os.MkdirAll(w.name("a/b"), 0o755))
	w.put("a/b/f", "644:"+noise(rand.New(rand.NewPCG(1, 2))))
	put := func(_ context.Context, r io.Reader, _ blob.Hash) (*blob.Prepared, error) { return blob.Digest(r) }
	b.ReportAllocs()
	b.SetBytes(10 << 10)
	for b.Loop() {
		if _, err := w.root.Read(b.Context(), "a/b/f", put); err != nil {
			b.Fatal(err)
		}
	}
}

func noise(rnd *rand.Rand) string {
	var out bytes.Buffer
	for range 10 << 10 {
		out.WriteByte(byte('a' + rnd.IntN(26)))
	}
	return out.String()
}
