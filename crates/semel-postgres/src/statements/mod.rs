//! The statements, each one a whole call: one round trip and one commit for a batch.
//!
//! - **Time** is taken once per statement (`moment`), and is two: `now`, the earliest that it may be, and `latest`. Moments that count from one of
//!   them come as durations, with their bit set in `relative`: bit 0 is `created_at`, bit 1 `lease_until`, and so on in the order of
//!   [`MOMENTS`](crate::draft::MOMENTS). Windows count from the latest, everything else from the earliest.
//! - **Durability is looked at where it counts**: behind a pooler in transaction mode the session's settings are unknown, so
//!   the statement itself writes nothing where `synchronous_commit` is not `on` or above.
//! - **The happy path has statements of its own.** A reservation leaves most columns empty, and completions fill them alike; each
//!   parameter less is time saved on either side. Everything else uses the general statements.
//! - **Plans for few rows.** `ord % 1 = 0` holds always, but the planner takes an equality that it knows nothing of for one in
//!   two hundred and plans for a handful of rows: nested loops over the indexes. Without it, a plan that was made and kept
//!   while the table was small would scan the whole of it at every call until the next ANALYZE.
//! - **Nothing waits for an application's transaction.** Such a transaction holds the key's advisory lock: `create` tries it and
//!   leaves out what it does not get; `swap`, `remove`, `purge` and `drop_answers` skip rows that are locked. Among themselves, creates wait
//!   for each other in the order of key hashes, and for swaps and removals; a swap that rewrites an answer waits for one that is being
//!   dropped. Those wait for nothing. So there is no deadlock.

/// A statement in two forms: for a lone item, whose values are its parameters, and for a batch, with an array for each column.
pub(crate) struct Statement {
    pub(crate) one: &'static str,
    pub(crate) many: &'static str,
}

/// The columns of a record but for those that never change.
macro_rules! columns {
    () => {
        "fingerprint, recipe, state, version, attempt, owner, taken_by, created_at, lease_until, completed_at, \
         body_expires_at, expires_at, purge_at, reconcile_at, due_at, due_kind, reconcile_attempts, dead_letter, \
         last_error, recovery_point, checkpoint, resource_type, resource_id, response_status, response_schema, \
         body_kind, response_sum"
    };
}

/// A parameter of a statement for one item.
macro_rules! one {
    ($number:literal, $type:literal) => {
        concat!("$", $number, "::", $type)
    };
}

/// An item of a parameter that holds those of a whole batch. By its place: a set-returning function for every array
/// (`unnest`) writes each item down and reads it again, which costs more than the row that is made of them.
macro_rules! many {
    ($number:literal, $type:literal) => {
        concat!("($", $number, "::", $type, "[])[a.ord]")
    };
}

/// Several of them, each given as number and type.
macro_rules! items {
    ($item:ident: $number:literal $type:literal $(, $numbers:literal $types:literal)*) => {
        concat!($item!($number, $type) $(, ", ", $item!($numbers, $types))*)
    };
}

/// Moments, each a parameter that counts from a time of the statement's where its bit is set: given as number, time and bit.
macro_rules! moments {
    ($item:ident: $($number:literal $time:literal $bit:literal),*) => {
        concat!($($item!($number, "bigint"), " + m.", $time, " * (", $item!("32", "bigint"), " >> ", $bit, " & 1), "),*)
    };
}

/// What goes into [`columns!`]: the parameters 3 to 32 of the item `a`, but for those of [`answer_values!`], at the moment `m`.
macro_rules! values {
    ($item:ident) => {
        concat!(
            items!($item: "3" "bytea", "4" "uuid", "5" "text", "6" "bigint", "7" "bigint", "8" "uuid", "9" "text"),
            ", ",
            moments!($item: "10" "now" "0", "11" "now" "1", "12" "now" "2", "13" "latest" "3", "14" "latest" "4", "15" "latest" "5"),
            moments!($item: "16" "now" "6"),
            // What it waits for counts from the one or from the other.
            $item!("17", "bigint"),
            " + m.now * (",
            $item!("32", "bigint"),
            " >> 7 & 1) + m.latest * (",
            $item!("32", "bigint"),
            " >> 8 & 1), ",
            items!($item: "18" "text", "19" "bigint", "20" "boolean", "21" "text", "22" "text", "23" "bytea"),
            ", ",
            items!($item: "24" "text", "25" "text", "26" "integer", "28" "text", "29" "text", "31" "integer")
        )
    };
}

/// When the answer of the item `a` ends: the parameters 13, 14 and 32, at the moment `m`.
macro_rules! answer_end {
    ($item:ident) => {
        concat!(
            "coalesce(",
            $item!("13", "bigint"),
            " + m.latest * (",
            $item!("32", "bigint"),
            " >> 3 & 1), ",
            $item!("14", "bigint"),
            " + m.latest * (",
            $item!("32", "bigint"),
            " >> 4 & 1))"
        )
    };
}

/// What goes into `semel_answers`: the parameters 27, 30 and 35 of the item `a` beside the end of its answer.
macro_rules! answer_values {
    ($item:ident) => {
        concat!(answer_end!($item), ", ", items!($item: "35" "uuid", "27" "text", "30" "bytea"))
    };
}

/// Keeps the answers of `$of`, each where `$headers` says that there is anything of it to be kept.
macro_rules! answered {
    ($values:expr, $of:literal, $headers:expr) => {
        concat!(
            ", answered AS (
  INSERT INTO semel_answers (ends_at, operation_id, headers, body)
  SELECT ",
            $values,
            "
  FROM ",
            $of,
            ", moment m WHERE ",
            $headers,
            " IS NOT NULL
  ON CONFLICT (ends_at, operation_id) DO UPDATE SET headers = excluded.headers, body = excluded.body
)"
        )
    };
}

/// Removes what was kept of the answers of `done a`, where nothing of them is to be kept any more: the parameters are those of a swap.
macro_rules! unanswered {
    ($item:ident) => {
        concat!(
            ", unanswered AS (
  DELETE FROM semel_answers s USING done a, moment m WHERE ",
            $item!("26", "integer"),
            " IS NOT NULL AND ",
            $item!("27", "text"),
            " IS NULL AND s.ends_at = ",
            answer_end!($item),
            " AND s.operation_id = ",
            $item!("35", "uuid"),
            "
)"
        )
    };
}

/// Joins the answer `s` of the record `r`.
macro_rules! its_answer {
    () => {
        "LEFT JOIN semel_answers s ON s.ends_at = coalesce(r.body_expires_at, r.expires_at) AND s.operation_id = r.operation_id"
    };
}

/// What a record is read from. Headers and body of its answer come last, or are left out. The first is NULL where there is no record.
macro_rules! read_columns {
    () => {
        "r.operation_id, r.tenant, r.operation, r.key, r.fingerprint, r.recipe, r.state, r.version, r.attempt, r.owner, \
         r.taken_by, r.created_at, r.lease_until, r.completed_at, r.body_expires_at, r.expires_at, r.purge_at, \
         r.reconcile_at, r.reconcile_attempts, r.dead_letter, r.last_error, r.recovery_point, r.checkpoint, \
         r.resource_type, r.resource_id, r.response_status, r.response_schema, r.body_kind, r.response_sum, r.id"
    };
}
pub(crate) use read_columns;

/// The server's clock in milliseconds.
macro_rules! claimed {
    () => {
        "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint"
    };
}

/// What the times are made of, as `t`: what the server's clock claims, the row about it, and what the caller expects. The parameter 1 is a floor, the
/// time that is expected, and how far ahead of it the clock is followed. Both ends are [`Keeper`](semel::clock::Keeper)'s, which judges the same when
/// the answer comes: a clock that came back is followed before anybody has written that down, and one that is off by more is not, though nobody has
/// written that down either.
macro_rules! clock {
    () => {
        concat!(
            "(SELECT c.claimed, c.trusted_at, c.behind, c.hold, c.written_by, greatest(($1::bigint[])[1], CASE
    WHEN (c.behind <> 0 OR c.hold > 0) AND ($1::bigint[])[2] > 0 AND c.claimed - c.expected BETWEEN -2000 AND ($1::bigint[])[3] THEN c.claimed
    WHEN c.claimed - c.behind - c.expected BETWEEN -2000 AND ($1::bigint[])[3] THEN c.claimed - c.behind
    ELSE c.expected END) AS now
  FROM (SELECT clock.claimed, coalesce(b.trusted_at, 0) AS trusted_at, coalesce(b.behind, 0) AS behind,
      greatest(b.hold, b.behind, 0) AS hold, coalesce(b.written_by, 0) AS written_by, greatest(($1::bigint[])[2], b.trusted_at) AS expected
    FROM (SELECT ",
            claimed!(),
            " AS claimed) AS clock LEFT JOIN semel_clock b ON b.id = 1) AS c) AS t"
        )
    };
}

/// The two times, and all that was found: `told`.
macro_rules! times {
    () => {
        "t.now, greatest(t.now + t.hold, t.claimed) AS latest, ARRAY[t.now, t.claimed, t.trusted_at, t.behind, t.hold, t.written_by] AS told"
    };
}

/// The moment of a statement that forgets: its flag says as well that no clock hold is open, by the row as this commit sees it and by what the
/// caller expects.
macro_rules! forgetting_moment {
    () => {
        concat!(
            "moment AS MATERIALIZED (SELECT ",
            times!(),
            ", $2::boolean OR current_setting('synchronous_commit') IN ('on', 'remote_apply') AS durable, t.hold <= 0 AND t.claimed <= t.now AS trusted FROM ",
            clock!(),
            ")"
        )
    };
}

/// The moment of a writing statement; parameter 2 says whether commits may be lossy.
macro_rules! moment {
    () => {
        concat!(
            "moment AS MATERIALIZED (SELECT ",
            times!(),
            ", $2::boolean OR current_setting('synchronous_commit') IN ('on', 'remote_apply') AS durable FROM ",
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
            times!(),
            ", pg_is_in_recovery() AS standby FROM ",
            clock!(),
            ")"
        )
    };
}

// After the macros above, which they use.
mod create;
mod forget;
mod read;
mod swap;

pub(crate) use create::{CREATE, CREATE_RESERVATION, RESERVE};
pub(crate) use forget::{DROP_ANSWERS, PURGE, PURGE_AUDIT};
pub(crate) use read::{COUNT_LIVE, DUE, FIND, HISTORY, HOLD, LIVE_OPERATIONS, READ, UNDER_WAY, listing_now};
pub(crate) use swap::{AUDIT, REMOVE, SWAP, SWAP_AUDITED, SWAP_COMPLETION};

/// Nothing where commits can be lost, unless they may: parameter 3.
pub(crate) const REMEMBER: &str = "INSERT INTO semel_remembered (name, value) SELECT $1::text, $2::bytea
WHERE $3::boolean OR current_setting('synchronous_commit') IN ('on', 'remote_apply') ON CONFLICT (name) DO NOTHING";
/// Always one row, also without a value: what a standby does not know may be on the primary all the same.
pub(crate) const RECALL: &str = "SELECT r.value, pg_is_in_recovery()
FROM (SELECT) AS always LEFT JOIN semel_remembered r ON r.name = $1";

/// Leaves a mark in the row about the clock, if it says what is expected: parameters 5 to 7. One row if it did.
pub(crate) const MARK: &str = "INSERT INTO semel_clock AS c (id, trusted_at, behind, hold, written_by)
SELECT 1, $1::bigint, $2::bigint, $3::bigint, $4::bigint
WHERE $8::boolean OR current_setting('synchronous_commit') IN ('on', 'remote_apply')
ON CONFLICT (id) DO UPDATE SET trusted_at = excluded.trusted_at, behind = excluded.behind, hold = excluded.hold, written_by = excluded.written_by
WHERE c.trusted_at = $5::bigint AND c.behind = $6::bigint AND c.written_by = $7::bigint RETURNING c.id";
