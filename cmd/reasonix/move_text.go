package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"reasonix/internal/report"
	"reasonix/rewind"
	"reasonix/store"
)

// maxShown is how many names of a list are printed without --verbose.
const maxShown = 20

// printMove tells a person what a move did, or would do, and how to take it back.
func (a *app) printMove(ctx context.Context, w io.Writer, wo *world, res rewind.Result, dry bool) error {
	t := &text{w: w, a: a}
	t.line("%s", a.paint(w, bold, headline(res, dry)))
	done := func(verb, past string) string {
		if dry {
			return "would " + verb
		}
		return past
	}
	t.list(done("write", "wrote"), green, report.Names(res, res.Written))
	t.list(done("delete", "deleted"), red, report.Names(res, res.Deleted))
	for i, u := range res.AlsoUndoes {
		if i == 0 {
			t.line("%s changes of others:", done("also undo", "also undid"))
		}
		t.line("  %s (%s)", printable(report.NameOf(res, u.Path)), printable(u.Writer))
	}
	t.list(done("leave as they are", "left as they are:"), yellow, report.Names(res, res.Left))
	for i, n := range res.NotCovered {
		if i == 0 {
			t.line("not covered, so left alone:")
		}
		t.line("  %s (%s)", printable(report.NameOf(res, n.Path)), n.Reason)
	}
	if len(res.Written)+len(res.Deleted) == 0 {
		t.line("no file %s", done("change", "changed"))
	}
	if a.quiet {
		return t.err
	}
	if dry {
		t.line("dry run: nothing was changed")
		return t.err
	}
	if res.Prompt != "" {
		t.line("prompt: %s", firstLine(res.Prompt, 70))
	}
	back, err := wayBack(ctx, wo, res)
	if err != nil {
		return err
	}
	t.line("%s", back)
	return t.err
}

// headline says in one sentence what a move is.
func headline(res rewind.Result, dry bool) string {
	verb := func(does, did string) string {
		if dry {
			return "would " + does
		}
		return did
	}
	messages := count(int(res.Messages), "message")
	switch res.Kind {
	case store.OpRewind:
		what := res.Scope.String()
		if res.Scope == store.Both {
			what = "code and conversation"
		}
		return fmt.Sprintf("%s %s of session %s to the start of turn %d (%s)", verb("rewind", "rewound"), what, res.Session, res.Turn, messages)
	case store.OpUndo:
		return fmt.Sprintf("%s operation %d of session %s (%s)", verb("undo", "undid"), res.Undoes, res.Session, messages)
	case store.OpRedo:
		return fmt.Sprintf("%s what operation %d of session %s undid (%s)", verb("redo", "redid"), res.Undoes, res.Session, messages)
	case store.OpSwitch:
		return fmt.Sprintf("%s to session %s (%s)", verb("switch", "switched"), res.Session, messages)
	case store.OpFork:
		if dry {
			return fmt.Sprintf("would fork session %s at turn %d (%s)", res.Parent, res.Turn, messages)
		}
		return fmt.Sprintf("forked session %s at turn %d: session %s (%s)", res.Parent, res.Turn, res.Branch, messages)
	case store.OpCompact, store.OpImport, store.OpGC, store.OpDelete:
	}
	return res.Kind.String()
}

// wayBack is the line that says how to take an operation back.
func wayBack(ctx context.Context, w *world, res rewind.Result) (string, error) {
	switch res.Kind {
	case store.OpFork, store.OpSwitch:
		return "go back with: reasonix switch -", nil
	case store.OpUndo, store.OpRewind, store.OpRedo, store.OpCompact, store.OpImport, store.OpGC, store.OpDelete:
	}
	line := "undo with: reasonix undo-rewind"
	if res.Kind == store.OpUndo {
		line = "undo with: reasonix redo-rewind"
	}
	cur, err := w.session(ctx, "")
	if err == nil && cur.ID != res.Session {
		line += " --session " + string(res.Session)
	}
	return line, err
}

// printConflicts tells why a move did not happen.
func (a *app) printConflicts(w io.Writer, res rewind.Result) error {
	t := &text{w: w, a: a}
	for i, c := range res.Conflicts {
		if i == maxShown && !a.verbose {
			t.line("  … and %d more (-v lists all)", len(res.Conflicts)-i)
			break
		}
		t.line("%s %s: %s; last written by %s", a.paint(w, red, "conflict"), printable(report.NameOf(res, c.Path)), reasonText(c.Reason), printable(c.LastWriter))
		for _, e := range c.Entries {
			t.line("    %s", printable(report.NameOf(res, e)))
		}
		if c.Final {
			t.line("    --force does not help here")
		}
	}
	return t.err
}

func reasonText(reason string) string {
	switch reason {
	case rewind.ChangedByOther:
		return "somebody else changed it since"
	case rewind.Overlapping:
		return "commands of several sessions ran at once, any of which may have written it"
	case rewind.Unverified:
		return "what the agent left there was never recorded"
	case rewind.InTheWay:
		return "something that is not recorded is in the way"
	case rewind.NotCaptured:
		return "what is there cannot be captured, so it is not replaced"
	case rewind.SymlinkedParent:
		return "a folder above it is a symlink now"
	}
	return reason
}

// text writes lines and keeps the first error.
type text struct {
	w   io.Writer
	a   *app
	err error
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

// list writes a headed list of names, shortened unless --verbose.
func (t *text) list(head, color string, names []string) {
	if len(names) == 0 {
		return
	}
	t.line("%s %s", t.a.paint(t.w, color, strings.TrimSuffix(head, ":")), count(len(names), "path"))
	for i, n := range names {
		if i == maxShown && !t.a.verbose {
			t.line("  … and %d more (-v lists all)", len(names)-i)
			return
		}
		t.line("  %s", printable(n))
	}
}
