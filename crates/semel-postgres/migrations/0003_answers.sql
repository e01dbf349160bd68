-- Answers in a table of their own, in the order in which their time is over. A record is not touched when its answer goes, and that its
-- window is over is not written down at all.

-- First of all: what somebody completes meanwhile would be written to columns that are about to go.
LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE;

-- Programs of the versions before cannot store an outcome here any more. With this column under another name they cannot reserve either,
-- so that they execute nothing.
ALTER TABLE semel_records RENAME COLUMN origin TO taken_by;

CREATE TABLE semel_answers (
    -- When it may be dropped: body_expires_at of its record, or expires_at.
    ends_at      bigint NOT NULL,
    operation_id uuid NOT NULL,
    -- [["content-type", "application/json"], …] in order; a value that is not UTF-8 is an array of its bytes.
    headers      text COLLATE "C" NOT NULL,
    body         bytea,
    PRIMARY KEY (ends_at, operation_id)
) WITH (
    -- As with the records: nothing is cleaned or counted while there is next to nothing, and then without long pauses.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = 5000,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_vacuum_cost_limit = 2000
);

INSERT INTO semel_answers (ends_at, operation_id, headers, body)
SELECT coalesce(body_expires_at, expires_at), operation_id, response_headers, body FROM semel_records
WHERE body IS NOT NULL OR (response_headers <> '[]' AND body_kind <> 'dropped');

-- When a body was dropped before its window ended was forgotten with it; that it was is told by its time from now on.
UPDATE semel_records SET body_expires_at = completed_at WHERE body_kind = 'dropped' AND body_expires_at IS NULL;

ALTER TABLE semel_records DROP COLUMN response_headers, DROP COLUMN body;

-- What waited for the end of its body or its window waits for its removal now, or, with a checkpoint, for the end of its window.
UPDATE semel_records
SET due_kind = CASE WHEN checkpoint IS NOT NULL THEN 'window' WHEN purge_at IS NOT NULL THEN 'purge' END,
    due_at = CASE WHEN checkpoint IS NOT NULL THEN expires_at ELSE purge_at END
WHERE due_kind IN ('body', 'window');

-- For people. A moment after the year 9999 is infinity: a window that never ends. In the place of the one before, which others may refer to.
CREATE OR REPLACE VIEW semel_operations AS
SELECT
    operation_id, tenant, operation, key,
    CASE WHEN expires_at <= date_part('epoch', clock_timestamp()) * 1000 THEN 'expired' ELSE state END AS state,
    attempt, version, last_error, dead_letter,
    CASE WHEN created_at < 253402300800000 THEN to_timestamp(greatest(created_at, -62135596800000) / 1000.0)
         WHEN created_at IS NOT NULL THEN 'infinity' END AS created,
    CASE WHEN completed_at < 253402300800000 THEN to_timestamp(greatest(completed_at, -62135596800000) / 1000.0)
         WHEN completed_at IS NOT NULL THEN 'infinity' END AS completed,
    CASE WHEN expires_at < 253402300800000 THEN to_timestamp(greatest(expires_at, -62135596800000) / 1000.0)
         WHEN expires_at IS NOT NULL THEN 'infinity' END AS expires,
    due_kind,
    CASE WHEN due_at < 253402300800000 THEN to_timestamp(greatest(due_at, -62135596800000) / 1000.0)
         WHEN due_at IS NOT NULL THEN 'infinity' END AS due,
    response_status, resource_type, resource_id
FROM semel_records;
