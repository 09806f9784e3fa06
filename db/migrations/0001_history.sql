-- The history of one workspace: docs/design.md has the model, docs/schema.md the views.
-- Singular tables are internal; the plural views at the end are a documented interface.
-- Times are unix milliseconds. The numbers of enums are those of store/types.go and blob.

CREATE TABLE blob (
  id       INTEGER PRIMARY KEY,
  hash     BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
  size     INTEGER NOT NULL CHECK (size >= 0),
  encoding INTEGER NOT NULL CHECK (encoding IN (0, 1, 2, 3)), -- raw, zstd, zstd-delta, chunked
  base_id  INTEGER REFERENCES blob (id),
  depth    INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
  data     BLOB    NOT NULL
) STRICT;

CREATE INDEX blob_base ON blob (base_id) WHERE base_id IS NOT NULL;

CREATE TABLE blob_chunk (
  blob_id  INTEGER NOT NULL REFERENCES blob (id),
  seq      INTEGER NOT NULL,
  chunk_id INTEGER NOT NULL REFERENCES blob (id),
  PRIMARY KEY (blob_id, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_chunk_chunk ON blob_chunk (chunk_id);

-- While a lease has not expired, blobs that nothing refers to are not swept.
CREATE TABLE blob_lease (
  id         INTEGER PRIMARY KEY,
  expires_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE path (
  id   INTEGER PRIMARY KEY,
  path BLOB NOT NULL UNIQUE CHECK (length(path) BETWEEN 1 AND 4096)
) STRICT;

-- A segment is a run of nodes, each the child of the one before; its id is its first node's.
-- A root always begins a segment. msg_start and turn are cumulative, so that a turn number or
-- a message boundary is one look-up.
CREATE TABLE node (
  id         INTEGER PRIMARY KEY,
  parent_id  INTEGER REFERENCES node (id),
  kind       INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 5), -- root, turn, append, restore, carry
  segment    INTEGER NOT NULL,
  depth      INTEGER NOT NULL CHECK (depth >= 0),
  turn       INTEGER NOT NULL CHECK (turn >= -1),
  msg_start  INTEGER NOT NULL CHECK (msg_start >= 0),
  msg_count  INTEGER NOT NULL DEFAULT 0 CHECK (msg_count >= 0),
  created_ms INTEGER NOT NULL,
  UNIQUE (segment, depth),
  CHECK ((parent_id IS NULL) = (depth = 0)),
  CHECK (kind <> 1 OR (segment = id AND turn = -1 AND msg_start = 0))
) STRICT;

CREATE INDEX node_parent ON node (parent_id);
CREATE INDEX node_turn ON node (segment, turn, depth);

CREATE TABLE session (
  id           INTEGER PRIMARY KEY,
  sid          TEXT    NOT NULL UNIQUE CHECK (length(sid) BETWEEN 1 AND 64),
  name         TEXT    NOT NULL DEFAULT '',
  source       TEXT    NOT NULL DEFAULT '',
  source_id    TEXT    NOT NULL DEFAULT '',
  head_id      INTEGER NOT NULL REFERENCES node (id),
  root_id      INTEGER NOT NULL REFERENCES node (id),
  open_id      INTEGER REFERENCES node (id), -- the node that takes rows and messages; NULL when sealed
  open_turn_id INTEGER REFERENCES node (id), -- the turn that is open
  parent_id    INTEGER REFERENCES session (id),
  fork_turn    INTEGER,
  fork_msg     INTEGER,
  created_ms   INTEGER NOT NULL,
  updated_ms   INTEGER NOT NULL,
  event_ms     INTEGER NOT NULL,             -- last event of its agent
  deleted_ms   INTEGER,
  CHECK ((parent_id IS NULL) = (fork_turn IS NULL)),
  CHECK ((parent_id IS NULL) = (fork_msg IS NULL))
) STRICT;

CREATE UNIQUE INDEX session_source ON session (source, source_id) WHERE source_id <> '';
CREATE INDEX session_head ON session (head_id);
CREATE INDEX session_open ON session (open_id) WHERE open_id IS NOT NULL;
CREATE INDEX session_open_turn ON session (open_turn_id) WHERE open_turn_id IS NOT NULL;

CREATE TABLE workspace (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  root        BLOB    NOT NULL,
  device      INTEGER NOT NULL,
  inode       INTEGER NOT NULL,
  created_ms  INTEGER NOT NULL,
  current_id  INTEGER REFERENCES session (id),
  previous_id INTEGER REFERENCES session (id)
) STRICT;

CREATE TABLE turn (
  node_id    INTEGER PRIMARY KEY REFERENCES node (id),
  session_id INTEGER NOT NULL REFERENCES session (id), -- the session that recorded it
  turn_key   TEXT    NOT NULL DEFAULT '',
  prompt     TEXT    NOT NULL,
  status     INTEGER NOT NULL CHECK (status BETWEEN 1 AND 4), -- open, done, interrupted, failed
  started_ms INTEGER NOT NULL,
  ended_ms   INTEGER
) STRICT;

CREATE INDEX turn_key ON turn (session_id, turn_key) WHERE turn_key <> '';

-- id is node << 32 | position in the node. What is over 64 KiB lies in a blob. sum is the
-- beginning of the BLAKE3 of the message, eight bytes as a number, least significant first.
CREATE TABLE message (
  id      INTEGER PRIMARY KEY,
  role    TEXT NOT NULL,
  json    TEXT,
  blob_id INTEGER REFERENCES blob (id),
  sum     INTEGER NOT NULL,
  CHECK ((json IS NULL) <> (blob_id IS NULL))
) STRICT;

CREATE INDEX message_blob ON message (blob_id) WHERE blob_id IS NOT NULL;

-- Stands for messages [from_idx, to_idx) of the full line.
CREATE TABLE compaction (
  id         INTEGER PRIMARY KEY,
  node_id    INTEGER NOT NULL REFERENCES node (id),
  from_idx   INTEGER NOT NULL CHECK (from_idx >= 0),
  to_idx     INTEGER NOT NULL CHECK (to_idx > from_idx),
  created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX compaction_node ON compaction (node_id);

-- id is compaction << 32 | position.
CREATE TABLE compaction_message (
  id      INTEGER PRIMARY KEY,
  role    TEXT NOT NULL,
  json    TEXT,
  blob_id INTEGER REFERENCES blob (id),
  sum     INTEGER NOT NULL,
  CHECK ((json IS NULL) <> (blob_id IS NULL))
) STRICT;

CREATE INDEX compaction_message_blob ON compaction_message (blob_id) WHERE blob_id IS NOT NULL;

-- One row: a path's state before and after, in order within its node.
CREATE TABLE change (
  segment     INTEGER NOT NULL,
  depth       INTEGER NOT NULL,
  seq         INTEGER NOT NULL CHECK (seq >= 0),
  path_id     INTEGER NOT NULL REFERENCES path (id),
  source      INTEGER NOT NULL CHECK (source BETWEEN 1 AND 6), -- tool, shell, external, restore, carry, import
  origin      INTEGER NOT NULL CHECK (origin IN (1, 2)),       -- agent, external
  before_kind INTEGER NOT NULL CHECK (before_kind BETWEEN 1 AND 5), -- absent, file, symlink, dir, uncaptured
  before_mode INTEGER NOT NULL CHECK (before_mode BETWEEN 0 AND 511),
  before_blob INTEGER REFERENCES blob (id),
  after_kind  INTEGER NOT NULL CHECK (after_kind BETWEEN 1 AND 5),
  after_mode  INTEGER NOT NULL CHECK (after_mode BETWEEN 0 AND 511),
  after_blob  INTEGER REFERENCES blob (id),
  PRIMARY KEY (segment, depth, seq),
  FOREIGN KEY (segment, depth) REFERENCES node (segment, depth),
  CHECK ((before_blob IS NOT NULL) = (before_kind IN (2, 3))),
  CHECK ((after_blob IS NOT NULL) = (after_kind IN (2, 3)))
) STRICT, WITHOUT ROWID;

CREATE INDEX change_path ON change (path_id, segment, depth, seq);
CREATE INDEX change_before ON change (before_blob) WHERE before_blob IS NOT NULL;
CREATE INDEX change_after ON change (after_blob) WHERE after_blob IS NOT NULL;

CREATE TABLE gap (
  id      INTEGER PRIMARY KEY,
  node_id INTEGER NOT NULL REFERENCES node (id),
  reason  TEXT    NOT NULL CHECK (reason <> ''),
  path    BLOB    NOT NULL, -- as it was named; empty when it is about no single path
  tool    TEXT    NOT NULL DEFAULT '',
  detail  TEXT    NOT NULL DEFAULT '',
  UNIQUE (node_id, reason, path, tool, detail)
) STRICT;

-- A tool call that was announced and has not ended.
CREATE TABLE call (
  id         INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES session (id),
  call_key   TEXT    NOT NULL DEFAULT '',
  kind       INTEGER NOT NULL CHECK (kind IN (1, 2)), -- edit, exec
  tool       TEXT    NOT NULL DEFAULT '',
  node_id    INTEGER NOT NULL REFERENCES node (id),
  started_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX call_session ON call (session_id, call_key);

CREATE TABLE call_path (
  call_id INTEGER NOT NULL REFERENCES call (id) ON DELETE CASCADE,
  path_id INTEGER NOT NULL REFERENCES path (id),
  PRIMARY KEY (call_id, path_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX call_path_path ON call_path (path_id);

CREATE TABLE operation (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES session (id),
  kind       INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 9), -- rewind, undo, redo, switch, fork, compact, import, gc, delete
  scope      INTEGER NOT NULL DEFAULT 0 CHECK (scope BETWEEN 0 AND 3), -- none, code, conversation, both
  turn       INTEGER NOT NULL DEFAULT -1,
  state      INTEGER NOT NULL CHECK (state IN (1, 2, 3)), -- applying, applied, rolled_back
  of_id      INTEGER REFERENCES operation (id),
  undone_by  INTEGER REFERENCES operation (id),
  head_from  INTEGER NOT NULL REFERENCES node (id),
  head_to    INTEGER REFERENCES node (id),
  written    INTEGER NOT NULL DEFAULT 0,
  deleted    INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  CHECK ((kind IN (2, 3)) = (of_id IS NOT NULL))
) STRICT;

CREATE INDEX operation_session ON operation (session_id, id);
CREATE INDEX operation_applying ON operation (id) WHERE state = 1;

CREATE TABLE operation_path (
  operation_id INTEGER NOT NULL REFERENCES operation (id),
  path_id      INTEGER NOT NULL REFERENCES path (id),
  left_alone   INTEGER NOT NULL CHECK (left_alone IN (0, 1)),
  from_kind    INTEGER NOT NULL CHECK (from_kind BETWEEN 1 AND 5),
  from_mode    INTEGER NOT NULL CHECK (from_mode BETWEEN 0 AND 511),
  from_blob    INTEGER REFERENCES blob (id),
  to_kind      INTEGER NOT NULL CHECK (to_kind BETWEEN 1 AND 5),
  to_mode      INTEGER NOT NULL CHECK (to_mode BETWEEN 0 AND 511),
  to_blob      INTEGER REFERENCES blob (id),
  PRIMARY KEY (operation_id, path_id),
  CHECK ((from_blob IS NOT NULL) = (from_kind IN (2, 3))),
  CHECK ((to_blob IS NOT NULL) = (to_kind IN (2, 3)))
) STRICT, WITHOUT ROWID;

CREATE INDEX operation_path_path ON operation_path (path_id);
CREATE INDEX operation_path_from ON operation_path (from_blob) WHERE from_blob IS NOT NULL;
CREATE INDEX operation_path_to ON operation_path (to_blob) WHERE to_blob IS NOT NULL;

-- Each session's present line, as ranges: the nodes of segment up to depth.
CREATE VIEW line AS
WITH RECURSIVE part (session_id, segment, depth) AS (
  SELECT s.id, n.segment, n.depth
  FROM session s
  JOIN node n ON n.id = s.head_id
  WHERE s.deleted_ms IS NULL
  UNION ALL
  SELECT part.session_id, p.segment, p.depth
  FROM part
  JOIN node f ON f.id = part.segment
  JOIN node p ON p.id = f.parent_id
  WHERE f.kind <> 1
)
SELECT session_id, segment, depth FROM part;

CREATE VIEW sessions AS
SELECT s.sid AS session,
       s.name AS name,
       s.source AS source,
       s.source_id AS source_id,
       p.sid AS parent,
       s.fork_turn AS fork_turn,
       h.turn + 1 AS turns,
       h.msg_start + h.msg_count AS messages,
       s.created_ms AS created_ms,
       s.updated_ms AS updated_ms,
       s.id IS (SELECT current_id FROM workspace) AS is_current
FROM session s
JOIN node h ON h.id = s.head_id
LEFT JOIN session p ON p.id = s.parent_id
WHERE s.deleted_ms IS NULL;

CREATE VIEW turns AS
WITH ln AS MATERIALIZED (SELECT session_id, segment, depth FROM line),
file_count AS MATERIALIZED (
  SELECT ln.session_id AS session_id, m.turn AS turn, count(DISTINCT c.path_id) AS files
  FROM ln
  JOIN node m ON m.segment = ln.segment AND m.depth <= ln.depth
  JOIN change c ON c.segment = m.segment AND c.depth = m.depth
  WHERE c.source IN (1, 2, 6)
    AND (c.before_kind <> c.after_kind OR c.before_mode <> c.after_mode OR c.before_blob IS NOT c.after_blob)
  GROUP BY ln.session_id, m.turn
),
gap_count AS MATERIALIZED (
  SELECT ln.session_id AS session_id, m.turn AS turn, count(*) AS gaps
  FROM ln
  JOIN node m ON m.segment = ln.segment AND m.depth <= ln.depth
  JOIN gap g ON g.node_id = m.id
  GROUP BY ln.session_id, m.turn
)
SELECT s.sid AS session,
       n.turn AS turn,
       CASE t.status WHEN 1 THEN 'open' WHEN 2 THEN 'done' WHEN 3 THEN 'interrupted' ELSE 'failed' END AS status,
       t.prompt AS prompt,
       n.msg_start AS msg_index,
       n.msg_count AS messages,
       coalesce(f.files, 0) AS files,
       coalesce(g.gaps, 0) AS gaps,
       t.started_ms AS started_ms,
       t.ended_ms AS ended_ms
FROM ln
JOIN session s ON s.id = ln.session_id
JOIN node n ON n.segment = ln.segment AND n.depth <= ln.depth AND n.kind = 2
JOIN turn t ON t.node_id = n.id
LEFT JOIN file_count f ON f.session_id = ln.session_id AND f.turn = n.turn
LEFT JOIN gap_count g ON g.session_id = ln.session_id AND g.turn = n.turn;

CREATE VIEW messages AS
SELECT s.sid AS session,
       n.msg_start + (m.id & 4294967295) AS idx,
       n.turn AS turn,
       m.role AS role,
       CASE WHEN json_valid(m.json) THEN json_extract(m.json, '$.content') END AS content,
       m.json AS json,
       nullif(lower(hex(b.hash)), '') AS blob
FROM line ln
JOIN session s ON s.id = ln.session_id
JOIN node n ON n.segment = ln.segment AND n.depth <= ln.depth AND n.msg_count > 0
JOIN message m ON m.id >= n.id << 32 AND m.id < (n.id + 1) << 32
LEFT JOIN blob b ON b.id = m.blob_id;

CREATE VIEW changes AS
SELECT s.sid AS session,
       n.turn AS turn,
       n.id AS node,
       CASE n.kind WHEN 1 THEN 'root' WHEN 2 THEN 'turn' WHEN 3 THEN 'append' WHEN 4 THEN 'restore' ELSE 'carry' END AS kind,
       c.seq AS seq,
       CAST(p.path AS TEXT) AS path,
       CASE c.source WHEN 1 THEN 'tool' WHEN 2 THEN 'shell' WHEN 3 THEN 'external'
                     WHEN 4 THEN 'restore' WHEN 5 THEN 'carry' ELSE 'import' END AS source,
       CASE c.origin WHEN 1 THEN 'agent' ELSE 'external' END AS origin,
       CASE c.before_kind WHEN 1 THEN 'absent' WHEN 2 THEN 'file' WHEN 3 THEN 'symlink'
                          WHEN 4 THEN 'dir' ELSE 'uncaptured' END AS before_kind,
       c.before_mode AS before_mode,
       nullif(lower(hex(b.hash)), '') AS before_blob,
       b.size AS before_size,
       CASE c.after_kind WHEN 1 THEN 'absent' WHEN 2 THEN 'file' WHEN 3 THEN 'symlink'
                         WHEN 4 THEN 'dir' ELSE 'uncaptured' END AS after_kind,
       c.after_mode AS after_mode,
       nullif(lower(hex(a.hash)), '') AS after_blob,
       a.size AS after_size
FROM line ln
JOIN session s ON s.id = ln.session_id
JOIN node n ON n.segment = ln.segment AND n.depth <= ln.depth
JOIN change c ON c.segment = n.segment AND c.depth = n.depth
JOIN path p ON p.id = c.path_id
LEFT JOIN blob b ON b.id = c.before_blob
LEFT JOIN blob a ON a.id = c.after_blob;

CREATE VIEW operations AS
SELECT o.id AS operation,
       s.sid AS session,
       CASE o.kind WHEN 1 THEN 'rewind' WHEN 2 THEN 'undo' WHEN 3 THEN 'redo' WHEN 4 THEN 'switch' WHEN 5 THEN 'fork'
                   WHEN 6 THEN 'compact' WHEN 7 THEN 'import' WHEN 8 THEN 'gc' ELSE 'delete' END AS kind,
       CASE o.scope WHEN 1 THEN 'code' WHEN 2 THEN 'conversation' WHEN 3 THEN 'both' END AS scope,
       CASE WHEN o.turn >= 0 THEN o.turn END AS turn,
       CASE o.state WHEN 1 THEN 'applying' WHEN 2 THEN 'applied' ELSE 'rolled_back' END AS state,
       o.written AS written,
       o.deleted AS deleted,
       o.created_ms AS created_ms,
       o.undone_by AS undone_by
FROM operation o
JOIN session s ON s.id = o.session_id;

CREATE VIEW forks AS
SELECT s.sid AS session,
       p.sid AS parent,
       s.fork_turn AS turn,
       s.fork_msg AS msg_index,
       s.created_ms AS created_ms
FROM session s
JOIN session p ON p.id = s.parent_id
WHERE s.deleted_ms IS NULL;

CREATE VIEW blobs AS
SELECT lower(hex(b.hash)) AS blob,
       b.size AS size,
       length(b.data) AS stored_size,
       CASE b.encoding WHEN 0 THEN 'raw' WHEN 1 THEN 'zstd' WHEN 2 THEN 'zstd-delta' ELSE 'chunked' END AS encoding,
       nullif(lower(hex(base.hash)), '') AS base
FROM blob b
LEFT JOIN blob base ON base.id = b.base_id;

CREATE VIEW gaps AS
SELECT s.sid AS session,
       n.turn AS turn,
       g.reason AS reason,
       CASE WHEN length(g.path) > 0 THEN CAST(g.path AS TEXT) END AS path,
       g.detail AS detail
FROM line ln
JOIN session s ON s.id = ln.session_id
JOIN node n ON n.segment = ln.segment AND n.depth <= ln.depth
JOIN gap g ON g.node_id = n.id;
