// Package blob keeps immutable bytes under their BLAKE3 hash.
package blob

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"reasonix/db"
)

const ChunkSize = 1 << 20

type ID int64

type Encoding uint8

const (
	Raw       Encoding = 0
	Zstd      Encoding = 1
	ZstdDelta Encoding = 2
	Chunked   Encoding = 3
)

func (e Encoding) String() string { panic("todo") }

type Store struct{}

type Prepared struct{}

func New(d *db.DB, now func() time.Time) *Store                                { panic("todo") }
func (s *Store) Prepare(ctx context.Context, r io.Reader) (*Prepared, error)   { panic("todo") }
func (s *Store) PrepareBytes(ctx context.Context, b []byte) (*Prepared, error) { panic("todo") }
func (p *Prepared) Hash() Hash                                                 { panic("todo") }
func (p *Prepared) Size() int64                                                { panic("todo") }
func (s *Store) Bind(tx *db.WriteTx, p *Prepared) (ID, error)                  { panic("todo") }
func (s *Store) Discard(ctx context.Context, p *Prepared) error                { panic("todo") }
func Lookup(tx *db.ReadTx, h Hash) (ID, bool, error)                           { panic("todo") }
func HashOf(tx *db.ReadTx, id ID) (Hash, error)                                { panic("todo") }
func (s *Store) Open(ctx context.Context, h Hash) (io.ReadCloser, error)       { panic("todo") }
func (s *Store) Read(ctx context.Context, h Hash, max int64) ([]byte, error)   { panic("todo") }
func ReadTx(tx *db.ReadTx, h Hash, max int64) ([]byte, error)                  { panic("todo") }
func (s *Store) Verify(ctx context.Context, h Hash) error                      { panic("todo") }
func (s *Store) Stat(ctx context.Context, h Hash) (Info, error)                { panic("todo") }
func (s *Store) All(ctx context.Context) iter.Seq2[Info, error]                { panic("todo") }

type Info struct {
	Hash         Hash
	Size, Stored int64
	Encoding     Encoding
	Base         Hash
}

type DamagedError struct {
	Hash   Hash
	Reason string
	Err    error
}

func (e *DamagedError) Error() string { panic("todo") }
func (e *DamagedError) Unwrap() error { return e.Err }

var (
	ErrNotFound = errors.New("no such blob")
	ErrTooLarge = errors.New("blob is larger than asked for")
	ErrGone     = errors.New("prepared content is gone")
)
