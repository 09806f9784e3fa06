package capture

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"reasonix/blob"
	"reasonix/internal/workspace"
	"reasonix/store"
)

// Disk is the workspace as an import sees it: it is looked at and never written to.
type Disk struct{ Capture *Capturer }

// Root is the workspace's absolute path.
func (d Disk) Root() string { return d.Capture.Root.Path() }

// Check gives the path of a name that is relative to the root. Linked says that it is another one on
// the disk, since a parent is a link. Errors are those of workspace.CheckPath and of Resolve.
func (d Disk) Check(name string) (p store.Path, linked bool, err error) {
	if err := workspace.CheckPath(store.Path(name)); err != nil {
		return "", false, fmt.Errorf("check path: %w", err)
	}
	p, err = d.Capture.Root.Resolve(d.Root(), name)
	if err != nil {
		return "", false, err
	}
	return p, string(p) != name, nil
}

// Read reads what a path is, with the SHA-256 of a file. The content is to be bound or discarded.
func (d Disk) Read(ctx context.Context, p store.Path) (s store.State, content *blob.Prepared, sum [sha256.Size]byte, err error) {
	r, err := d.Capture.Root.Read(ctx, p, func(ctx context.Context, from io.Reader, was blob.Hash) (*blob.Prepared, error) {
		sha := sha256.New() // it is called again when the file changes while it is read
		content, err := d.Capture.Store.Blobs().PrepareAgainst(ctx, io.TeeReader(from, sha), was)
		sha.Sum(sum[:0])
		return content, err
	})
	return r.State, r.Content, sum, err
}
