// Package view prepares what a person or another program is shown of a history: checkpoints,
// one turn, differences, the versions of a path, the tree of sessions. Its types with JSON tags
// are the documented shapes of the command line's --json and of the HTTP API. It writes
// nothing (I14).
//
// Terms: a side is one of the two states that are compared, a checkpoint or the disk. The
// checkpoint after the last turn, the tip, is where that turn ended, as in package rewind.
package view

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"reasonix/internal/capture"
	"reasonix/store"
)

// Viewer answers questions about the history and the disk of one workspace. It is safe for
// concurrent use.
type Viewer struct {
	capture *capture.Capturer
}

// New makes a viewer.
func New(c *capture.Capturer) *Viewer { return &Viewer{capture: c} }

// Name is a path as JSON shows it: relative, with slashes, and one at the end of a folder.
type Name struct {
	Path string `json:"path"`
	// B64 is the exact name when it is not UTF-8, in which case Path has U+FFFD in it.
	B64 string `json:"path_b64,omitempty"`
}

// NameOf is the name of a path that is of kind k.
func NameOf(p store.Path, k store.Kind) Name {
	s := string(p)
	if k == store.Dir {
		s += "/"
	}
	n := Name{Path: strings.ToValidUTF8(s, "\uFFFD")}
	if !utf8.ValidString(s) {
		n.B64 = base64.StdEncoding.EncodeToString([]byte(s))
	}
	return n
}

// State is what a path was at one moment.
type State struct {
	Kind string `json:"kind"`           // absent, file, symlink, dir or uncaptured
	Mode string `json:"mode,omitempty"` // permission bits in octal, such as 0644; of files and folders
	Blob string `json:"blob,omitempty"` // of a file's content or a link's target, 64 hexadecimal digits
	Size int64  `json:"size"`           // bytes
}

func stateOf(s store.State) State {
	out := State{Kind: s.Kind.String(), Size: s.Size}
	if s.Kind == store.File || s.Kind == store.Dir {
		out.Mode = fmt.Sprintf("%04o", s.Mode)
	}
	if s.HasContent() {
		out.Blob = s.Blob.String()
	}
	return out
}

// Gap is something that a turn may have changed and that was not captured.
type Gap struct {
	Reason string `json:"reason"`
	Path   string `json:"path,omitempty"`
	B64    string `json:"path_b64,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Gaps are gaps as they are shown.
func Gaps(all []store.Gap) []Gap {
	out := make([]Gap, 0, len(all))
	for _, g := range all {
		out = append(out, gapOf(g))
	}
	return out
}

func gapOf(g store.Gap) Gap {
	n := NameOf(g.Path, store.File)
	return Gap{Reason: g.Reason, Path: n.Path, B64: n.B64, Tool: g.Tool, Detail: g.Detail}
}
