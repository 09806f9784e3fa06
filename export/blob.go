package export

import (
	"bufio"
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

// maxSums bounds what is remembered of contents, so that memory does not grow with a session.
const maxSums = 8192

// kept is a content that lies in the blobs folder.
type kept struct {
	sum      string // SHA-256 of the raw bytes, lower-case hex: the format's name of it
	size     int64
	encoding charset.Encoding
	exact    bool // its text gives the bytes back; told only where text is all
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

// keep writes a content, hashing it on the way: its name is known only when it is there.
func (b *blobs) keep(ctx context.Context, h blob.Hash) (kept, error) {
	if k, ok := b.kept[h]; ok {
		return k, nil
	}
	sha := sha256.New()
	err := b.out.file("incoming", func(f *bufio.Writer) error {
		return b.copy(ctx, io.MultiWriter(f, sha), h)
	})
	if err != nil {
		return kept{}, err
	}
	k := kept{sum: hex.EncodeToString(sha.Sum(nil))}
	if err := b.out.rename("incoming", b.name(k.sum)); err != nil {
		return kept{}, err
	}
	err = b.read(k, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		k.size = info.Size()
		if k.encoding, err = charset.Detect(f, k.size); err != nil {
			return err
		}
		if b.textOnly {
			k.exact, err = k.encoding.Exact(f, k.size)
		}
		return err
	})
	if err != nil {
		return kept{}, err
	}
	remember(b.sums, h, k.sum)
	remember(b.kept, h, k)
	return k, nil
}

func (b *blobs) read(k kept, fn func(*os.File) error) error {
	f, err := os.Open(b.out.staged(b.name(k.sum)))
	if err != nil {
		return fmt.Errorf("read exported content: %w", err)
	}
	err = fn(f)
	return errors.Join(err, f.Close())
}

// text gives fn the decoded text of a content that was kept.
func (b *blobs) text(k kept, fn func(io.Reader) error) error {
	return b.read(k, func(f *os.File) error { return fn(k.encoding.Text(f, k.size)) })
}

func stringReader(s string) io.Reader { return strings.NewReader(s) }
