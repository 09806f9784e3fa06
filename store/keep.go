package store

import (
	"iter"
	"time"

	"reasonix/blob"
)

// Keep says what collection keeps. Whatever it says, these stay: the state in which each session
// stands, the newest turn of each session, open turns, pinned turns, and every message of a line
// that a session, a pin or a kept operation goes through.
type Keep struct {
	// Since keeps turns that ended, and operations that were made, then or later; zero keeps all.
	Since time.Time
	// Turns keeps no more than the newest so many turns of each session; 0 keeps all.
	Turns int
	// Session lets only turns expire that it recorded; "" means those of all sessions.
	Session SessionID
	// Hashes are contents that something outside of the history needs: those of the stat index.
	Hashes iter.Seq[blob.Hash]
}

// survey is all that collection has to know of a store, at one moment.
type survey struct {
	tree     *tree
	turns    []keptTurn
	sessions []keptSession
	ops      []keptOp
	pins     []NodeID
	blobs    []keptBlob // by id
}

type keptTurn struct {
	node    NodeID
	session int64 // that recorded it
	open    bool
	active  int64 // when it was last active, unix milliseconds
}

type keptSession struct {
	id         int64
	sid        SessionID
	head, root NodeID
	deleted    bool
	importing  bool // hidden, and being written as long as there is a lease
}

type keptOp struct {
	id, of, by OpID
	session    int64
	kind       OpKind
	state      OpState
	from, to   NodeID
	created    int64
}

type keptBlob struct {
	id, base uint32
	depth    uint8
	encoding blob.Encoding
	expired  bool
	stored   int64 // bytes of its row
}

func (t *Tx) survey() (*survey, error) {
	var (
		s   survey
		err error
	)
	if s.tree, err = t.tree(); err != nil {
		return nil, err
	}
	s.turns, err = collect(t, func(row scanner) (k keptTurn, err error) {
		return k, row.Scan(&k.node, &k.session, &k.open, &k.active)
	}, `SELECT node_id, session_id, status = 1, coalesce(ended_ms, started_ms) FROM turn ORDER BY node_id`)
	if err != nil {
		return nil, err
	}
	s.sessions, err = collect(t, func(row scanner) (k keptSession, err error) {
		return k, row.Scan(&k.id, &k.sid, &k.head, &k.root, &k.deleted, &k.importing)
	}, `
		SELECT id, sid, head_id, root_id, deleted_ms IS NOT NULL, deleted_ms IS 0 AND EXISTS (SELECT 1 FROM blob_lease)
		FROM session
		ORDER BY id`)
	if err != nil {
		return nil, err
	}
	s.ops, err = collect(t, func(row scanner) (k keptOp, err error) {
		return k, row.Scan(&k.id, &k.of, &k.by, &k.session, &k.kind, &k.state, &k.from, &k.to, &k.created)
	}, `
		SELECT id, coalesce(of_id, 0), coalesce(undone_by, 0), session_id, kind, state, head_from, coalesce(head_to, 0), created_ms
		FROM operation
		ORDER BY id`)
	if err != nil {
		return nil, err
	}
	s.pins, err = collect(t, func(row scanner) (n NodeID, err error) { return n, row.Scan(&n) }, `SELECT node_id FROM pin ORDER BY name`)
	if err != nil {
		return nil, err
	}
	s.blobs, err = t.storedBlobs()
	return &s, err
}

// storedBlobs are all contents, by id.
func (t *Tx) storedBlobs() ([]keptBlob, error) {
	return collect(t, func(row scanner) (k keptBlob, err error) {
		err = row.Scan(&k.id, &k.base, &k.depth, &k.encoding, &k.stored, &k.expired)
		return k, err
	}, `
		SELECT b.id, coalesce(b.base_id, 0), b.depth, b.encoding, length(b.data), e.blob_id IS NOT NULL
		FROM blob b
		LEFT JOIN blob_expired e ON e.blob_id = b.id
		ORDER BY b.id`)
}
