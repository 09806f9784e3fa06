package export

// Format is a version of the checkpoints.
type Format uint8

const (
	// V2 has each content as text and, exactly, as a blob. All readers restore from it.
	V2 Format = iota
	// V1 has each content as text only, no permission bits, and no gaps.
	V1
)

// contents is where contents are staged: below what is published, if the version has blobs.
func (f Format) contents() string {
	if f == V1 {
		return "contents"
	}
	return "ckpt/blobs"
}

// maxInexact bounds how many inexact paths are named.
const maxInexact = 10

// inexact notes a file whose text does not give its bytes back, to any reader of version 1: the
// oldest ones do not know the last kind of encoding.
func (w *writer) inexact(s snapshot) {
	w.result.Inexact++
	for _, p := range w.result.InexactPaths {
		if p == s.path {
			return
		}
	}
	if len(w.result.InexactPaths) < maxInexact {
		w.result.InexactPaths = append(w.result.InexactPaths, s.path)
	}
}
