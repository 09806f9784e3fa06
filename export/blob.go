package export

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"reasonix/blob"
	"reasonix/internal/charset"
)

const (
	maxSums = 8192    // contents that are remembered, so that memory does not grow with a session
	maxHeld = 1 << 20 // bytes of a content that is held while it is written; longer ones are staged
)

// kept is a content that was looked at, and written if the version has blobs.
type kept struct {
	sum      string // SHA-256 of the raw bytes, lower-case hex: the format's name of it
	size     int64
	encoding charset.Encoding
	exact    bool   // its text gives the bytes back; told only where text is all
	staged   bool   // it lies in a file
	held     []byte // its bytes, just now; not remembered
}

// blobs writes contents under their SHA-256.
type blobs struct {
	from     *blob.Store
	out      *out
	dir      string               // staged; contents lie below it
	sums     map[blob.Hash]string // of contents seen, whether or not they were kept
	kept     map[blob.Hash]kept
	textOnly bool // the text is all that is written of a content
}

func newBlobs(from *blob.Store, o *out, dir string, textOnly bool) *blobs {
	return &blobs{from: from, out: o, dir: dir, textOnly: textOnly, sums: map[blob.Hash]string{}, kept: map[blob.Hash]kept{}}
}

func remember[V any](m map[blob.Hash]V, h blob.Hash, v V) {
	if len(m) >= maxSums {
		clear(m) // what is asked for again is hashed again
	}
	m[h] = v
}

// sum is the SHA-256 of a content that need not be kept.
func (b *blobs) sum(ctx context.Context, h blob.Hash) (string, error) {
	if s, ok := b.sums[h]; ok {
		return s, nil
	}
	sha := sha256.New()
	if err := b.copy(ctx, sha, h); err != nil {
		return "", err
	}
	s := hex.EncodeToString(sha.Sum(nil))
	remember(b.sums, h, s)
	return s, nil
}

func (b *blobs) copy(ctx context.Context, to io.Writer, h blob.Hash) error {
	r, err := b.from.Open(ctx, h)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r)
	return errors.Join(err, r.Close())
}

func (b *blobs) name(sum string) string { return b.dir + "/" + sum[:2] + "/" + sum[2:4] + "/" + sum }

// keep looks at a content, and writes it if the version has blobs.
func (b *blobs) keep(ctx context.Context, h blob.Hash) (k kept, err error) {
	k, known := b.kept[h]
	if k.staged {
		return k, nil
	}
	r, err := b.from.Open(ctx, h)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	head, err := io.ReadAll(io.LimitReader(r, maxHeld+1))
	switch {
	case err != nil:
		return k, err
	case known:
	case len(head) > maxHeld:
		k, err = b.stage(io.MultiReader(bytes.NewReader(head), r))
	default:
		k, err = b.hold(head)
	}
	if err != nil {
		return k, err
	}
	remember(b.sums, h, k.sum)
	remember(b.kept, h, k)
	if !k.staged || len(head) <= maxHeld {
		k.held = head
	}
	return k, nil
}

// hold keeps a content that is in memory.
func (b *blobs) hold(content []byte) (kept, error) {
	sum := sha256.Sum256(content)
	k := kept{sum: hex.EncodeToString(sum[:]), size: int64(len(content))}
	if !b.textOnly {
		k.staged = true
		err := b.out.file(b.name(k.sum), func(f *bufio.Writer) error { _, err := f.Write(content); return err })
		if err != nil {
			return k, err
		}
	}
	return k, b.detect(&k, bytes.NewReader(content))
}

// stage writes a content, hashing it on the way: its name is known only when it is there.
func (b *blobs) stage(content io.Reader) (kept, error) {
	sha := sha256.New()
	k := kept{staged: true}
	err := b.out.file("incoming", func(f *bufio.Writer) (err error) {
		k.size, err = io.Copy(io.MultiWriter(f, sha), content)
		return err
	})
	if err != nil {
		return k, err
	}
	k.sum = hex.EncodeToString(sha.Sum(nil))
	if err := b.out.rename("incoming", b.name(k.sum)); err != nil {
		return k, err
	}
	return k, b.read(k, func(r io.ReaderAt) error { return b.detect(&k, r) })
}

func (b *blobs) detect(k *kept, r io.ReaderAt) (err error) {
	if k.encoding, err = charset.Detect(r, k.size); err == nil && b.textOnly {
		k.exact, err = k.encoding.Exact(r, k.size)
	}
	return err
}

func (b *blobs) read(k kept, fn func(io.ReaderAt) error) error {
	if k.held != nil {
		return fn(bytes.NewReader(k.held))
	}
	f, err := os.Open(b.out.staged(b.name(k.sum)))
	if err != nil {
		return fmt.Errorf("read exported content: %w", err)
	}
	err = fn(f)
	return errors.Join(err, f.Close())
}

// text gives fn the decoded text of a content that was kept.
func (b *blobs) text(k kept, fn func(io.Reader) error) error {
	return b.read(k, func(r io.ReaderAt) error { return fn(k.encoding.Text(r, k.size)) })
}

func stringReader(s string) io.Reader { return strings.NewReader(s) }
