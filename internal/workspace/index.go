package workspace

import (
	"errors"
	"iter"

	"reasonix/blob"
	"reasonix/store"
)

// Index is the stat index: the signature and the state of each path at the last scan, which
// folders were listed completely, and the ignore rules that were in force. It is a cache:
// without it everything is read again. It never changes; any number of goroutines may use it.
type Index struct{}

// DecodeParts reads the parts that scans emitted, in their order. Any damage, and any part that
// does not follow on the one before it, is an error: the caller then goes on without a base.
// No parts are a nil Index.
func DecodeParts(parts [][]byte) (*Index, error) { return nil, errors.ErrUnsupported }

// Encode returns the whole index as one full part, which later parts may follow.
func (x *Index) Encode() []byte { return nil }

// State returns what x says of p: absent when that is proved, uncaptured when x does not know.
func (x *Index) State(p store.Path) store.State { return store.UncapturedState }

// Ignored reports whether a scan leaves p out, by the rules that were in force at the last one;
// dir says that p is a folder. What lies below an ignored folder is ignored. Where a rule file
// could not be read, all that is not in the index is left out.
func (x *Index) Ignored(p store.Path, dir bool) bool { return false }

// Complete reports whether the scan that x is of came to its end.
func (x *Index) Complete() bool { return false }

// Len is the number of paths in x.
func (x *Index) Len() int { return 0 }

// Blobs yields the contents that x refers to, some of them more than once: gc keeps them.
func (x *Index) Blobs() iter.Seq[blob.Hash] { return func(func(blob.Hash) bool) {} }
