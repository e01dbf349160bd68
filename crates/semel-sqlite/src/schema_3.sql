-- Answers in a table of their own, in the order in which their time is over: what is over is the beginning of it. A record is not touched
-- when its answer goes, and that its window is over is not written down at all.

CREATE TABLE semel_answers (
    -- When it may be dropped: body_expires_at of its record, or expires_at.
    ends_at      INTEGER NOT NULL,
    operation_id BLOB NOT NULL,
    -- [["content-type", "application/json"], …]
    headers      TEXT NOT NULL,
    body         BLOB,
    PRIMARY KEY (ends_at, operation_id)
) STRICT, WITHOUT ROWID;

INSERT INTO semel_answers (ends_at, operation_id, headers, body)
SELECT coalesce(body_expires_at, expires_at), operation_id, response_headers, body FROM semel_records
WHERE body IS NOT NULL OR (response_headers <> '[]' AND body_kind <> 'dropped');

-- When a body was dropped before its window ended was forgotten with it; that it was is told by its time from now on.
UPDATE semel_records SET body_expires_at = completed_at WHERE body_kind = 'dropped' AND body_expires_at IS NULL;

ALTER TABLE semel_records DROP COLUMN response_headers;
ALTER TABLE semel_records DROP COLUMN body;

-- What waited for the end of its body or its window waits for its removal now, or, with a checkpoint, for the end of its window.
UPDATE semel_records SET due_kind = 'window', due_at = expires_at
WHERE due_kind = 'body' AND checkpoint IS NOT NULL;
UPDATE semel_records SET due_kind = CASE WHEN purge_at IS NULL THEN NULL ELSE 'purge' END, due_at = purge_at
WHERE due_kind IN ('body', 'window') AND checkpoint IS NULL;

-- For people with the sqlite3 shell. Dropped no sooner: a view of somebody's that refers to it would be in the way of what is done above.
DROP VIEW semel_operations;
CREATE VIEW semel_operations AS
SELECT
    lower(substr(hex(operation_id), 1, 8) || '-' || substr(hex(operation_id), 9, 4) || '-' || substr(hex(operation_id), 13, 4)
        || '-' || substr(hex(operation_id), 17, 4) || '-' || substr(hex(operation_id), 21)) AS operation_id,
    tenant, operation, key,
    CASE WHEN expires_at <= (julianday('now') - 2440587.5) * 86400000 THEN 'expired' ELSE state END AS state,
    attempt, version, last_error, dead_letter,
    datetime(created_at / 1000, 'unixepoch') AS created,
    datetime(completed_at / 1000, 'unixepoch') AS completed,
    datetime(expires_at / 1000, 'unixepoch') AS expires,
    due_kind, datetime(due_at / 1000, 'unixepoch') AS due,
    response_status, resource_type, resource_id
FROM semel_records;
