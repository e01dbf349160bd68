//! The statements, each one a whole call: one round trip and one commit for a batch.
//!
//! - **Time** is taken once per statement (`moment`), and is two: `now`, the earliest that it may be, and `latest`. Moments that count from one of
//!   them come as durations, with their bit set in `relative`: bit 0 is `created_at`, bit 1 `lease_until`, and so on in the order of
//!   [`MOMENTS`](crate::draft::MOMENTS). Windows count from the latest, everything else from the earliest.
//! - **Durability is looked at where it counts**: behind a pooler in transaction mode the session's settings are unknown, so
//!   the statement itself writes nothing where `synchronous_commit` is off.
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
            ", $2::boolean OR current_setting('synchronous_commit') <> 'off' AS durable, t.hold <= 0 AND t.claimed <= t.now AS trusted FROM ",
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
            times!(),
            ", pg_is_in_recovery() AS standby FROM ",
            clock!(),
            ")"
        )
    };
}

// No index is named after ON CONFLICT: a draft that is sent again while its first sending is still being carried out can meet
// itself in the index over operation ids before it does in the one over keys, and would be an error there.
macro_rules! create {
    ($item:ident, id $id:literal, asked $asked:expr, free $free:literal, $columns:expr, $values:expr, $answered:expr) => {
        concat!(
            "WITH ",
            moment!(),
            ", asked AS MATERIALIZED (",
            $asked,
            "), made AS (
  INSERT INTO semel_records (",
            $columns,
            ")
  SELECT ",
            $values,
            "
  FROM (",
            $free,
            ") a, moment m
  ON CONFLICT DO NOTHING RETURNING operation_id
)",
            $answered,
            "
SELECT m.told, m.durable, ARRAY(SELECT operation_id FROM made), ARRAY(SELECT ",
            $item!($id, "uuid"),
            " FROM asked a WHERE NOT a.free)
FROM moment m"
        )
    };
}

/// A lone create.
macro_rules! create_one {
    ($lock:literal of $number:literal, id $id:literal, $columns:expr, $values:expr, $answered:expr) => {
        create!(
            one,
            id $id,
            asked concat!("SELECT ", $lock, "(", one!($number, "bigint"), ") AS free FROM moment m WHERE m.durable"),
            free "SELECT FROM asked WHERE free",
            $columns,
            $values,
            $answered
        )
    };
}

/// A batch of creates, in the order of their key hashes.
macro_rules! create_many {
    ($lock:literal of $number:literal, id $id:literal, $columns:expr, $values:expr, $answered:expr) => {
        create!(
            many,
            id $id,
            asked concat!(
                "SELECT a.ord, ",
                $lock,
                "(",
                many!($number, "bigint"),
                ") AS free FROM moment m, generate_subscripts($",
                $id,
                "::uuid[], 1) AS a (ord) WHERE m.durable"
            ),
            // Before the row is put together: what is sorted are numbers.
            free "SELECT ord FROM asked WHERE free ORDER BY ord OFFSET 0",
            $columns,
            $values,
            $answered
        )
    };
}

/// The columns of any record.
macro_rules! whole_columns {
    () => {
        concat!("key_hash, operation_id, tenant, operation, key, ", columns!())
    };
}

/// What goes into [`whole_columns!`]: the parameters 33, 35 to 38, and 3 to 32.
macro_rules! whole_values {
    ($item:ident) => {
        concat!(
            items!($item: "33" "uuid", "35" "uuid", "36" "text", "37" "text", "38" "text"),
            ", ",
            values!($item)
        )
    };
}

/// The answers of those that were made.
macro_rules! whole_answered {
    ($item:ident) => {
        answered!(
            answer_values!($item),
            "asked a",
            concat!(
                $item!("35", "uuid"),
                " = ANY (ARRAY(SELECT operation_id FROM made)) AND ",
                $item!("27", "text")
            )
        )
    };
}

/// Creates of any record. Shared locks: two batches are not in each other's way, an application's transaction is.
pub(crate) const CREATE: Statement = Statement {
    one: create_one!(
        "pg_try_advisory_xact_lock_shared" of "34", id "35", whole_columns!(), whole_values!(one), whole_answered!(one)
    ),
    many: create_many!(
        "pg_try_advisory_xact_lock_shared" of "34", id "35", whole_columns!(), whole_values!(many), whole_answered!(many)
    ),
};

/// A reservation inside an application's transaction: the lock is its own until it ends.
pub(crate) const RESERVE: &str = create_one!(
    "pg_try_advisory_xact_lock" of "34", id "35", whole_columns!(), whole_values!(one), whole_answered!(one)
);

/// The columns that a reservation fills.
macro_rules! reservation_columns {
    () => {
        "key_hash, operation_id, tenant, operation, key, fingerprint, recipe, owner, created_at, lease_until, due_at, \
         due_kind, state, version, attempt, taken_by, reconcile_attempts, dead_letter"
    };
}

/// What goes into [`reservation_columns!`]: the parameters 3 to 12 but for the lock.
macro_rules! reservation_values {
    ($item:ident) => {
        concat!(
            items!($item: "3" "uuid", "5" "uuid", "6" "text", "7" "text", "8" "text"),
            ", ",
            items!($item: "9" "bytea", "10" "uuid", "11" "uuid"),
            ", m.now, m.now + ",
            $item!("12", "bigint"),
            ", m.now + ",
            $item!("12", "bigint"),
            ", 'lease', 'in_progress', 1, 1, 'first', 0, false"
        )
    };
}

/// Creates of plain reservations.
pub(crate) const CREATE_RESERVATION: Statement = Statement {
    one: create_one!(
        "pg_try_advisory_xact_lock_shared" of "4", id "5", reservation_columns!(), reservation_values!(one), ""
    ),
    many: create_many!(
        "pg_try_advisory_xact_lock_shared" of "4", id "5", reservation_columns!(), reservation_values!(many), ""
    ),
};

/// `$answered` keeps the answers, `$told` is what is written to the history: a part of its own or nothing.
macro_rules! swap {
    ($held:expr, $columns:expr, $values:expr, $answered:expr, $told:expr) => {
        concat!(
            "WITH ",
            moment!(),
            ", held AS MATERIALIZED (",
            $held,
            "
  FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE semel_records r SET (",
            $columns,
            ") = ROW (",
            $values,
            ")
  FROM held a, moment m WHERE r.ctid = a.place RETURNING a.ord
)",
            $answered,
            $told,
            "
SELECT m.told, m.durable, ARRAY(SELECT ord::bigint FROM done) FROM moment m"
        )
    };
}

/// The row of a lone swap, by the parameters that hold key hash, version and id.
macro_rules! held_one {
    ($hash:literal, $version:literal, $id:literal) => {
        concat!(
            "
  SELECT 1 AS ord, r.ctid AS place FROM moment m, semel_records r
  WHERE m.durable AND r.operation_id = ",
            one!($id, "uuid"),
            " AND r.version = ",
            one!($version, "bigint"),
            " AND r.key_hash = ",
            one!($hash, "uuid")
        )
    };
}

/// The rows of a batch of swaps.
macro_rules! held_many {
    ($hash:literal, $version:literal, $id:literal) => {
        concat!(
            "
  SELECT a.ord::integer AS ord, r.ctid AS place
  FROM moment m, unnest($",
            $id,
            "::uuid[]) WITH ORDINALITY AS a (operation_id, ord)
  JOIN semel_records r ON r.operation_id = a.operation_id
  WHERE m.durable AND a.ord % 1 = 0 AND r.version = ",
            many!($version, "bigint"),
            " AND r.key_hash = ",
            many!($hash, "uuid")
        )
    };
}

macro_rules! told {
    ($item:ident) => {
        concat!(
            ", told AS (
  INSERT INTO semel_history (operation_id, version, happening, actor, attempt, note, at)
  SELECT ",
            items!($item: "35" "uuid", "6" "bigint", "36" "text", "37" "text", "38" "bigint", "39" "text"),
            ", m.now
  FROM held a, moment m WHERE ",
            $item!("36", "text"),
            " IS NOT NULL AND a.ord = ANY (ARRAY(SELECT ord FROM done))
)"
        )
    };
}

/// Swaps of any kind.
pub(crate) const SWAP: Statement = Statement {
    one: swap!(
        held_one!("33", "34", "35"),
        columns!(),
        values!(one),
        concat!(answered!(answer_values!(one), "done a", one!("27", "text")), unanswered!(one)),
        told!(one)
    ),
    many: swap!(
        held_many!("33", "34", "35"),
        columns!(),
        values!(many),
        concat!(answered!(answer_values!(many), "done a", many!("27", "text")), unanswered!(many)),
        told!(many)
    ),
};

/// What goes into [`columns!`] for a completion: the parameters 4 and 6 to 22, but for those of its answer.
macro_rules! completion_values {
    ($item:ident) => {
        concat!(
            items!($item: "6" "bytea", "7" "uuid"),
            ", 'completed', ",
            $item!("4", "bigint"),
            " + 1, ",
            items!($item: "8" "bigint", "9" "uuid", "10" "text", "11" "bigint", "12" "bigint"),
            ", m.now, m.latest + ",
            $item!("13", "bigint"),
            ", m.latest + ",
            $item!("14", "bigint"),
            ", m.latest + ",
            $item!("15", "bigint"),
            // It waits for its removal, if that is ever to come.
            ", NULL, m.latest + ",
            $item!("15", "bigint"),
            ", CASE WHEN ",
            $item!("15", "bigint"),
            " IS NOT NULL THEN 'purge' END, 0, false, NULL, NULL, NULL, ",
            items!($item: "16" "text", "17" "text", "18" "integer"),
            ", NULL, ",
            items!($item: "20" "text", "22" "integer")
        )
    };
}

/// The answers of completions.
macro_rules! completion_answered {
    ($item:ident) => {
        answered!(
            concat!(
                "m.latest + coalesce(",
                items!($item: "13" "bigint", "14" "bigint"),
                "), ",
                items!($item: "5" "uuid", "19" "text", "21" "bytea")
            ),
            "done a",
            $item!("19", "text")
        )
    };
}

/// Swaps that are plain completions.
pub(crate) const SWAP_COMPLETION: Statement = Statement {
    one: swap!(held_one!("3", "4", "5"), columns!(), completion_values!(one), completion_answered!(one), ""),
    many: swap!(
        held_many!("3", "4", "5"),
        columns!(),
        completion_values!(many),
        completion_answered!(many),
        ""
    ),
};

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
SELECT m.told, m.durable, ARRAY(SELECT ord FROM done) FROM moment m"
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
            ", m.told, m.standby, s.headers, s.body, a.name
FROM moment m LEFT JOIN (asked a JOIN semel_records r ON r.",
            $column,
            " = a.name ",
            its_answer!(),
            ") ON true"
        )
    };
}

pub(crate) const READ: &str = read_by!("key_hash");
pub(crate) const FIND: &str = read_by!("operation_id");

/// The record of an operation for an act inside an application's transaction: its row is locked first, then its key's
/// advisory lock taken, for a `create` of the same key would wait for a row that an open transaction has changed. No deadlock
/// can come of the order: whoever holds the advisory lock, shared, is a `create`, which passes over a row that is only locked. Its answer is
/// left out: no act depends on it, and it would be that of a moment before the row was waited for.
pub(crate) const HOLD: &str = concat!(
    "WITH ",
    moment!(),
    ", held AS MATERIALIZED (SELECT * FROM semel_records WHERE operation_id = $3::uuid FOR UPDATE)
SELECT ",
    read_columns!(),
    ", m.told, m.durable,
  pg_advisory_xact_lock(('x' || right(replace(r.key_hash::text, '-', ''), 16))::bit(64)::bigint)
FROM moment m LEFT JOIN held r ON true"
);

pub(crate) const HISTORY: &str = "SELECT at, version, happening, actor, attempt, note, pg_is_in_recovery()
FROM semel_history WHERE operation_id = $1 ORDER BY sequence";

/// The earliest time by the row, once for a listing.
macro_rules! listing_now {
    () => {
        "(SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - coalesce((SELECT behind FROM semel_clock WHERE id = 1), 0))"
    };
}
pub(crate) use listing_now;

/// The latest time by the row: the server's clock, unless that was set back or a hold is open.
macro_rules! latest_now {
    () => {
        concat!(
            "(SELECT ",
            claimed!(),
            " + coalesce((SELECT greatest(hold - behind, 0) FROM semel_clock WHERE id = 1), 0))"
        )
    };
}

pub(crate) const COUNT_LIVE: &str = concat!(
    "SELECT count(*), pg_is_in_recovery()
FROM (SELECT FROM semel_records
  WHERE tenant = $1 AND state <> 'expired' AND (expires_at IS NULL OR expires_at > ",
    latest_now!(),
    ") LIMIT $2) AS live"
);

/// Drops answers that are over, those that ended first. One at a time, by a lock of its own: others find nothing to do meanwhile, and the
/// order is kept. A swap that rewrites one of them is not waited for.
pub(crate) const DROP_ANSWERS: &str = concat!(
    "WITH ",
    forgetting_moment!(),
    ", turn AS MATERIALIZED (SELECT m.now FROM moment m WHERE m.durable AND m.trusted AND pg_try_advisory_xact_lock(",
    // "semel an", as a number.
    "8315172569382674798",
    ")), over AS MATERIALIZED (
  SELECT d.place FROM turn t, LATERAL (
    SELECT s.ctid AS place, s.ends_at FROM semel_answers s WHERE s.ends_at <= t.now
    ORDER BY s.ends_at, s.operation_id LIMIT $3 FOR UPDATE SKIP LOCKED
  ) d WHERE d.ends_at % 1 = 0
), dropped AS (
  DELETE FROM semel_answers s USING over o WHERE s.ctid = o.place RETURNING s.ends_at
)
SELECT m.told, m.durable, ARRAY(SELECT ends_at FROM dropped ORDER BY ends_at) FROM moment m"
);

/// Removes records whose time is over, with their histories; those first that are over for longest. Found by the index as in [`DUE`], and judged
/// by the record itself: where its own time of removal has not come, or it has not ended, it stays.
pub(crate) const PURGE: &str = concat!(
    "WITH ",
    forgetting_moment!(),
    ", over AS MATERIALIZED (
  SELECT d.place FROM moment m, LATERAL (
    SELECT r.ctid AS place, r.due_at FROM semel_records r
    WHERE r.due_kind = 'purge' AND r.due_at <= m.now
      AND r.purge_at <= m.now AND r.state NOT IN ('in_progress', 'unknown')
    ORDER BY r.due_kind, r.due_at, r.operation_id LIMIT (SELECT $3::bigint) FOR UPDATE SKIP LOCKED
  ) d WHERE m.durable AND m.trusted AND d.due_at % 1 = 0
), gone AS (
  DELETE FROM semel_records r USING over o WHERE r.ctid = o.place
  RETURNING r.due_at, r.operation_id, r.operation
), untold AS (
  DELETE FROM semel_history h USING gone g WHERE h.operation_id = g.operation_id
)
SELECT m.told, m.durable, ARRAY(SELECT due_at FROM gone ORDER BY due_at, operation_id),
  ARRAY(SELECT operation FROM gone ORDER BY due_at, operation_id) FROM moment m"
);

/// What waits for something that is due, after a place. The kind is an equality of its own: of bounds that are rows, the server ends a scan only
/// where their first column is passed, so that it would go through all that is not due yet. The limit is not to be seen by the planner, which takes it
/// for a tenth of what there is and goes by the index to come to it soonest; a limit that it knows to be above what it expects would have it read all that is due and sort it. The rows come in the order of the
/// index; that the moment is one row is what the planner cannot know, so nothing more is said of their order here, and whoever reads them sorts them.
pub(crate) const DUE: &str = concat!(
    "WITH ",
    reading_moment!(),
    "
SELECT ",
    read_columns!(),
    ", m.told, m.standby
FROM moment m LEFT JOIN LATERAL (
  SELECT * FROM semel_records d
  WHERE d.due_kind = $2::text AND (d.due_at, d.operation_id) > ($4::bigint, $5::uuid) AND d.due_at <= m.now
  ORDER BY d.due_kind, d.due_at, d.operation_id LIMIT (SELECT $3::bigint)
) r ON true"
);

/// How many operations are in progress whose lease is not over, by the earliest time.
pub(crate) const UNDER_WAY: &str = concat!(
    "WITH ",
    reading_moment!(),
    "
SELECT count(r.id) FROM moment m LEFT JOIN semel_records r ON r.state = 'in_progress' AND r.lease_until > m.now"
);

/// Nothing where commits can be lost, unless they may: parameter 3.
pub(crate) const REMEMBER: &str = "INSERT INTO semel_remembered (name, value) SELECT $1::text, $2::bytea
WHERE $3::boolean OR current_setting('synchronous_commit') <> 'off' ON CONFLICT (name) DO NOTHING";
/// Always one row, also without a value: what a standby does not know may be on the primary all the same.
pub(crate) const RECALL: &str = "SELECT r.value, pg_is_in_recovery()
FROM (SELECT) AS always LEFT JOIN semel_remembered r ON r.name = $1";

/// Leaves a mark in the row about the clock, if it says what is expected: parameters 5 to 7. One row if it did.
pub(crate) const MARK: &str = "INSERT INTO semel_clock AS c (id, trusted_at, behind, hold, written_by)
SELECT 1, $1::bigint, $2::bigint, $3::bigint, $4::bigint
WHERE $8::boolean OR current_setting('synchronous_commit') <> 'off'
ON CONFLICT (id) DO UPDATE SET trusted_at = excluded.trusted_at, behind = excluded.behind, hold = excluded.hold, written_by = excluded.written_by
WHERE c.trusted_at = $5::bigint AND c.behind = $6::bigint AND c.written_by = $7::bigint RETURNING c.id";
