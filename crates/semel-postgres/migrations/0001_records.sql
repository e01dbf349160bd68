-- Times are milliseconds since 1970 (UTC); the view semel_operations spells them out for people.
--
-- Text is kept byte by byte: COLLATE "C" knows no language, and an index over it survives an upgrade of the operating
-- system's locales, which silently corrupts indexes over others. Text cannot hold the character NUL here, so it is
-- written as U+0001 '0', and U+0001 itself as U+0001 '1'.

CREATE TABLE semel_meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

-- Recipes, and the secret of keyed hashes.
CREATE TABLE semel_remembered (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- Columns of fixed width come first, so that no space is lost to alignment.
CREATE TABLE semel_records (
    -- The place in a listing: newest first. Never reused, never changed.
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- 16 bytes that stand for (tenant, operation, key): 4 of the client key's SHA-256, 12 of the SHA-256 of all three.
    -- As a uuid: of fixed width, a third narrower in an index than as bytea.
    key_hash           uuid NOT NULL,
    operation_id       uuid NOT NULL,
    recipe             uuid NOT NULL,
    owner              uuid NOT NULL,
    version            bigint NOT NULL,
    attempt            bigint NOT NULL,
    reconcile_attempts bigint NOT NULL,
    created_at         bigint NOT NULL,
    lease_until        bigint NOT NULL,
    completed_at       bigint,
    body_expires_at    bigint,
    expires_at         bigint,
    purge_at           bigint,
    reconcile_at       bigint,
    due_at             bigint,
    response_status    integer,
    -- The CRC-32 of the answer, the five other columns of it. An answer that does not add up to it is damaged.
    response_sum       integer,
    dead_letter        boolean NOT NULL,
    fingerprint        bytea NOT NULL,
    state              text COLLATE "C" NOT NULL,
    origin             text COLLATE "C" NOT NULL,
    due_kind           text COLLATE "C",
    body_kind          text COLLATE "C",
    tenant             text COLLATE "C" NOT NULL,
    operation          text COLLATE "C" NOT NULL,
    key                text COLLATE "C" NOT NULL,
    recovery_point     text COLLATE "C",
    last_error         text COLLATE "C",
    resource_type      text COLLATE "C",
    resource_id        text COLLATE "C",
    response_schema    text COLLATE "C",
    -- [["content-type", "application/json"], …] in order; a value that is not UTF-8 is an array of its bytes.
    response_headers   text COLLATE "C",
    checkpoint         bytea,
    body               bytea
) WITH (
    -- A record is written twice within seconds, as reserved and as completed. With room left on its page the second
    -- version goes beside the first: one page to write instead of two, and a WAL record that holds only what differs.
    fillfactor = 60,
    -- Each operation leaves a dead row version behind. At the default of 20 % a table of ten million would gather two
    -- million of them, in every index too, before anybody cleans up.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02,
    -- Not before there is something to clean, and not while the table is so small that its statistics would make a
    -- scan of the whole of it look cheap: a plan made then outlives the small table.
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = 5000,
    autovacuum_analyze_threshold = 5000,
    -- Vacuum keeps up with the writers: the default pauses of 2 ms are meant for tables that are rarely written.
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_vacuum_cost_limit = 2000
);

-- The one unique index over tenant, operation and key, by their hash: what decides who was first.
CREATE UNIQUE INDEX semel_records_key ON semel_records (key_hash);
CREATE UNIQUE INDEX semel_records_operation_id ON semel_records (operation_id);
-- Whatever a record waits for, in time order.
CREATE INDEX semel_records_due ON semel_records (due_kind, due_at, operation_id) WHERE due_kind IS NOT NULL;
-- Listings. Every index here is one more to write for each reservation and each completion, so there are few: the states
-- that are rare, dead letters, and a tenant's records. What is in progress is found as what waits for its lease; of
-- completed records and tombstones the newest pages are full anyway.
CREATE INDEX semel_records_tenant ON semel_records (tenant, id);
CREATE INDEX semel_records_rare ON semel_records (state, id)
    WHERE state IN ('failed_replayable', 'failed_retryable', 'unknown');
CREATE INDEX semel_records_dead_letter ON semel_records (id) WHERE dead_letter;

-- Everything but the plain happy path, written in the same commit as the change that it tells of.
CREATE TABLE semel_history (
    operation_id uuid NOT NULL,
    sequence     bigint GENERATED ALWAYS AS IDENTITY,
    at           bigint NOT NULL,
    version      bigint NOT NULL,
    attempt      bigint NOT NULL,
    happening    text COLLATE "C" NOT NULL,
    actor        text COLLATE "C" NOT NULL,
    note         text COLLATE "C",
    PRIMARY KEY (operation_id, sequence)
);

-- For people. A moment after the year 9999 is infinity: a window that never ends.
CREATE VIEW semel_operations AS
SELECT
    operation_id, tenant, operation, key, state, attempt, version, last_error, dead_letter,
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
