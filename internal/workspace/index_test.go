package workspace_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"reasonix/internal/workspace"
	"reasonix/store"
)

// chain is a world whose index is in several parts.
func chain(t testing.TB) *scans {
	s := newScans(t, tree{
		".gitignore": "644:*.o\n", "a": "644:a", "l": "->a", "d/e/f": "600:f", "node_modules/x": "644:x", "target/f": "644:f", "Cargo.toml": "644:",
	})
	o := workspace.ScanOptions{Recorded: []store.Path{"node_modules/x"}}.WithBatch(2)
	s.scan(s.root, o)
	s.put("d/new", "644:n")
	s.must(os.RemoveAll(s.name("d/e")))
	s.scan(s.root, o)
	if len(s.parts) < 4 {
		t.Fatalf("only %d parts", len(s.parts))
	}
	return s
}

// TestDecodeDamaged: no damage passes, nor a part that is missing, out of order or twice there.
func TestDecodeDamaged(t *testing.T) {
	s := chain(t)
	refused := func(what string, parts [][]byte) {
		t.Helper()
		if _, err := workspace.DecodeParts(parts); !errors.Is(err, workspace.ErrIndex) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	last := len(s.parts) - 1
	refused("the first is missing", s.parts[1:])
	refused("one is missing", append(append([][]byte(nil), s.parts[:1]...), s.parts[2:]...))
	refused("one is twice there", append(append([][]byte(nil), s.parts[:2]...), s.parts[1:]...))
	refused("two first ones", append(append([][]byte(nil), s.parts[0]), s.parts...))
	refused("a tree after others", append(append([][]byte(nil), s.parts...), s.base.Encode()))
	refused("an empty part", [][]byte{{}})
	for _, part := range [][]byte{s.parts[0], s.parts[last], s.base.Encode()} {
		for i := range part {
			bad := bytes.Clone(part)
			bad[i] ^= 1
			refused("a flipped bit", [][]byte{bad})
			refused("a cut part", [][]byte{part[:i]})
		}
		refused("a longer part", [][]byte{append(bytes.Clone(part), 0)})
	}
	if x, err := workspace.DecodeParts(nil); x != nil || err != nil {
		t.Fatal("no parts are no index:", x, err)
	}
}

// TestEncodeIsFollowed: an encoded index stands for the parts that it was made of.
func TestEncodeIsFollowed(t *testing.T) {
	s := chain(t)
	s.parts = [][]byte{s.base.Encode()}
	s.put("later", "644:l")
	s.all()
	if len(s.parts) != 2 || s.base.State("later").Kind != store.File {
		t.Fatal("the part does not follow on the encoded index")
	}
}

func TestNilIndex(t *testing.T) {
	var x *workspace.Index
	for range x.Blobs() {
		t.Error("a blob")
	}
	if x.Len() != 0 || x.Complete() || x.State("a") != store.UncapturedState || x.Ignored("a", false) {
		t.Error("a nil index knows nothing")
	}
}

// FuzzDecodeParts: with its checksum made right, no part breaks the decoder, and what it takes
// is an index like any other.
func FuzzDecodeParts(f *testing.F) {
	f.Fuzz(func(t *testing.T, part []byte) {
		if _, err := workspace.DecodeParts([][]byte{part}); err != nil && !errors.Is(err, workspace.ErrIndex) {
			t.Fatal(err)
		}
		x, err := workspace.DecodeParts([][]byte{workspace.Seal(part)})
		if err != nil {
			return
		}
		n := 0
		for range x.Blobs() {
			n++
		}
		if n > len(part) || x.Len() > len(part) {
			t.Fatalf("%d contents and %d paths in %d bytes", n, x.Len(), len(part))
		}
		for _, p := range []store.Path{"a", "d/e/f", "node_modules/x", ".gitignore/x"} {
			x.State(p)
			x.Ignored(p, true)
		}
		again, err := workspace.DecodeParts([][]byte{x.Encode()})
		if err != nil || !bytes.Equal(again.Encode(), x.Encode()) {
			t.Fatal("what was decoded cannot be encoded:", err)
		}
	})
}
