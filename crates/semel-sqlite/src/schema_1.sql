-- Times are milliseconds since 1970 (UTC), ids are 16 bytes (the view semel_operations spells them out).

CREATE TABLE semel_meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The highest time that was written to this file.
CREATE TABLE semel_clock (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    now INTEGER NOT NULL
) STRICT;
INSERT INTO semel_clock (id, now) VALUES (1, 0);

-- Recipes, and the secret of keyed hashes.
CREATE TABLE semel_remembered (
    name  TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- A table with a rowid: new rows go to its end, so that only the hash index is written at random places. The body is last:
-- reading a row without it does not touch its overflow pages.
CREATE TABLE semel_records (
    id                 INTEGER PRIMARY KEY,
    key_hash           BLOB NOT NULL,
    operation_id       BLOB NOT NULL,
    tenant             TEXT NOT NULL,
    operation          TEXT NOT NULL,
    key                TEXT NOT NULL,
    fingerprint        BLOB NOT NULL,
    recipe             BLOB NOT NULL,
    state              TEXT NOT NULL,
    version            INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    owner              BLOB NOT NULL,
    origin             TEXT NOT NULL,
    due_kind           TEXT,
    due_at             INTEGER,
    created_at         INTEGER NOT NULL,
    lease_until        INTEGER NOT NULL,
    completed_at       INTEGER,
    body_expires_at    INTEGER,
    expires_at         INTEGER,
    purge_at           INTEGER,
    reconcile_at       INTEGER,
    reconcile_attempts INTEGER NOT NULL,
    dead_letter        INTEGER NOT NULL,
    last_error         TEXT,
    recovery_point     TEXT,
    checkpoint         BLOB,
    resource_type      TEXT,
    resource_id        TEXT,
    response_status    INTEGER,
    response_headers   TEXT,
    response_schema    TEXT,
    body_kind          TEXT,
    -- The CRC-32 of the answer, the five other columns of it. An answer that does not add up to it is damaged.
    response_sum       INTEGER,
    body               BLOB
) STRICT;

CREATE UNIQUE INDEX semel_records_key ON semel_records (key_hash);
CREATE UNIQUE INDEX semel_records_operation_id ON semel_records (operation_id);
CREATE INDEX semel_records_due ON semel_records (due_kind, due_at, operation_id) WHERE due_kind IS NOT NULL;
-- Listings. Every index here is one more to write for each operation, so there are few: a tenant's records, the states that are
-- rare, and dead letters. What is in progress is found as what waits for its lease; of completed records and tombstones the newest
-- pages are full anyway. The rowid is the last column of every index: records come newest first without sorting.
CREATE INDEX semel_records_tenant ON semel_records (tenant);
-- Not `state IN (…)`: for a list of three SQLite makes a table at every write, to look into.
CREATE INDEX semel_records_rare ON semel_records (state)
    WHERE state = 'failed_replayable' OR state = 'failed_retryable' OR state = 'unknown';
CREATE INDEX semel_records_dead_letter ON semel_records (dead_letter) WHERE dead_letter = 1;

CREATE TABLE semel_history (
    operation_id BLOB NOT NULL,
    sequence     INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    happening    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    attempt      INTEGER NOT NULL,
    note         TEXT,
    PRIMARY KEY (operation_id, sequence)
) STRICT, WITHOUT ROWID;

-- For people with the sqlite3 shell.
CREATE VIEW semel_operations AS
SELECT
    lower(substr(hex(operation_id), 1, 8) || '-' || substr(hex(operation_id), 9, 4) || '-' || substr(hex(operation_id), 13, 4)
        || '-' || substr(hex(operation_id), 17, 4) || '-' || substr(hex(operation_id), 21)) AS operation_id,
    tenant, operation, key, state, attempt, version, last_error, dead_letter,
    datetime(created_at / 1000, 'unixepoch') AS created,
    datetime(completed_at / 1000, 'unixepoch') AS completed,
    datetime(expires_at / 1000, 'unixepoch') AS expires,
    due_kind, datetime(due_at / 1000, 'unixepoch') AS due,
    response_status, resource_type, resource_id
FROM semel_records;
