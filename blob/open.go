package blob

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/blake3"

	"reasonix/db"
)

// chunks walks over the chunks of a content. Each is verified by itself before it is handed
// out, and the whole before the end is told.
type chunks struct {
	hash  Hash
	row   stored
	seq   int64
	total int64
	whole *blake3.Hasher
}

func newChunks(h Hash, r stored) *chunks { return &chunks{hash: h, row: r, whole: blake3.New()} }

// next returns the next chunk, nil after the last. It must not be called after an error.
func (c *chunks) next(tx *db.ReadTx) ([]byte, error) {
	var id int64
	err := tx.Get(&id, selectChunk, c.row.ID, c.seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, c.finish()
	}
	if err != nil {
		return nil, readError(c.hash, fmt.Sprintf("chunk %d", c.seq), err)
	}
	b, err := c.read(tx, id)
	if err != nil {
		return nil, err
	}
	c.seq++
	c.total += int64(len(b))
	if len(b) == 0 || c.total > c.row.Size {
		return nil, c.damaged(fmt.Sprintf("its chunks do not make up %d bytes", c.row.Size), nil)
	}
	_, _ = c.whole.Write(b) // never fails
	return b, nil
}

func (c *chunks) read(tx *db.ReadTx, id int64) ([]byte, error) {
	r, err := loadPart(tx, c.hash, id)
	if err != nil {
		return nil, err
	}
	h, err := FromBytes(r.Hash)
	if err != nil {
		return nil, c.damaged(fmt.Sprintf("chunk %d", c.seq), err)
	}
	b, err := content(tx, h, r)
	if d := (*DamagedError)(nil); errors.As(err, &d) {
		return nil, c.damaged(fmt.Sprintf("chunk %d", c.seq), d)
	}
	return b, err
}

func (c *chunks) finish() error {
	if c.total != c.row.Size {
		return c.damaged(fmt.Sprintf("%d of its %d bytes are there", c.total, c.row.Size), nil)
	}
	var h Hash
	c.whole.Sum(h[:0])
	if h != c.hash {
		return c.damaged("its bytes have another hash", nil)
	}
	return nil
}

func (c *chunks) damaged(reason string, err error) error {
	return &DamagedError{Hash: c.hash, Reason: reason, Err: err}
}

// Open streams the content of h; the caller closes it. At most a chunk is held in memory. Every
// byte that Read gives has been verified with its chunk, and io.EOF comes only after the whole
// was; until then the content may turn out to be cut short, so nothing should be made final
// before. Errors are ErrNotFound and ErrExpired, at once, and *DamagedError, at once or from Read.
//
// Chunks are read each in a transaction of its own: a content that is swept meanwhile ends in
// an error. The result is for one goroutine.
func (s *Store) Open(ctx context.Context, h Hash) (io.ReadCloser, error) {
	var first []byte
	var c *chunks
	err := s.db.View(ctx, func(tx *db.ReadTx) error {
		r, err := load(tx, h)
		if err != nil {
			return err
		}
		if Encoding(r.Encoding) == Chunked {
			c = newChunks(h, r)
			return nil
		}
		first, err = content(tx, h, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c == nil {
		return io.NopCloser(bytes.NewReader(first)), nil
	}
	return &chunkReader{ctx: ctx, db: s.db, chunks: c}, nil
}

type chunkReader struct {
	ctx    context.Context
	db     *db.DB
	chunks *chunks
	buf    []byte // verified, not yet handed out
	err    error  // what every later Read gives
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.buf) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.db.View(r.ctx, func(tx *db.ReadTx) (err error) {
			r.buf, err = r.chunks.next(tx)
			return err
		})
		if r.err == nil && r.buf == nil {
			r.err = io.EOF
		}
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *chunkReader) Close() error {
	r.buf, r.err = nil, errClosed
	return nil
}

var errClosed = errors.New("the content was closed")

// Verify reads the content of h and throws it away. nil means that it is there and whole; ErrExpired
// that it is known to be gone.
func (s *Store) Verify(ctx context.Context, h Hash) error {
	r, err := s.Open(ctx, h)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
