package store

// Stats say what a store holds and what that takes, in bytes.
type Stats struct {
	Size, Free int64 // of the file, and of that free for reuse

	// History is what the recorded states and messages would take if each were kept by itself:
	// every row's contents before and after, and every message.
	History int64
	// Unique is what the different contents, and the messages, have.
	Unique int64
	// Stored is what they take in the file, compressed, as differences and in chunks.
	Stored int64

	Contents     int   // different ones, without chunks
	Dropped      int   // contents whose bytes collection dropped
	DroppedBytes int64 // that they had
	Messages     int
	MessageBytes int64
	Changes      int
	Gaps         int
	Operations   int
	Index        int64 // of the stat index

	Forms    []FormStats    // by how contents are stored
	Sessions []SessionStats // the largest first
	Paths    []PathStats    // the largest first
}

// FormStats are the contents that are stored in one way; chunks are contents here.
type FormStats struct {
	Form         string
	Contents     int
	Size, Stored int64
}

// SessionStats are what a session's present line holds. Lines share what lies above a fork.
type SessionStats struct {
	Session      SessionID
	Name         string
	Turns        int
	Messages     int64
	MessageBytes int64
	Changes      int
	History      int64 // contents before and after each change
}

// PathStats are the contents of a path, each counted once.
type PathStats struct {
	Path     Path
	Versions int
	Size     int64
	Stored   int64 // a chunked content counts its chunks, shared or not
}

const statsTotals = `
	SELECT
	  (SELECT coalesce(sum(b.size), 0) FROM change c JOIN blob b ON b.id = c.before_blob)
	  + (SELECT coalesce(sum(a.size), 0) FROM change c JOIN blob a ON a.id = c.after_blob),
	  (SELECT coalesce(sum(size), 0) FROM blob WHERE id NOT IN (SELECT chunk_id FROM blob_chunk)
	     AND id NOT IN (SELECT blob_id FROM message WHERE blob_id IS NOT NULL) AND id NOT IN (SELECT blob_id FROM blob_expired)),
	  (SELECT coalesce(sum(length(data)), 0) FROM blob),
	  (SELECT count(*) FROM blob WHERE id NOT IN (SELECT chunk_id FROM blob_chunk) AND id NOT IN (SELECT blob_id FROM blob_expired)),
	  (SELECT count(*) FROM blob_expired),
	  (SELECT coalesce(sum(b.size), 0) FROM blob_expired e JOIN blob b ON b.id = e.blob_id),
	  (SELECT count(*) FROM message),
	  (SELECT coalesce(sum(length(CAST(json AS BLOB))), 0) FROM message WHERE json IS NOT NULL),
	  (SELECT coalesce(sum(b.size), 0) FROM message m JOIN blob b ON b.id = m.blob_id),
	  (SELECT count(*) FROM change),
	  (SELECT count(*) FROM gap),
	  (SELECT count(*) FROM operation),
	  (SELECT coalesce(sum(length(data)), 0) FROM scan_part)`

// Stats measures the store. Its work is proportional to what the store holds; most is at most so
// many sessions and paths that are told of, the largest.
func (t *Tx) Stats(most int) (s Stats, err error) {
	if s.Size, s.Free, err = t.Size(); err != nil {
		return s, err
	}
	var files, inline, large int64
	err = t.r.QueryRow(statsTotals).Scan(&files, &s.Unique, &s.Stored, &s.Contents, &s.Dropped, &s.DroppedBytes,
		&s.Messages, &inline, &large, &s.Changes, &s.Gaps, &s.Operations, &s.Index)
	if err != nil {
		return s, err
	}
	s.MessageBytes = inline + large
	s.History, s.Unique, s.Stored = files+s.MessageBytes, s.Unique+s.MessageBytes, s.Stored+inline
	s.Forms, err = collect(t, func(row scanner) (f FormStats, err error) {
		return f, row.Scan(&f.Form, &f.Contents, &f.Size, &f.Stored)
	}, `
		SELECT encoding, count(*), sum(size), sum(stored_size)
		FROM blobs
		GROUP BY encoding
		ORDER BY sum(stored_size) DESC, encoding`)
	if err != nil {
		return s, err
	}
	if s.Sessions, err = t.sessionStats(most); err != nil {
		return s, err
	}
	s.Paths, err = t.pathStats(most)
	return s, err
}

func (t *Tx) sessionStats(most int) ([]SessionStats, error) {
	return collect(t, func(row scanner) (s SessionStats, err error) {
		return s, row.Scan(&s.Session, &s.Name, &s.Turns, &s.Messages, &s.MessageBytes, &s.Changes, &s.History)
	}, `
		WITH ln AS MATERIALIZED (SELECT session_id, segment, depth FROM line),
		rows AS MATERIALIZED (
		  SELECT ln.session_id AS id, count(*) AS changes,
		         sum(coalesce(b.size, 0) + coalesce(a.size, 0)) AS size
		  FROM ln
		  JOIN change c ON c.segment = ln.segment AND c.depth <= ln.depth
		  LEFT JOIN blob b ON b.id = c.before_blob
		  LEFT JOIN blob a ON a.id = c.after_blob
		  GROUP BY ln.session_id
		),
		talk AS MATERIALIZED (
		  SELECT ln.session_id AS id, sum(coalesce(length(CAST(m.json AS BLOB)), b.size)) AS size
		  FROM ln
		  JOIN node n ON n.segment = ln.segment AND n.depth <= ln.depth AND n.msg_count > 0
		  JOIN message m ON m.id >= n.id << 32 AND m.id < (n.id + 1) << 32
		  LEFT JOIN blob b ON b.id = m.blob_id
		  GROUP BY ln.session_id
		)
		SELECT s.sid, s.name, h.turn + 1, h.msg_start + h.msg_count, coalesce(talk.size, 0),
		       coalesce(rows.changes, 0), coalesce(rows.size, 0)
		FROM session s
		JOIN node h ON h.id = s.head_id
		LEFT JOIN rows ON rows.id = s.id
		LEFT JOIN talk ON talk.id = s.id
		WHERE s.deleted_ms IS NULL
		ORDER BY coalesce(talk.size, 0) + coalesce(rows.size, 0) DESC, s.id
		LIMIT ?`, most)
}

func (t *Tx) pathStats(most int) ([]PathStats, error) {
	return collect(t, func(row scanner) (p PathStats, err error) {
		var name []byte
		err = row.Scan(&name, &p.Versions, &p.Size, &p.Stored)
		p.Path = Path(name)
		return p, err
	}, `
		WITH had AS (
		  SELECT path_id, before_blob AS blob_id FROM change WHERE before_blob IS NOT NULL
		  UNION
		  SELECT path_id, after_blob FROM change WHERE after_blob IS NOT NULL
		)
		SELECT p.path, count(*), sum(b.size),
		       sum(length(b.data) + coalesce((
		         SELECT sum(length(d.data)) FROM blob_chunk k JOIN blob d ON d.id = k.chunk_id WHERE k.blob_id = b.id), 0)) AS stored
		FROM had
		JOIN blob b ON b.id = had.blob_id
		JOIN path p ON p.id = had.path_id
		WHERE b.id NOT IN (SELECT blob_id FROM blob_expired)
		GROUP BY had.path_id
		ORDER BY stored DESC, sum(b.size) DESC, p.path
		LIMIT ?`, most)
}
