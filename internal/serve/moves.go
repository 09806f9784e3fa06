package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"reasonix/internal/move"
	"reasonix/internal/report"
	"reasonix/rewind"
	"reasonix/store"
)

// moveArgs are the members that all moves take.
type moveArgs struct {
	Session string `json:"session"` // "" means the current one
	DryRun  bool   `json:"dry_run"`
	Force   bool   `json:"force"`
	Skip    bool   `json:"skip_conflicts"`
	// Plan is that of a dry run: the move is made only if it is still the one that was shown.
	Plan string `json:"plan"`
}

// moveJSON is the result of a move; a dry run has a plan, which the move can be asked with.
type moveJSON struct {
	report.Move
	Plan string `json:"plan,omitempty"`
}

func (s *Server) rewind(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Turn  *int      `json:"turn"`
		Scope *string   `json:"scope"`
		Paths []pathArg `json:"paths"`
		moveArgs
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	turn, err := turnArg(in.Turn)
	if err != nil {
		return err
	}
	scope, err := scopeOf(in.Scope, len(in.Paths) > 0)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(in.Paths))
	for _, p := range in.Paths {
		names = append(names, string(p))
	}
	only, err := s.paths(names)
	if err != nil {
		return err
	}
	one, err := s.target(r, in.Session, turn)
	if err != nil {
		return err
	}
	return s.move(w, r, in.moveArgs, rewind.Request{Kind: store.OpRewind, Session: one.ID, Turn: turn, Scope: scope, Only: only})
}

func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Turn *int   `json:"turn"`
		Name string `json:"name"`
		Code bool   `json:"code"`
		moveArgs
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	turn, err := turnArg(in.Turn)
	if err != nil {
		return err
	}
	one, err := s.target(r, in.Session, turn)
	if err != nil {
		return err
	}
	err = s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) error { return move.FreeName(tx, "", in.Name) })
	if err != nil {
		return err
	}
	return s.move(w, r, in.moveArgs, rewind.Request{Kind: store.OpFork, Session: one.ID, Turn: turn, Name: in.Name, Code: in.Code})
}

// target finds the session of a move, and makes sure that it has the turn.
func (s *Server) target(r *http.Request, ref string, turn int) (store.Session, error) {
	one, err := s.session(r, ref)
	if err == nil && turn > one.Turns {
		err = noTurn(one, turn)
	}
	return one, err
}

func (s *Server) switchTo(w http.ResponseWriter, r *http.Request) error {
	var in moveArgs
	if err := decode(r, &in); err != nil {
		return err
	}
	if in.Session == "" {
		return badRequest(`the session is missing; "-" is the one before`)
	}
	var one store.Session
	err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) (err error) {
		if in.Session == "-" {
			one, err = tx.Previous()
		} else {
			one, err = tx.FindSession(in.Session)
		}
		return err
	})
	if err != nil {
		return err
	}
	if one.Current {
		res := rewind.Result{Kind: store.OpSwitch, Session: one.ID, Turn: -1, Messages: one.Messages}
		return s.ok(w, moveJSON{Move: report.NewMove(res, in.DryRun)})
	}
	return s.move(w, r, in, rewind.Request{Kind: store.OpSwitch, Session: one.ID})
}

// takeBackArgs are the members of undo and redo.
type takeBackArgs struct {
	Operation *string `json:"operation"`
	moveArgs
}

func (a takeBackArgs) op() (store.OpID, error) {
	if a.Operation == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(*a.Operation, 10, 64)
	if err != nil || n < 1 {
		return 0, badRequest(fmt.Sprintf("%q is no operation: it is a number in a string, as GET /operations lists it", *a.Operation))
	}
	return store.OpID(n), nil
}

func (s *Server) undo(w http.ResponseWriter, r *http.Request) error {
	var in takeBackArgs
	if err := decode(r, &in); err != nil {
		return err
	}
	op, err := in.op()
	if err != nil {
		return err
	}
	of, err := move.Deletion(r.Context(), s.o.Capture.Store, in.Session, op)
	if err != nil {
		return err
	}
	if of.ID != 0 {
		return s.restore(w, r, in.moveArgs, of)
	}
	id, err := s.whose(r, in.Session, op)
	if err != nil {
		return err
	}
	return s.move(w, r, in.moveArgs, rewind.Request{Kind: store.OpUndo, Session: id, Op: op})
}

// restore brings a deleted session back.
func (s *Server) restore(w http.ResponseWriter, r *http.Request, in moveArgs, of store.Operation) error {
	out := report.Deletion{Session: of.Session, Undoes: report.OpID(of.ID)}
	if !in.DryRun {
		id, err := move.RestoreSession(r.Context(), s.o.Capture.Store, of)
		if err != nil {
			return err
		}
		out.Operation = report.OpID(id)
		s.watcher.poke()
	}
	return s.ok(w, out)
}

// whose finds the session of an undo or redo: the one named, or that of the operation, which
// says itself what it is about.
func (s *Server) whose(r *http.Request, ref string, op store.OpID) (store.SessionID, error) {
	if op == 0 || ref != "" {
		one, err := s.session(r, ref)
		return one.ID, err
	}
	var o store.Operation
	err := s.o.Capture.Store.View(r.Context(), func(tx *store.Tx) (err error) { o, err = tx.Operation(op); return err })
	return o.Session, err
}

// redo takes the newest undo back. An operation, when one is named, must be that undo.
func (s *Server) redo(w http.ResponseWriter, r *http.Request) error {
	var in takeBackArgs
	if err := decode(r, &in); err != nil {
		return err
	}
	op, err := in.op()
	if err != nil {
		return err
	}
	id, err := s.whose(r, in.Session, op)
	if err != nil {
		return err
	}
	return s.moveIf(w, r, in.moveArgs, rewind.Request{Kind: store.OpRedo, Session: id}, func(res rewind.Result) bool {
		return op == 0 || res.Undoes == op
	})
}

func (s *Server) move(w http.ResponseWriter, r *http.Request, in moveArgs, req rewind.Request) error {
	return s.moveIf(w, r, in, req, func(rewind.Result) bool { return true })
}

// moveIf plans a move, asks whether it is the one that is meant, and makes it unless only the
// plan is wanted.
func (s *Server) moveIf(w http.ResponseWriter, r *http.Request, in moveArgs, req rewind.Request, meant func(rewind.Result) bool) error {
	if in.Force && in.Skip {
		return badRequest("force and skip_conflicts contradict each other")
	}
	req.Force, req.Skip = in.Force, in.Skip
	// What was asked for is done also when the client does not wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.o.Limits.Move)
	defer cancel()
	if err := s.recover(ctx); err != nil {
		return err
	}
	var ok func(rewind.Result) bool
	if in.Plan != "" || req.Kind == store.OpRedo {
		ok = func(res rewind.Result) bool { return meant(res) && (in.Plan == "" || in.Plan == planOf(res)) }
	}
	res, err := s.mover.DoShown(ctx, req, in.DryRun, ok)
	s.watcher.poke()
	switch {
	case errors.Is(err, rewind.ErrConflict) && res.Session != "":
		return s.conflict(res, in.DryRun, err)
	case err != nil:
		return err
	}
	out := moveJSON{Move: report.NewMove(res, in.DryRun)}
	if in.DryRun {
		out.Plan = planOf(res)
	}
	return s.ok(w, out)
}

// conflict is the refusal that lists what is in conflict.
func (s *Server) conflict(res rewind.Result, dry bool, err error) error {
	e := *s.meaningOf(err)
	result := report.NewMove(res, dry)
	e.result = &result
	noun := "conflicts"
	if len(res.Conflicts) == 1 {
		noun = "conflict"
	}
	e.message = fmt.Sprintf("%d %s; nothing was changed: %s", len(res.Conflicts), noun, rewind.ErrConflict)
	return &e
}

// planOf is a word that stands for all that a plan says.
func planOf(res rewind.Result) string {
	res.Operation, res.Branch = 0, ""
	b, _ := json.Marshal(report.NewMove(res, true)) // strings and numbers
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// recover takes back what crashed operations of other processes did.
func (s *Server) recover(ctx context.Context) error {
	done, err := s.o.Engine.Recover(ctx)
	for _, d := range done {
		s.o.Log("operation %d (%s) was interrupted; it was taken back and the files are as before it", d.Operation.ID, d.Operation.Kind)
		for _, p := range d.Left {
			s.o.Log("  left as it is, since somebody changed it meanwhile: %s", report.Text(p))
		}
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}
