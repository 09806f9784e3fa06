-- What somebody else did, which a plan asks for of every path, and which is rare.
CREATE INDEX change_foreign ON change (segment, path_id, depth) WHERE origin = 2;

-- The stat index: what each file looked like at the last scan, as parts of which a later one
-- counts more than an earlier one. It is a cache, and refers to blobs by their hashes.
CREATE TABLE scan_part (
  id      INTEGER PRIMARY KEY,
  path_id INTEGER NOT NULL, -- the newest path that the scan knew of
  data    BLOB    NOT NULL
) STRICT;

-- A command that has ended, but whose effects no scan has reached yet.
ALTER TABLE call ADD COLUMN ended INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1));

-- A plan asks for what commands of several sessions may have written at once.
CREATE INDEX gap_overlap ON gap (node_id, path) WHERE reason = 'overlapping_exec';
