package export

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"reasonix/blob"
	"reasonix/store"
)

// Source names, in the store, sessions that were read from files of that program; their own ids are
// the names of their files.
const Source = "reasonix-files"

var (
	// ErrNoSource is returned for a path at which nothing lies that can be imported.
	ErrNoSource = errors.New("nothing to import")
	// ErrTooNew is returned for files of a version that is not known: they could only be guessed at.
	ErrTooNew = errors.New("the files are of a newer version")
	// ErrElsewhere is in an *Elsewhere.
	ErrElsewhere = errors.New("all files lie outside of this workspace")
)

// The limits of what is read, so that hostile files cost an error and not the machine.
const (
	maxTurnFile = 256 << 20 // bytes of one turn-<n>.json
	maxTurns    = 100_000
	maxMessages = 100_000
	maxEvents   = 128 << 20 // bytes of an events log
	maxLine     = 64 << 20  // bytes of a message
	maxContent  = 4 << 30   // bytes of one file
)

// Warning is something in the files that is not as it should be, and what was done without.
type Warning struct {
	Code   string // one of the Warn… constants
	File   string // that it is in, beside the session's
	Turn   int    // -1 when it is about none
	Path   string // as the files have it; "" when it is about none
	Detail string // for a person
}

// The codes of warnings. They are part of the documented interface.
const (
	WarnCorrupt   = "corrupt"          // no JSON, cut off, or not of the form
	WarnDuplicate = "duplicate_turn"   // two files are about one turn
	WarnRange     = "out_of_range"     // a number that cannot be
	WarnOutside   = "outside"          // a path that is not below the root
	WarnPath      = "invalid_path"     // a path that cannot be one here, or is protected
	WarnSymlink   = "symlinked_parent" // a path whose parent is a link in the workspace
	WarnBlob      = "damaged_content"  // a content that is missing or has another hash
	WarnInexact   = "inexact_content"  // a text that does not give the bytes back
	WarnExpired   = "expired"          // the other program dropped the content
	WarnLimit     = "limit"            // more than is read
	WarnEvents    = "events_ignored"   // the log of events is damaged; the transcript was used
	WarnRoot      = "other_root"       // the files name another workspace
	WarnThere     = "imported_before"
)

// Elsewhere is returned when files were recorded, not one of them below the root, and nobody said that this
// is the root: a session would be imported that can restore nothing.
type Elsewhere struct {
	Root  string // that was looked below
	Below string // the deepest folder that all files lie below; "" when there is none
}

func (e *Elsewhere) Error() string {
	if e.Below == "" {
		return fmt.Sprintf("not one of the files lies below %s: %v", e.Root, ErrElsewhere)
	}
	return fmt.Sprintf("the files lie below %s, not below %s: %v", e.Below, e.Root, ErrElsewhere)
}

// Unwrap gives ErrElsewhere.
func (e *Elsewhere) Unwrap() error { return ErrElsewhere }

// Disk is the workspace, which an import only reads.
type Disk interface {
	// Root is its absolute path.
	Root() string
	// Check gives the path of a name relative to the root, which must lie below it and not be
	// protected; linked says that a link lies on the way.
	Check(name string) (p store.Path, linked bool, err error)
	// Read reads what a path is, with the SHA-256 of a file. The content is bound or discarded.
	Read(ctx context.Context, p store.Path) (store.State, *blob.Prepared, [sha256.Size]byte, error)
}

// ImportOptions change an import.
type ImportOptions struct {
	// FromRoot is the absolute folder below which the files' paths are taken as below the workspace;
	// "" means the workspace's own root.
	FromRoot string
	// History is the folder of Claude Code's file history of the session; "" means where that program
	// has it, seen from the transcript.
	History string
	// Progress, which may be nil, is told of turns done and of all.
	Progress func(done, total int)
}

// Imported says what an import made.
type Imported struct {
	Session  store.Session
	Turns    int
	Messages int64
	Files    int // states of files that were taken over
	Warnings []Warning
	Before   bool // it had been imported already; nothing was done
}

// importer is one import.
type importer struct {
	store     *store.Store
	disk      Disk
	o         ImportOptions
	kind      string // Source or ClaudeSource
	from      source
	ckpt      *folder
	claude    *claudeLine // where the files are those of Claude Code
	meta      branch
	talk      *transcript
	turns     []turnPlan
	records   []record
	contents  map[[sha256.Size]byte]content
	last      map[store.Path]blob.Hash // of each path
	pending   []*blob.Prepared
	held      int64
	making    *store.Import
	result    Imported
	rootGiven bool
	elsewhere []string // absolute names that do not lie below the root
}

// content is what is stored under a SHA-256.
type content struct {
	hash blob.Hash
	size int64
}

// Import reads a session: a .jsonl with what lies beside it, or a .ckpt folder, of any version. What
// is wrong in the files is a warning each, and the rest is imported. Nothing is written but into the
// store, and there nothing shows unless all went well. Errors: ErrNoSource, ErrTooNew, and those of
// the file system and the store.
func Import(ctx context.Context, s *store.Store, disk Disk, path string, o ImportOptions) (Imported, error) {
	from, err := locate(path)
	if err != nil {
		return Imported{}, err
	}
	i := newImporter(s, disk, o, Source)
	i.from = from
	if err = i.open(); err == nil {
		err = i.run(ctx)
	}
	if cerr := i.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Imported{}, fmt.Errorf("import %s: %w", path, err)
	}
	return i.result, nil
}

func newImporter(s *store.Store, disk Disk, o ImportOptions, kind string) *importer {
	given := o.FromRoot != ""
	if !given {
		o.FromRoot = disk.Root()
	}
	return &importer{
		rootGiven: given,
		store:     s, disk: disk, o: o, kind: kind,
		contents: map[[sha256.Size]byte]content{}, last: map[store.Path]blob.Hash{},
	}
}

func (i *importer) close() error {
	var err error
	if i.talk != nil {
		err = i.talk.close()
	}
	if i.ckpt != nil {
		err = errors.Join(err, i.ckpt.close())
	}
	return err
}

func (i *importer) warn(w Warning) { i.result.Warnings = append(i.result.Warnings, w) }

func (i *importer) run(ctx context.Context) error {
	if there, err := i.there(ctx); there || err != nil {
		return err
	}
	if i.claude == nil {
		if err := i.plan(); err != nil {
			return err
		}
	}
	n := i.session()
	err := i.store.Update(ctx, func(tx *store.WriteTx) (err error) {
		i.making, err = tx.BeginImport(n)
		return err
	})
	if err != nil {
		return err
	}
	if err := i.fill(ctx, n); err != nil {
		_ = i.store.Update(context.WithoutCancel(ctx), func(tx *store.WriteTx) error { return tx.AbandonImport(i.making) })
		return err
	}
	return i.link(ctx)
}

// open reads what is small, and the conversation.
func (i *importer) open() error {
	var err error
	if i.from.ckpt != "" {
		if i.ckpt, err = openFolder(i.from.ckpt); err != nil {
			return err
		}
	}
	slices.Sort(i.from.odd)
	for _, name := range i.from.odd {
		i.warn(Warning{Code: WarnCorrupt, File: name, Turn: -1, Detail: "it is no regular file"})
	}
	i.readMeta()
	if i.talk, err = newTranscript(); err != nil {
		return err
	}
	return i.readMessages()
}

// there reports whether the session was imported before.
func (i *importer) there(ctx context.Context) (bool, error) {
	err := i.store.View(ctx, func(tx *store.Tx) (err error) {
		i.result.Session, err = tx.Imported(i.kind, i.from.id)
		return err
	})
	if errors.Is(err, store.ErrNoSession) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s := i.result.Session
	i.result.Before, i.result.Turns, i.result.Messages = true, s.Turns, s.Messages
	detail := "it was imported before; nothing was done"
	if int64(i.talk.len()) > s.Messages {
		detail = fmt.Sprintf("the files have %d messages, the session has %d; nothing was done", i.talk.len(), s.Messages)
	}
	i.warn(Warning{Code: WarnThere, Turn: -1, Detail: fmt.Sprintf("%s. To import it anew: reasonix sessions delete %s", detail, s.ID)})
	return true, i.link(ctx)
}

func (i *importer) session() store.NewImport {
	n := store.NewImport{Name: i.meta.Name, Source: i.kind, SourceID: i.from.id, Created: i.meta.created(), Updated: i.meta.updated()}
	if n.Name == "" {
		n.Name = i.meta.CustomTitle
	}
	if len(i.turns) > 0 {
		if n.Created.IsZero() {
			n.Created = i.turns[0].time
		}
		if n.Updated.IsZero() {
			n.Updated = i.turns[len(i.turns)-1].time
		}
	}
	return n
}

// fill writes contents, then turns, then lets the session show.
func (i *importer) fill(ctx context.Context, n store.NewImport) error {
	for k := range i.turns {
		if err := i.readFiles(ctx, k); err != nil {
			return fmt.Errorf("turn %d: %w", i.turns[k].number, err)
		}
		if i.o.Progress != nil {
			i.o.Progress(k+1, 2*len(i.turns))
		}
	}
	if i.result.Files == 0 && len(i.elsewhere) > 0 && !i.rootGiven {
		return &Elsewhere{Root: i.o.FromRoot, Below: commonFolder(i.elsewhere)}
	}
	if err := i.settle(ctx); err != nil {
		return err
	}
	if err := i.flush(ctx); err != nil {
		return err
	}
	if err := i.write(ctx); err != nil {
		return err
	}
	return i.store.Update(ctx, func(tx *store.WriteTx) (err error) {
		i.result.Session, err = tx.FinishImport(i.making, n)
		i.result.Turns, i.result.Messages = i.result.Session.Turns, i.result.Session.Messages
		return err
	})
}

// link ties the session to the one it was forked from, and its forks to it, as far as they are there.
func (i *importer) link(ctx context.Context) error {
	var children []branch
	if i.kind == Source {
		children = childrenOf(filepath.Dir(i.from.stem), i.from.id)
	}
	err := i.store.Update(ctx, func(tx *store.WriteTx) error {
		if i.meta.ParentID != "" {
			if err := linkTo(tx, i.kind, i.meta, i.result.Session.ID); err != nil {
				return err
			}
		}
		for _, c := range children {
			child, err := tx.Imported(i.kind, c.ID)
			if errors.Is(err, store.ErrNoSession) {
				continue
			}
			if err == nil {
				err = linkTo(tx, i.kind, c, child.ID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return i.store.View(ctx, func(tx *store.Tx) (err error) {
		i.result.Session, err = tx.Session(i.result.Session.ID)
		return err
	})
}

func linkTo(tx *store.WriteTx, kind string, b branch, id store.SessionID) error {
	parent, err := tx.Imported(kind, b.ParentID)
	if errors.Is(err, store.ErrNoSession) || err == nil && parent.ID == id {
		return nil
	}
	if err != nil {
		return err
	}
	turn := b.ForkTurn
	if turn < 0 || turn > parent.Turns { // -1 stands for the tip
		turn = parent.Turns
	}
	msg := parent.Messages
	if b.ForkMessageIndex != nil && *b.ForkMessageIndex >= 0 {
		msg = min(*b.ForkMessageIndex, parent.Messages)
	}
	return tx.LinkFork(id, parent.ID, turn, msg)
}

// bind keeps a content; it is committed with others.
func (i *importer) bind(ctx context.Context, p *blob.Prepared) error {
	i.pending = append(i.pending, p)
	if i.held += p.Size(); i.held < 8<<20 && len(i.pending) < 256 {
		return nil
	}
	return i.flush(ctx)
}

func (i *importer) flush(ctx context.Context) error {
	if len(i.pending) == 0 {
		return nil
	}
	err := i.store.Update(ctx, func(tx *store.WriteTx) error {
		for _, p := range i.pending {
			if err := tx.Bind(p); err != nil {
				return err
			}
		}
		return tx.KeepImport(i.making)
	})
	i.pending, i.held = nil, 0
	return err
}

// parseTime reads a time of the files; zero when it is none.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
