package workspace_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/blob"
	"reasonix/db"
	"reasonix/internal/workspace"
)

// keeper keeps what scans emit in a real store, durably.
type keeper struct {
	b     testing.TB
	root  *workspace.Root
	db    *db.DB
	blobs *blob.Store
	parts [][]byte
}

func newKeeper(b testing.TB, dir string) *keeper {
	b.Helper()
	d, err := db.Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), db.Options{})
	if err != nil {
		b.Fatal(err)
	}
	root, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	k := &keeper{b: b, root: root, db: d, blobs: blob.New(d, time.Now)}
	b.Cleanup(k.close)
	return k
}

func (k *keeper) close() {
	_ = k.root.Close()
	_ = k.db.Close()
}

// commit binds the contents, and the part as one more: it has to be on disk as well.
func (k *keeper) commit(ctx context.Context, batch workspace.Batch) error {
	part, err := k.blobs.PrepareBytes(ctx, batch.Part)
	if err != nil {
		return err
	}
	err = k.db.Update(ctx, func(tx *db.WriteTx) error {
		for _, p := range append(batch.Contents, part) {
			if _, err := k.blobs.Bind(tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if batch.Full {
		k.parts = nil
	}
	k.parts = append(k.parts, batch.Part)
	return err
}

// scan loads the index and scans.
func (k *keeper) scan() workspace.Scan {
	base, err := workspace.DecodeParts(k.parts)
	if err != nil {
		k.b.Fatal(err)
	}
	s, err := k.root.Scan(k.b.Context(), workspace.ScanOptions{Base: base, Put: k.blobs.PrepareAgainst, Commit: k.commit})
	if err != nil {
		k.b.Fatal(err)
	}
	return s
}

// compact is what a caller does after a first capture.
func (k *keeper) compact(s workspace.Scan) { k.parts = [][]byte{s.Index.Encode()} }

// sources is a copy of the sources of Go: some 11,000 files.
func sources(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("there is no go command to ask for GOROOT:", err)
	}
	dir := filepath.Join(realTemp(b), "src")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "src"))); err != nil {
		b.Fatal(err)
	}
	time.Sleep(grain)
	return dir
}

// grain is what a stamp has to be older than, as in a real tree, not to be racy.
const grain = 50 * time.Millisecond

// BenchmarkDecodeParts loads the index of the sources of Go. Whole scans are measured in internal/capture.
func BenchmarkDecodeParts(b *testing.B) {
	dir := sources(b)
	k := newKeeper(b, dir)
	k.compact(k.scan())
	b.ReportAllocs()
	b.SetBytes(int64(len(k.parts[0])))
	for b.Loop() {
		if _, err := workspace.DecodeParts(k.parts); err != nil {
			b.Fatal(err)
		}
	}
}
