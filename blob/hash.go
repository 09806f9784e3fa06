package blob

import (
	"encoding/hex"
	"fmt"

	"github.com/zeebo/blake3"
)

// Hash is the BLAKE3-256 of a content before any compression: the name of that content.
// The zero Hash names nothing; no content is known that has it.
type Hash [32]byte

// Sum returns the hash of b.
func Sum(b []byte) Hash { return blake3.Sum256(b) }

// ParseHash reads the 64 hexadecimal digits that String writes; capitals are read too.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != hex.EncodedLen(len(h)) {
		return Hash{}, fmt.Errorf("parse hash: %d digits where 64 are needed", len(s))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("parse hash: %w", err)
	}
	return h, nil
}

// FromBytes makes a Hash of exactly 32 bytes, which are copied.
func FromBytes(b []byte) (Hash, error) {
	var h Hash
	if len(b) != len(h) {
		return Hash{}, fmt.Errorf("hash of %d bytes where 32 are needed", len(b))
	}
	copy(h[:], b)
	return h, nil
}

// String is h in 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Short is the first 8 digits of String: enough for a person, not for a key.
func (h Hash) Short() string { return hex.EncodeToString(h[:4]) }

// IsZero reports whether h is the zero Hash.
func (h Hash) IsZero() bool { return h == Hash{} }
