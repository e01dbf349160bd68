//! What is read: records, histories, listings, and what is due.

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

/// By the primary key alone, newest first: no index has operations, and only so many rows are looked at.
pub(crate) const LIVE_OPERATIONS: &str = concat!(
    "SELECT operation, count(*) FILTER (WHERE state <> 'expired' AND (expires_at IS NULL OR expires_at > now)), count(*),
  pg_is_in_recovery()
FROM (SELECT operation, state, expires_at, ",
    listing_now!(),
    " AS now FROM semel_records ORDER BY id DESC LIMIT $1) AS newest
GROUP BY operation"
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
