package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"reasonix/blob"
	"reasonix/store"
)

// maxText is the longest content whose lines are compared, in bytes.
const maxText = 8 << 20

// errGone is returned for content that is neither stored nor on the disk any more.
var errGone = errors.New("the file changed meanwhile")

// content reads what a state holds: from the store, or from the disk when only the disk has it.
func (v *Viewer) content(ctx context.Context, p store.Path, s store.State) ([]byte, error) {
	if !s.HasContent() || s.Size == 0 {
		return nil, nil
	}
	if s.Size > maxText {
		return nil, blob.ErrTooLarge
	}
	b, err := v.capture.Store.Blobs().Read(ctx, s.Blob, maxText)
	expired := errors.Is(err, blob.ErrExpired)
	if !expired && !errors.Is(err, blob.ErrNotFound) {
		return b, err
	}
	gone := errGone
	if expired {
		gone = err
	}
	var read bytes.Buffer
	r, err := v.capture.Root.Read(ctx, p, func(_ context.Context, from io.Reader, _ blob.Hash) (*blob.Prepared, error) {
		read.Reset() // it is called again when the file changes while it is read
		return blob.Digest(io.TeeReader(io.LimitReader(from, maxText+1), &read))
	})
	switch {
	case err != nil && !expired:
		return nil, err
	case err != nil || r.State != s:
		return nil, fmt.Errorf("%s: %w", p, gone)
	}
	return read.Bytes(), nil
}

// binary tells text from what is none as git does: a NUL near the beginning.
func binary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }
