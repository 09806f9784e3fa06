// Package blob keeps immutable bytes in the store file, each content once, under the BLAKE3-256
// of its uncompressed bytes. It knows nothing of what the bytes are for.
//
// Terms: a content is a sequence of bytes; its row holds it raw, as a zstd frame, as a zstd
// frame against the content of another row (its base), or, over ChunkSize, as a list of chunks,
// which are contents with rows of their own. A lease tells the sweep that contents are being
// written which nothing refers to yet.
//
// Writing has two steps: Prepare reads, hashes and compresses outside any transaction; Bind
// makes the result part of one. Whatever is read is checked against its hash: damage gives a
// DamagedError, never other bytes.
package blob

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"reasonix/db"
)

// ChunkSize is the length, in bytes, of the pieces of a content that is longer than that.
const ChunkSize = 1 << 20

// ID is the row of a content. It may be kept only where a foreign key protects it from the
// sweep; the lasting name is the Hash.
type ID int64

// Encoding is how a row holds its content.
type Encoding uint8

// The numbers are stored; they never change.
const (
	Raw       Encoding = 0
	Zstd      Encoding = 1
	ZstdDelta Encoding = 2 // a frame whose dictionary is the content of the base
	Chunked   Encoding = 3
)

var encodingNames = [...]string{Raw: "raw", Zstd: "zstd", ZstdDelta: "zstd-delta", Chunked: "chunked"}

// String is the name that the view "blobs" shows.
func (e Encoding) String() string {
	if int(e) < len(encodingNames) {
		return encodingNames[e]
	}
	return fmt.Sprintf("invalid(%d)", uint8(e))
}

// Store reads and writes contents. It is safe for concurrent use and needs no closing.
type Store struct {
	db     *db.DB
	now    func() time.Time
	held   atomic.Int64  // bytes of prepared contents in memory
	long   chan struct{} // has a place for each long content that is being prepared
	wide   chan struct{} // has a place for a long content that is compared with another: that takes some MiB
	recent recent
}

// New returns the contents of d, whose schema must have their tables. now dates the leases; nil
// means time.Now.
func New(d *db.DB, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{db: d, now: now, long: make(chan struct{}, maxLong), wide: make(chan struct{}, 1)}
}

var (
	// ErrNotFound is returned when no content has the hash.
	ErrNotFound = errors.New("no content has this hash")

	// ErrTooLarge is returned when a content is longer than the reader is willing to hold.
	ErrTooLarge = errors.New("the content is too large")

	// ErrGone is returned when a prepared content, or a chunk of it, was swept before Bind,
	// because more time than the lease had passed. Prepare the content again.
	ErrGone = errors.New("the prepared content is gone")
)

// DamagedError is returned when what the store holds under a hash is not the content with that
// hash. Other contents are not concerned, except those that have it as a chunk or base.
type DamagedError struct {
	Hash   Hash   // the content that was asked for; zero when even its hash is unreadable
	Reason string // what is wrong, for a person
	Err    error  // may be nil
}

func (e *DamagedError) Error() string {
	msg := "content " + e.Hash.String() + " is damaged: " + e.Reason
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }
