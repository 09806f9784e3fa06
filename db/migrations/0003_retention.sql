-- What collection drops and keeps.

-- Contents whose bytes were dropped. Their rows stay, with hash and size and no data, so that
-- what refers to them is known to have been there. Storing such a content again revives its row.
CREATE TABLE blob_expired (
  blob_id    INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
  reason     INTEGER NOT NULL CHECK (reason IN (1, 2)), -- retention, purged
  expired_ms INTEGER NOT NULL
) STRICT;

-- A name for a turn of a session, which collection then keeps.
CREATE TABLE pin (
  name       TEXT    PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 64),
  session_id INTEGER NOT NULL REFERENCES session (id),
  node_id    INTEGER NOT NULL REFERENCES node (id), -- the turn
  created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX pin_node ON pin (node_id);

-- When collection by itself comes next.
CREATE TABLE collection (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  due_ms INTEGER NOT NULL
) STRICT;

-- A node that is removed is looked for in the log.
CREATE INDEX operation_head_from ON operation (head_from);
CREATE INDEX operation_head_to ON operation (head_to) WHERE head_to IS NOT NULL;

DROP VIEW blobs;
CREATE VIEW blobs AS
SELECT lower(hex(b.hash)) AS blob,
       b.size AS size,
       length(b.data) AS stored_size,
       CASE WHEN e.reason = 1 THEN 'expired'
            WHEN e.reason = 2 THEN 'purged'
            ELSE CASE b.encoding WHEN 0 THEN 'raw' WHEN 1 THEN 'zstd' WHEN 2 THEN 'zstd-delta' ELSE 'chunked' END
       END AS encoding,
       nullif(lower(hex(base.hash)), '') AS base
FROM blob b
LEFT JOIN blob base ON base.id = b.base_id
LEFT JOIN blob_expired e ON e.blob_id = b.id;

CREATE VIEW pins AS
SELECT p.name AS name,
       s.sid AS session,
       n.turn AS turn,
       p.created_ms AS created_ms
FROM pin p
JOIN session s ON s.id = p.session_id
JOIN node n ON n.id = p.node_id;
