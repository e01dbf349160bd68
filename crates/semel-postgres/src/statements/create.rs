//! Creates: of any record, of plain reservations, and inside an application's transaction.

use super::Statement;

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
