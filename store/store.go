// Package store holds sessions, nodes, messages, changes, operations and gaps: the value
// types of the model and all SQL about them. It never touches a user's files.
//
// A node's address in the tree is (segment, depth). A segment is a run of nodes each of which
// is the child of the one before, so the line of a head is a few ranges of segments, and
// every question about a line is a few index look-ups, however long the line is.
//
// All methods of Tx and WriteTx are for one goroutine; a Store is safe for concurrent use.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"reasonix/blob"
	"reasonix/db"
)

var (
	// ErrNoStore is returned when a store is opened that does not exist, and when the workspace is
	// asked of one that was never finished.
	ErrNoStore = errors.New("no store")
	// ErrNoSession is returned when no session has the given reference.
	ErrNoSession = errors.New("no such session")
	// ErrAmbiguous is returned when a reference fits several sessions.
	ErrAmbiguous = errors.New("ambiguous session")
	// ErrNoTurn is returned when a session has no turn of the given number.
	ErrNoTurn = errors.New("no such turn")
	// ErrNoOperation is returned when no operation has the given id.
	ErrNoOperation = errors.New("no such operation")
	// ErrSealed is returned when a sealed node is written to (I3).
	ErrSealed = errors.New("node is sealed")
	// ErrInvalid is returned when a value from outside cannot be stored.
	ErrInvalid = errors.New("invalid value")
	// ErrDamaged is returned when a message is not what came in any more.
	ErrDamaged = errors.New("message is damaged")
	// ErrReadOnly is returned when a store that can only be read is to be changed.
	ErrReadOnly = db.ErrReadOnly
	// ErrCorrupt is returned when stored rows contradict the model.
	ErrCorrupt = errors.New("store is damaged")
)

// Workspace is the folder that a store is about.
type Workspace struct {
	Root          string // canonical absolute path
	Device, Inode uint64 // identity of the folder: another folder at the same path is another workspace
	Created       time.Time
}

// Options change how a store is opened; the zero value is for every day.
type Options struct {
	// Create is the workspace of a store that is made when the file is missing.
	// nil means that a missing file is ErrNoStore.
	Create *Workspace
	// ReadOnly opens for reading; nothing is ever written, recovery included.
	ReadOnly bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// NewID makes session ids; nil means eight random characters.
	NewID func() SessionID
	// OneConnection is for short processes; see db.Options.
	OneConnection bool
	// Fault is the seam of the fault tests; see db.Options.
	Fault func(point string) error
	// MaxPages bounds the file for tests of a full disk, in pages; 0 means no bound.
	MaxPages int64
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	db    *db.DB
	blobs *blob.Store
	now   func() time.Time
	newID func() SessionID
	began atomic.Int64 // write transactions; it counts up inside of them
}

// Open opens the store file at path. Errors: ErrNoStore, and db's ErrNewer, ErrForeign and
// ErrCorrupt, which all leave the file as it is.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && (o.Create == nil || o.ReadOnly) {
		return nil, fmt.Errorf("%w at %s", ErrNoStore, path)
	}
	d, err := db.Open(ctx, path, db.Options{ReadOnly: o.ReadOnly, Now: o.Now, Fault: o.Fault, MaxPages: o.MaxPages, OneConnection: o.OneConnection})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{db: d, now: o.Now, newID: o.NewID}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = randomID
	}
	s.blobs = blob.New(d, s.now)
	if o.Create != nil && !o.ReadOnly {
		if err := s.bear(ctx, *o.Create); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return s, nil
}

// bear writes the workspace row of a new store, once.
func (s *Store) bear(ctx context.Context, w Workspace) error {
	born := false
	err := s.View(ctx, func(tx *Tx) error {
		var err error
		born, err = tx.hasWorkspace()
		return err
	})
	if err != nil || born {
		return err
	}
	return s.Update(ctx, func(tx *WriteTx) error {
		_, err := tx.exec(`
			INSERT INTO workspace (id, root, device, inode, created_ms)
			VALUES (1, ?, ?, ?, ?)
			ON CONFLICT (id) DO NOTHING`,
			[]byte(w.Root), int64(w.Device), int64(w.Inode), ms(s.now()))
		return err
	})
}

// Close closes the store; a process that wrote must call it, or its WAL stays behind.
func (s *Store) Close() error { return s.db.Close() }

// Path is the store's file.
func (s *Store) Path() string { return s.db.Path() }

// Blobs is the content of the store.
func (s *Store) Blobs() *blob.Store { return s.blobs }

// Now is the store's clock.
func (s *Store) Now() time.Time { return s.now() }

// Backup writes a consistent copy to a new file, while others write.
func (s *Store) Backup(ctx context.Context, to string) error { return s.db.Backup(ctx, to) }

// Watch begins to notice changes of the store, by whatever process; the caller closes it before
// the store.
func (s *Store) Watch(ctx context.Context) (*db.Watch, error) { return s.db.Watch(ctx) }

// Tx reads one consistent snapshot.
type Tx struct {
	r     *db.ReadTx
	paths map[Path]int64 // ids seen in this transaction; 0 for one that is not there
}

// WriteTx reads and writes; nothing is there until it commits, then all is, durably.
type WriteTx struct {
	Tx
	w *db.WriteTx
	s *Store
}

// View runs fn on a snapshot. What fn read is void when it returns an error.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	return s.db.View(ctx, func(r *db.ReadTx) error {
		return fn(&Tx{r: r, paths: map[Path]int64{}})
	})
}

// Update runs fn in the one write transaction; an error or a panic rolls it back.
func (s *Store) Update(ctx context.Context, fn func(*WriteTx) error) error {
	return s.db.Update(ctx, func(w *db.WriteTx) error {
		s.began.Add(1)
		return fn(&WriteTx{Tx: Tx{r: &w.ReadTx, paths: map[Path]int64{}}, w: w, s: s})
	})
}

func (w *WriteTx) exec(query string, args ...any) (int64, error) {
	res, err := w.w.Exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert runs an INSERT and returns the new row's id.
func (w *WriteTx) insert(query string, args ...any) (int64, error) {
	res, err := w.w.Exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Bind makes prepared content part of the transaction.
func (w *WriteTx) Bind(p *blob.Prepared) error {
	_, err := w.s.blobs.Bind(w.w, p)
	return err
}

func (t *Tx) hasWorkspace() (bool, error) {
	var n int
	err := t.r.Get(&n, `SELECT count(*) FROM workspace`)
	return n > 0, err
}

// Workspace is the folder that the store is about.
func (t *Tx) Workspace() (Workspace, error) {
	var (
		root          []byte
		dev, ino, cms int64
	)
	err := t.r.QueryRow(`SELECT root, device, inode, created_ms FROM workspace WHERE id = 1`).Scan(&root, &dev, &ino, &cms)
	if err != nil {
		return Workspace{}, fmt.Errorf("read workspace: %w", noRows(err, t.unborn()))
	}
	return Workspace{Root: string(root), Device: uint64(dev), Inode: uint64(ino), Created: at(cms)}, nil
}

// unborn is what a store without a workspace is: one whose making was killed before its first row,
// which is as good as none, or else damaged.
func (t *Tx) unborn() error {
	var used bool
	switch err := t.r.Get(&used, `SELECT EXISTS (SELECT 1 FROM session)`); {
	case err != nil:
		return err
	case used:
		return ErrCorrupt
	}
	return fmt.Errorf("%w: its making was interrupted", ErrNoStore)
}

// MoveWorkspace binds the store to another folder, for a workspace that was renamed.
func (w *WriteTx) MoveWorkspace(to Workspace) error {
	_, err := w.exec(`UPDATE workspace SET root = ?, device = ?, inode = ? WHERE id = 1`,
		[]byte(to.Root), int64(to.Device), int64(to.Inode))
	return err
}

// ms is t in unix milliseconds; the zero time is 0.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// idAlphabet has 32 characters, so five bits of randomness give one without bias; it leaves
// out the ones that are mistaken for others (i, l, o, u).
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

func randomID() SessionID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails, it ends the process instead
	for i := range b {
		b[i] = idAlphabet[b[i]&31]
	}
	return SessionID(b[:])
}

// HasBlob reports whether content is stored.
func (t *Tx) HasBlob(h blob.Hash) (bool, error) {
	_, ok, err := blob.Lookup(t.r, h)
	return ok, err
}
