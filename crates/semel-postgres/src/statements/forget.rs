//! What is forgotten when its time is over: answers and whole records.

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

/// Removes records whose time is over, with their histories; those first that are over for longest. Found by the index as in [`DUE`](super::DUE), and judged
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

/// Removes entries of the audit that are older than parameter 4 says, the oldest first.
pub(crate) const PURGE_AUDIT: &str = concat!(
    "WITH ",
    forgetting_moment!(),
    ", over AS MATERIALIZED (
  SELECT d.place FROM moment m, LATERAL (
    SELECT s.ctid AS place, s.at FROM semel_audit s WHERE s.at < m.now - $4::bigint
    ORDER BY s.at, s.sequence LIMIT (SELECT $3::bigint) FOR UPDATE SKIP LOCKED
  ) d WHERE m.durable AND m.trusted AND d.at % 1 = 0
), gone AS (
  DELETE FROM semel_audit s USING over o WHERE s.ctid = o.place RETURNING s.at
)
SELECT m.told, m.durable, (SELECT count(*) FROM gone) FROM moment m"
);
