-- What is believed of the server's clock: one row, written once a minute by whoever lives, and whenever that changes. Programs of the version
-- before go by the server's clock alone, beside those that know of this.
CREATE TABLE semel_clock (
    id         smallint PRIMARY KEY CHECK (id = 1),
    -- The newest trusted time.
    trusted_at bigint NOT NULL,
    -- By how many milliseconds the server's clock is ahead of the trusted time. Above zero: a clock hold is open, nothing is purged or
    -- dropped. Below zero: the clock was set back and is not followed.
    behind     bigint NOT NULL,
    -- A random number for each instance.
    written_by bigint NOT NULL
) WITH (fillfactor = 50);

-- For people. A moment after the year 9999 is infinity: a window that never ends. By the trusted time.
CREATE OR REPLACE VIEW semel_operations AS
SELECT
    operation_id, tenant, operation, key,
    CASE WHEN expires_at <= date_part('epoch', clock_timestamp()) * 1000
                            - coalesce((SELECT behind FROM semel_clock WHERE id = 1), 0)
         THEN 'expired' ELSE state END AS state,
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
