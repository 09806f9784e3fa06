-- What somebody else did, which a plan asks for of every path, and which is rare.
CREATE INDEX change_foreign ON change (segment, path_id, depth) WHERE origin = 2;

-- The stat index: what each file looked like at the last scan, as parts of which a later one
-- counts more than an earlier one. It is a cache, and refers to blobs by their hashes.
CREATE TABLE scan_part (
  id      INTEGER PRIMARY KEY,
  path_id INTEGER NOT NULL, -- the newest path that the scan knew of
  data    BLOB    NOT NULL
) STRICT;
