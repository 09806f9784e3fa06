package export

import "reasonix/store"

// gap is an entry of coverageGaps; the order of the fields is the format's.
type gap struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Path   string `json:"path,omitempty"`
}

// reasonOf maps our reasons to those that the format knows.
func reasonOf(reason string) string {
	switch reason {
	case store.GapShellNotScanned:
		return "bash_side_effect"
	case store.GapOutside:
		return "outside_workspace"
	case store.GapUnreadable:
		return "unreadable"
	case store.GapSymlinkedParent:
		return "symlink"
	case store.GapLateWrite:
		return "background_writer_cross_turn"
	case store.GapTooLarge:
		return "oversized"
	}
	return "capture_failed"
}

// crossingWriter is the format's text of the reason of that name.
const crossingWriter = "background writer from earlier turn still active"

// gapOf is what the format says of a gap. The path is absolute where it is one of the workspace.
func (w *writer) gapOf(g store.Gap) gap {
	out := gap{Reason: reasonOf(g.Reason), Detail: g.Detail, Tool: g.Tool}
	switch out.Reason {
	case "bash_side_effect":
		out.Detail, out.Tool = "bash side effects are not path-tracked", "bash"
	case "background_writer_cross_turn":
		out.Detail = crossingWriter
	case "capture_failed":
		if out.Detail == "" {
			out.Detail = g.Reason // it says more than the format's reason
		}
	}
	switch {
	case g.Path == "":
	case g.Reason == store.GapOutside || g.Reason == store.GapInvalidPath:
		out.Path = string(g.Path) // as it was named
	default:
		out.Path = w.absolute(g.Path)
	}
	return out
}

// inexpressible is the gap of a path whose states the format cannot say; ok is false when it can.
func (w *writer) inexpressible(s snapshot) (g gap, ok bool) {
	g = gap{Reason: "capture_failed", Path: w.absolute(s.path)}
	kinds := [2]store.Kind{s.before.Kind, s.after.Kind}
	has := func(k store.Kind) bool { return kinds[0] == k || kinds[1] == k }
	switch {
	case !validName(s.path):
		g.Detail = "the name is not UTF-8"
	case s.expired:
		g.Reason, g.Detail = "expired_file_payload", "file recovery payload expired"
	case has(store.Symlink):
		g.Reason = "symlink"
	case has(store.Dir):
		g.Detail = "path is a directory"
	case s.before.Kind == store.Uncaptured || !s.before.Known():
		g.Detail = "the state before was not captured"
	default:
		return gap{}, false
	}
	return g, true
}
