package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"reasonix/agent"
	"reasonix/blob"
	"reasonix/db"
	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/config"
	"reasonix/internal/hook"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/move"
	"reasonix/internal/place"
	"reasonix/internal/report"
	"reasonix/internal/view"
	"reasonix/internal/workspace"
	"reasonix/rewind"
	"reasonix/store"
)

// The exit codes. They are part of the documented interface.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitConflict    = 3 // conflict or stale plan: nothing was changed
	exitNotFound    = 4 // no such turn, session, path or store; nothing to undo
	exitBusy        = 5
	exitDamage      = 6
	exitStore       = 7 // the store is newer, foreign or corrupt
	exitInterrupted = 130
)

var (
	errInterrupted = errors.New("interrupted")
	errProblems    = errors.New("the store has problems")
)

// usage is an error in how the program was called.
type usage struct{ text, hint string }

func (e *usage) Error() string { return e.text }

func badUsage(format string, args ...any) error { return &usage{text: fmt.Sprintf(format, args...)} }

// hinted is an error whose hint is not the one that its kind has.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

func withHint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// withResult is an error that comes with a result which is printed all the same: conflicts.
type withResult struct {
	error
	result any // marshals to a JSON object
}

func (e *withResult) Unwrap() error { return e.error }

// meaning is what an error is to the caller: the exit code, the stable word for it, and what
// to do about it.
type meaning struct {
	exit int
	code string
	hint string
}

// meanings are asked in order; the first whose error matches holds.
var meanings = []struct {
	err error
	meaning
}{
	{errInterrupted, meaning{exitInterrupted, "interrupted", ""}},
	{db.ErrNewer, meaning{exitStore, "store_newer", "upgrade reasonix; the store was not touched"}},
	{db.ErrForeign, meaning{exitStore, "store_foreign", "name another file with --store"}},
	{db.ErrOlder, meaning{exitStore, "store_older", "run a command once where the store can be written"}},
	{db.ErrSettings, meaning{exitStore, "store_settings", ""}},
	{db.ErrReadOnly, meaning{exitFailure, "store_read_only", "give yourself the right to write the store and its folder (reasonix store prints its path)"}},
	{db.ErrCorrupt, meaning{exitStore, "store_corrupt", "reasonix verify tells more"}},
	{store.ErrDamaged, meaning{exitDamage, "damaged_message", "reasonix verify --deep lists all damage; everything else is whole"}},
	{store.ErrCorrupt, meaning{exitStore, "store_corrupt", "reasonix verify tells more"}},
	{place.ErrOtherFolder, meaning{exitStore, "other_folder", "if the workspace was renamed or replaced: reasonix store --move OLD_ROOT"}},
	{place.ErrReserved, meaning{exitUsage, "reserved", "choose another place for the store"}},
	{place.ErrInUse, meaning{exitBusy, "in_use", "end it (reasonix serve, perhaps), then run the command again"}},
	{place.ErrUnsound, meaning{exitDamage, "unsound", "reasonix verify tells more of the store that it is a copy of"}},
	{place.ErrOccupied, meaning{exitConflict, "occupied", ""}},
	{place.ErrNoFolder, meaning{exitNotFound, "no_folder", ""}},
	{agent.ErrRunning, meaning{exitBusy, "busy", "wait for it to end, or stop it where it runs"}},
	{rewind.ErrBusy, meaning{exitBusy, "busy", "wait for it to end; --force closes the turn at once"}},
	{capture.ErrLocked, meaning{exitBusy, "locked", "another command is at work in this workspace; try again"}},
	{rewind.ErrConflict, meaning{exitConflict, "conflict", "--force goes on (reasonix undo-rewind brings all back), --skip-conflicts leaves those paths alone"}},
	{rewind.ErrStale, meaning{exitConflict, "stale", "something changed meanwhile; run the command again"}},
	{errProblems, meaning{exitDamage, "problems", ""}},
	{rewind.ErrNothingToUndo, meaning{exitNotFound, "nothing_to_undo", "reasonix ops lists what was done"}},
	{rewind.ErrNothingToRedo, meaning{exitNotFound, "nothing_to_redo", "reasonix ops lists what was done"}},
	{rewind.ErrNotUndoable, meaning{exitFailure, "not_undoable", "reasonix ops lists what stands; reasonix redo-rewind takes the newest undo back"}},
	{rewind.ErrExpired, meaning{exitNotFound, "expired", "reasonix log shows which turns can be restored; --path takes back other files, the conversation can be taken back alone"}},
	{blob.ErrExpired, meaning{exitNotFound, "expired", "gc dropped it: reasonix log shows which turns can be restored"}},
	{errRepeated, meaning{exitConflict, "repeated", ""}},
	{store.ErrCurrent, meaning{exitConflict, "current_session", "reasonix switch SESSION goes to another one first"}},
	{store.ErrTaken, meaning{exitConflict, "taken", "choose another name; reasonix pin lists them"}},
	{store.ErrNoPin, meaning{exitNotFound, "no_pin", "reasonix pin lists them"}},
	{rewind.ErrReadOnly, meaning{exitFailure, "read_only", "give yourself the right to write there; nothing was changed"}},
	{rewind.ErrInvalid, meaning{exitUsage, "usage", ""}},
	{store.ErrNoTurn, meaning{exitNotFound, "no_turn", "reasonix log lists the turns"}},
	{store.ErrNoSession, meaning{exitNotFound, "no_session", "reasonix sessions lists them"}},
	{store.ErrAmbiguous, meaning{exitNotFound, "ambiguous_session", "type more of the id"}},
	{store.ErrNoOperation, meaning{exitNotFound, "no_operation", "reasonix ops lists them"}},
	{store.ErrNoStore, meaning{exitNotFound, "no_store", ""}},
	{place.ErrNoStore, meaning{exitNotFound, "no_store", "an agent's first event makes it; a workspace that was renamed: reasonix store --move OLD_ROOT"}},
	{errNoPath, meaning{exitNotFound, "no_path", hintPath}},
	{rewind.ErrNoPath, meaning{exitNotFound, "no_path", hintPath}},
	{view.ErrNoPath, meaning{exitNotFound, "no_path", hintPath}},
	{workspace.ErrOutside, meaning{exitNotFound, "outside_workspace", "paths are relative to the current folder"}},
	{workspace.ErrProtected, meaning{exitNotFound, "protected", ""}},
	{workspace.ErrInvalid, meaning{exitUsage, "invalid_path", ""}},
	{errNotScanned, meaning{exitFailure, "not_scanned", ""}},
	{config.ErrInvalid, meaning{exitUsage, "invalid_setting", "correct it, or unset it; reasonix doctor lists the settings"}},
	{move.ErrName, meaning{exitUsage, "usage", "choose another name"}},
	{store.ErrInvalid, meaning{exitUsage, "invalid", ""}},
	{agent.ErrNoModel, meaning{exitFailure, "no_model", "set DEEPSEEK_API_KEY, or name a --script"}},
	{errNoKey, meaning{exitUsage, "no_key", "set DEEPSEEK_API_KEY in the environment, or REASONIX_BASE_URL for a server without keys, or name a --script"}},
	{agent.ErrForeign, meaning{exitConflict, "foreign_session", "--new begins a session of the agent's own"}},
	{agent.ErrBudget, meaning{exitFailure, "budget", "another run goes on where this one stopped"}},
	{agent.ErrClosed, meaning{exitFailure, "turn_closed", "somebody rewound or closed the turn; run the prompt again"}},
	{fakellm.ErrScript, meaning{exitUsage, "invalid_script", "docs/agent.md describes the form"}},
	{agent.ErrInvalid, meaning{exitFailure, "invalid_event", ""}},
	{hook.ErrMalformed, meaning{exitFailure, "malformed_event", "docs/hooks.md describes the events"}},
	{export.ErrNotEmpty, meaning{exitConflict, "not_empty", "--out names a new or empty folder; --overwrite replaces an earlier export"}},
	{export.ErrNoSource, meaning{exitNotFound, "no_source", ""}},
	{export.ErrTooNew, meaning{exitFailure, "too_new", "upgrade reasonix; nothing was imported"}},
	{export.ErrElsewhere, meaning{exitFailure, "elsewhere", ""}},
	{fs.ErrNotExist, meaning{exitNotFound, "not_there", ""}},
	{export.ErrInvalid, meaning{exitUsage, "usage", ""}},
	{fs.ErrPermission, meaning{exitFailure, "permission", ""}},
	{context.DeadlineExceeded, meaning{exitFailure, "deadline", ""}},
}

const hintPath = "reasonix log -v names the files of each turn; paths are relative to the current folder"

// errNoPath is returned when a path was never recorded, or was not there at a turn.
var errNoPath = errors.New("no such path")

// meaningOf is the one place that maps errors to exit codes.
func meaningOf(err error) meaning {
	m := ordinary(err)
	var better *hinted
	if errors.As(err, &better) {
		m.hint = better.hint
	}
	if isStrict(err) {
		m.exit = exitFailure
	}
	return m
}

func ordinary(err error) meaning {
	var (
		bad      *usage
		bug      *panicError
		unread   *rewind.DamageError
		damage   *blob.DamagedError
		unasked  *llm.Error
		isDamage = errors.As(err, &unread) || errors.As(err, &damage)
	)
	switch {
	case err == nil:
		return meaning{}
	case errors.As(err, &bad):
		return meaning{exitUsage, "usage", bad.hint}
	case errors.As(err, &bug):
		return meaning{exitFailure, "internal", "this is a bug of reasonix, please report it; nothing is half done: the next command takes back what was begun"}
	case errors.As(err, &unasked):
		return meaning{exitFailure, "model_" + string(unasked.Kind), unasked.Hint()}
	case isDamage:
		return meaning{exitDamage, "damaged_blob", "reasonix verify --deep lists all damage; everything else can still be restored"}
	}
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			return m.meaning
		}
	}
	return meaningOfDB(err)
}

func meaningOfDB(err error) meaning {
	switch {
	case db.IsCorrupt(err):
		return meaning{exitStore, "store_corrupt", "reasonix verify tells more"}
	case db.IsFull(err):
		return meaning{exitFailure, "disk_full", "make room; nothing was lost"}
	case db.IsBusy(err):
		return meaning{exitBusy, "store_busy", "another program holds the store's lock; try again"}
	}
	return meaning{exitFailure, "failure", ""}
}

// fail tells an error, if there is one, and returns the exit code.
func (a *app) fail(err error) int {
	if err == nil {
		return exitOK
	}
	m := meaningOf(err)
	var silent *told
	switch {
	case errors.As(err, &silent):
		return m.exit
	case readerGone(err):
		return exitOK
	}
	text := printable(strings.ReplaceAll(err.Error(), "\n", "; "))
	if a.json {
		a.failJSON(err, report.Error{Code: m.code, Message: text, Hint: m.hint})
		return m.exit
	}
	fmt.Fprintln(a.stderr, a.paint(a.stderr, red, "error:"), text)
	if m.hint != "" {
		fmt.Fprintln(a.stderr, a.paint(a.stderr, dim, "hint:"), m.hint)
	}
	var bug *panicError
	if errors.As(err, &bug) {
		fmt.Fprintf(a.stderr, "%s", bug.stack)
	}
	return m.exit
}

// readerGone reports whether whoever read standard output went away, as "head" does; that is
// no failure of ours.
func readerGone(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && at.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE)
}

// failJSON prints the error as an object and, for an error with a result, as its last member.
func (a *app) failJSON(err error, e report.Error) {
	var object json.RawMessage
	var with *withResult
	if errors.As(err, &with) {
		if b, err := encode(with.result); err == nil {
			object = append(bytes.TrimSuffix(b, []byte("}\n")), ',')
		}
	}
	if object == nil {
		object = json.RawMessage("{")
	}
	b, _ := encode(e) // three strings
	object = append(append(append(object, `"error":`...), bytes.TrimSuffix(b, []byte("\n"))...), '}', '\n')
	_, _ = a.stdout.Write(object) // if standard output is gone, the exit code still tells
}

// told is an error that the user knows already; only the exit code is left.
type told struct{ error }

func (e *told) Unwrap() error { return e.error }
