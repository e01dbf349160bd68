//! Swaps of any kind, plain completions, and removals.

use super::Statement;

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

/// The columns of an entry of the audit, but for its number.
macro_rules! audit_columns {
    () => {
        "(at, entry_id, actor, action, result, target, tenant, operation, details)"
    };
}

/// A lone swap of any kind with an entry of the audit, which is appended if the swap is done: parameters 40 to 47.
pub(crate) const SWAP_AUDITED: &str = swap!(
    held_one!("33", "34", "35"),
    columns!(),
    values!(one),
    concat!(answered!(answer_values!(one), "done a", one!("27", "text")), unanswered!(one)),
    concat!(
        told!(one),
        ", audited AS (
  INSERT INTO semel_audit ",
        audit_columns!(),
        " SELECT m.now, ",
        items!(one: "40" "uuid", "41" "text", "42" "text", "43" "text", "44" "text", "45" "text", "46" "text", "47" "text"),
        " FROM done d, moment m
)"
    )
);

/// Appends an entry of the audit: parameters 3 to 10.
pub(crate) const AUDIT: &str = concat!(
    "WITH ",
    moment!(),
    ", audited AS (
  INSERT INTO semel_audit ",
    audit_columns!(),
    " SELECT m.now, ",
    items!(one: "3" "uuid", "4" "text", "5" "text", "6" "text", "7" "text", "8" "text", "9" "text", "10" "text"),
    " FROM moment m WHERE m.durable
)
SELECT m.told, m.durable FROM moment m"
);

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
