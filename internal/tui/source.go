package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrLeft is returned when the person left without choosing.
var ErrLeft = errors.New("nothing was chosen")

// Action is what can be done with a turn.
type Action uint8

// The actions, in the order in which they are offered.
const (
	RestoreBoth Action = iota
	RestoreCode
	RestoreConversation
	Fork
	SummarizeFrom
	SummarizeUpTo
)

var actionNames = [...]string{
	RestoreBoth: "Restore code and conversation", RestoreCode: "Restore code", RestoreConversation: "Restore conversation",
	Fork: "Fork", SummarizeFrom: "Summarize from here on", SummarizeUpTo: "Summarize up to here",
}

func (a Action) String() string { return actionNames[a] }

// Turn is a turn that can be chosen.
type Turn struct {
	Number         int
	Prompt         string
	Time           time.Time
	Status         string
	Files          int
	Added, Removed int // lines
	Gaps           int
	Code, Talk     bool // there is something to take back
	Expired        bool
}

// How says what to do with files in conflict.
type How uint8

// The ways.
const (
	Stop  How = iota // nothing is done
	Skip             // they are left alone
	Force            // they are overwritten
)

// Preview is what an action would do.
type Preview struct {
	Lines     []string // as a dry run prints them
	Conflicts int
	Final     bool // forcing does not help
}

// Source is what the picker picks from.
type Source interface {
	// Turns are some of the session, the newest first: those with numbers below before, or the newest of
	// all where that is negative. More says that older ones are there.
	Turns(ctx context.Context, before int) (turns []Turn, more bool, err error)
	// Actions are those that can be done here.
	Actions() []Action
	// Preview says what an action would do, and does nothing.
	Preview(ctx context.Context, turn int, a Action, how How) (Preview, error)
	// Do does it and tells what it did. It is not asked for a summary: that takes a model its time, and
	// is left to the one who called the picker.
	Do(ctx context.Context, turn int, a Action, how How) ([]string, error)
}

// Picked is what was done, or of a summary what is to be done.
type Picked struct {
	Turn   Turn
	Action Action
	Lines  []string
}

// pick does what was chosen.
func pick(ctx context.Context, s Source, t Turn, a Action, how How) (Picked, error) {
	picked := Picked{Turn: t, Action: a}
	if a.summarizes() {
		return picked, nil
	}
	var err error
	picked.Lines, err = s.Do(ctx, t.Number, a, how)
	return picked, err
}

// summarizes reports whether an action is one of the summaries.
func (a Action) summarizes() bool { return a == SummarizeFrom || a == SummarizeUpTo }

func possible(t Turn, a Action) bool {
	switch a {
	case RestoreBoth:
		return t.Code || t.Talk
	case RestoreCode:
		return t.Code
	case RestoreConversation:
		return t.Talk
	case Fork, SummarizeFrom, SummarizeUpTo:
	}
	return true
}

// facts are the numbers of a turn.
func facts(t Turn, now time.Time) string {
	all := []string{ago(t.Time, now)}
	if t.Files > 0 {
		all = append(all, plural(t.Files, "file"))
	}
	if t.Added+t.Removed > 0 {
		all = append(all, fmt.Sprintf("+%d -%d", t.Added, t.Removed))
	}
	if t.Gaps > 0 {
		all = append(all, plural(t.Gaps, "gap"))
	}
	if t.Status != "done" {
		all = append(all, t.Status)
	}
	if t.Expired {
		all = append(all, "expired")
	}
	return strings.Join(all, ", ")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	default:
		return fmt.Sprintf("%d days ago", d/(24*time.Hour))
	}
}

// title is the first line of a prompt.
func title(prompt string) string {
	for line := range strings.SplitSeq(prompt, "\n") {
		if line = strings.TrimSpace(Safe(line)); line != "" {
			return line
		}
	}
	return "(no prompt)"
}
