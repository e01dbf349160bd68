//! The statements, each one a whole call: one round trip and one commit for a batch.
//!
//! - **Time** is taken once per statement (`moment`). Moments that count from it come as durations, with their bit set in
//!   `relative`: bit 0 is `created_at`, bit 1 `lease_until`, and so on in the order of [`MOMENTS`](crate::draft::MOMENTS).
//! - **Durability is looked at where it counts**: behind a pooler in transaction mode nobody knows the session's settings, so
//!   the statement itself writes nothing where `synchronous_commit` is off.
//! - **Plans for few rows.** `ord % 1 = 0` holds always, but the planner takes an equality that it knows nothing of for one in
//!   two hundred and plans for a handful of rows: nested loops over the indexes. Without it, a plan that was made and kept
//!   while the table was small would scan the whole of it at every call until the next ANALYZE.
//! - **Nobody waits for an application's transaction.** Such a transaction holds the key's advisory lock: `create` tries it and
//!   leaves out what it does not get; `swap` and `remove` skip rows that are locked. Among themselves, creates wait for each
//!   other in the order of key hashes, and for swaps and removals, which wait for nobody. So there is no deadlock.

/// The columns of a record but for those that never change.
macro_rules! columns {
    () => {
        "fingerprint, recipe, state, version, attempt, owner, origin, created_at, lease_until, completed_at, \
         body_expires_at, expires_at, purge_at, reconcile_at, due_at, due_kind, reconcile_attempts, dead_letter, \
         last_error, recovery_point, checkpoint, resource_type, resource_id, response_status, response_headers, \
         response_schema, body_kind, body"
    };
}

/// What goes into [`columns!`]: from the row `a` that was asked for, at the moment `m`.
macro_rules! values {
    () => {
        "a.fingerprint, a.recipe, a.state, a.version, a.attempt, a.owner, a.origin, \
         a.created_at + m.now * (a.relative & 1), \
         a.lease_until + m.now * (a.relative >> 1 & 1), \
         a.completed_at + m.now * (a.relative >> 2 & 1), \
         a.body_expires_at + m.now * (a.relative >> 3 & 1), \
         a.expires_at + m.now * (a.relative >> 4 & 1), \
         a.purge_at + m.now * (a.relative >> 5 & 1), \
         a.reconcile_at + m.now * (a.relative >> 6 & 1), \
         a.due_at + m.now * (a.relative >> 7 & 1), \
         a.due_kind, a.reconcile_attempts, a.dead_letter, a.last_error, a.recovery_point, a.checkpoint, \
         a.resource_type, a.resource_id, a.response_status, a.response_headers, a.response_schema, a.body_kind, a.body"
    };
}

/// The arrays that a batch of records comes in, parameters 3 to 31.
macro_rules! arrays {
    () => {
        "$3::bytea[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[], $8::uuid[], $9::text[], $10::bigint[], \
         $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], \
         $18::text[], $19::bigint[], $20::boolean[], $21::text[], $22::text[], $23::bytea[], $24::text[], $25::text[], \
         $26::integer[], $27::text[], $28::text[], $29::text[], $30::bytea[], $31::bigint[]"
    };
}

/// What a record is read from, but for the body, which comes last or is left out. The first is NULL where there is no record.
macro_rules! read_columns {
    () => {
        "r.operation_id, r.tenant, r.operation, r.key, r.fingerprint, r.recipe, r.state, r.version, r.attempt, r.owner, \
         r.origin, r.created_at, r.lease_until, r.completed_at, r.body_expires_at, r.expires_at, r.purge_at, \
         r.reconcile_at, r.reconcile_attempts, r.dead_letter, r.last_error, r.recovery_point, r.checkpoint, \
         r.resource_type, r.resource_id, r.response_status, r.response_headers, r.response_schema, r.body_kind, r.id"
    };
}
pub(crate) use read_columns;

/// The server's time in milliseconds, never up to a minute behind the parameter 1.
macro_rules! now {
    () => {
        "CASE WHEN $1::bigint - clock.ms BETWEEN 0 AND 60000 THEN $1::bigint ELSE clock.ms END AS now"
    };
}

macro_rules! clock {
    () => {
        "(SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint AS ms) AS clock"
    };
}

/// The moment of a writing statement; parameter 2 says whether commits may be lossy.
macro_rules! moment {
    () => {
        concat!(
            "moment AS MATERIALIZED (SELECT ",
            now!(),
            ", $2::boolean OR current_setting('synchronous_commit') <> 'off' AS durable FROM ",
            clock!(),
            ")"
        )
    };
}

/// The moment of a reading one. A standby is behind: nothing may be decided on what it knows.
macro_rules! reading_moment {
    () => {
        concat!(
            "moment AS MATERIALIZED (SELECT ",
            now!(),
            ", pg_is_in_recovery() AS standby FROM ",
            clock!(),
            ")"
        )
    };
}

/// One item as its arrays hold it: without the set-returning functions of a batch, which cost a lone call more than its row does.
macro_rules! only {
    () => {
        "SELECT ($3::bytea[])[1] AS fingerprint, ($4::uuid[])[1] AS recipe, ($5::text[])[1] AS state, \
         ($6::bigint[])[1] AS version, ($7::bigint[])[1] AS attempt, ($8::uuid[])[1] AS owner, ($9::text[])[1] AS origin, \
         ($10::bigint[])[1] AS created_at, ($11::bigint[])[1] AS lease_until, ($12::bigint[])[1] AS completed_at, \
         ($13::bigint[])[1] AS body_expires_at, ($14::bigint[])[1] AS expires_at, ($15::bigint[])[1] AS purge_at, \
         ($16::bigint[])[1] AS reconcile_at, ($17::bigint[])[1] AS due_at, ($18::text[])[1] AS due_kind, \
         ($19::bigint[])[1] AS reconcile_attempts, ($20::boolean[])[1] AS dead_letter, ($21::text[])[1] AS last_error, \
         ($22::text[])[1] AS recovery_point, ($23::bytea[])[1] AS checkpoint, ($24::text[])[1] AS resource_type, \
         ($25::text[])[1] AS resource_id, ($26::integer[])[1] AS response_status, ($27::text[])[1] AS response_headers, \
         ($28::text[])[1] AS response_schema, ($29::text[])[1] AS body_kind, ($30::bytea[])[1] AS body, \
         ($31::bigint[])[1] AS relative"
    };
}

/// The records of a batch of creates.
macro_rules! creates {
    () => {
        concat!(
            "unnest(",
            arrays!(),
            ", $32::uuid[], $33::bigint[], $34::uuid[], $35::text[], $36::text[], $37::text[])
    AS a (",
            columns!(),
            ", relative, key_hash, lock, operation_id, tenant, operation, key)"
        )
    };
}

macro_rules! only_create {
    () => {
        concat!(
            "(",
            only!(),
            ", ($32::uuid[])[1] AS key_hash, ($33::bigint[])[1] AS lock, ($34::uuid[])[1] AS operation_id,
      ($35::text[])[1] AS tenant, ($36::text[])[1] AS operation, ($37::text[])[1] AS key) AS a"
        )
    };
}

// No index is named after ON CONFLICT: a draft that is sent again while its first sending is still being carried out can meet
// itself in the index over operation ids before it does in the one over keys, and would be an error there.
macro_rules! create {
    ($lock:literal, $from:expr) => {
        concat!(
            "WITH ",
            moment!(),
            ", asked AS MATERIALIZED (
  SELECT a.*, ",
            $lock,
            "(a.lock) AS free FROM moment m, ",
            $from,
            "
  WHERE m.durable
), made AS (
  INSERT INTO semel_records (key_hash, operation_id, tenant, operation, key, ",
            columns!(),
            ")
  SELECT a.key_hash, a.operation_id, a.tenant, a.operation, a.key, ",
            values!(),
            "
  FROM asked a, moment m WHERE a.free ORDER BY a.key_hash
  ON CONFLICT DO NOTHING RETURNING operation_id
)
SELECT m.now, m.durable, ARRAY(SELECT operation_id FROM made), ARRAY(SELECT operation_id FROM asked WHERE NOT free)
FROM moment m"
        )
    };
}

/// A batch of creates. Shared locks: two batches are not in each other's way, an application's transaction is.
pub(crate) const CREATE: &str = create!("pg_try_advisory_xact_lock_shared", creates!());
pub(crate) const CREATE_ONE: &str = create!("pg_try_advisory_xact_lock_shared", only_create!());

/// A reservation inside an application's transaction: the lock is its own until it ends.
pub(crate) const RESERVE: &str = create!("pg_try_advisory_xact_lock", only_create!());

/// The swaps of a batch.
macro_rules! swaps {
    () => {
        concat!(
            "unnest(",
            arrays!(),
            ", $32::uuid[], $33::bigint[], $34::uuid[], $35::text[], $36::text[], $37::bigint[], $38::text[])
    WITH ORDINALITY AS a (",
            columns!(),
            ", relative, key_hash, expected, operation_id, happening, actor, told_attempt, note, ord)"
        )
    };
}

macro_rules! only_swap {
    () => {
        concat!(
            "(",
            only!(),
            ", ($32::uuid[])[1] AS key_hash, ($33::bigint[])[1] AS expected, ($34::uuid[])[1] AS operation_id,
      ($35::text[])[1] AS happening, ($36::text[])[1] AS actor, ($37::bigint[])[1] AS told_attempt,
      ($38::text[])[1] AS note, 1::bigint AS ord) AS a"
        )
    };
}

macro_rules! swap {
    ($from:expr) => {
        concat!(
            "WITH ",
            moment!(),
            ", held AS MATERIALIZED (
  SELECT a.*, r.ctid AS place FROM moment m, ",
            $from,
            "
  JOIN semel_records r ON r.operation_id = a.operation_id
  WHERE m.durable AND a.ord % 1 = 0 AND r.version = a.expected AND r.key_hash = a.key_hash
  FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE semel_records r SET (",
            columns!(),
            ") = ROW (",
            values!(),
            ")
  FROM held a, moment m WHERE r.ctid = a.place RETURNING a.ord
), told AS (
  INSERT INTO semel_history (operation_id, at, version, happening, actor, attempt, note)
  SELECT a.operation_id, m.now, a.version, a.happening, a.actor, a.told_attempt, a.note
  FROM held a, moment m WHERE a.happening IS NOT NULL AND a.ord = ANY (ARRAY(SELECT ord FROM done))
)
SELECT m.now, m.durable, ARRAY(SELECT ord FROM done) FROM moment m"
        )
    };
}

pub(crate) const SWAP: &str = swap!(swaps!());
pub(crate) const SWAP_ONE: &str = swap!(only_swap!());

pub(crate) const REMOVE: &str = concat!(
    "WITH ",
    moment!(),
    ", held AS MATERIALIZED (
  SELECT a.ord, r.ctid AS place FROM moment m, unnest($3::uuid[], $4::bigint[], $5::uuid[])
    WITH ORDINALITY AS a (key_hash, expected, operation_id, ord)
  JOIN semel_records r ON r.operation_id = a.operation_id
  WHERE m.durable AND a.ord % 1 = 0 AND r.version = a.expected AND r.key_hash = a.key_hash
  FOR UPDATE OF r SKIP LOCKED
), done AS (
  DELETE FROM semel_records r USING held a WHERE r.ctid = a.place RETURNING r.operation_id, a.ord
), untold AS (
  DELETE FROM semel_history h USING done d WHERE h.operation_id = d.operation_id
)
SELECT m.now, m.durable, ARRAY(SELECT ord FROM done) FROM moment m"
);

macro_rules! read_by {
    ($column:literal) => {
        concat!(
            "WITH ",
            reading_moment!(),
            ", asked AS MATERIALIZED (
  SELECT a.name FROM unnest($2::uuid[]) WITH ORDINALITY AS a (name, ord) WHERE a.ord % 1 = 0
)
SELECT ",
            read_columns!(),
            ", m.now, m.standby, r.body
FROM moment m LEFT JOIN (asked a JOIN semel_records r ON r.",
            $column,
            " = a.name) ON true"
        )
    };
}

pub(crate) const READ: &str = read_by!("key_hash");
pub(crate) const FIND: &str = read_by!("operation_id");

/// The record of an operation for an act inside an application's transaction: its row is locked first, then its key's
/// advisory lock taken, for a `create` of the same key would wait for a row that an open transaction has changed. No deadlock
/// can come of the order: whoever holds the advisory lock, shared, is a `create`, which passes over a row that is only locked.
pub(crate) const HOLD: &str = concat!(
    "WITH ",
    moment!(),
    ", held AS MATERIALIZED (SELECT * FROM semel_records WHERE operation_id = $3::uuid FOR UPDATE)
SELECT ",
    read_columns!(),
    ", m.now, m.durable, r.body,
  pg_advisory_xact_lock(('x' || right(replace(r.key_hash::text, '-', ''), 16))::bit(64)::bigint)
FROM moment m LEFT JOIN held r ON true"
);

pub(crate) const HISTORY: &str = "SELECT at, version, happening, actor, attempt, note, pg_is_in_recovery()
FROM semel_history WHERE operation_id = $1 ORDER BY sequence";

macro_rules! due {
    ($after:literal, $limit:literal) => {
        concat!(
            "WITH ",
            reading_moment!(),
            "
SELECT ",
            read_columns!(),
            ", m.now, m.standby
FROM moment m LEFT JOIN LATERAL (
  SELECT * FROM semel_records d WHERE d.due_kind = $2 AND d.due_at <= m.now",
            $after,
            "
  ORDER BY d.due_at, d.operation_id LIMIT ",
            $limit,
            "
) r ON true ORDER BY r.due_at, r.operation_id"
        )
    };
}

pub(crate) const DUE: &str = due!("", "$3");
pub(crate) const DUE_AFTER: &str = due!(" AND (d.due_at, d.operation_id) > ($4::bigint, $5::uuid)", "$3");

pub(crate) const REMEMBER: &str =
    "INSERT INTO semel_remembered (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
pub(crate) const RECALL: &str = "SELECT value, pg_is_in_recovery() FROM semel_remembered WHERE name = $1";
