//! How SQLite's rows are written and read.

#[path = "../../../../crates/semel-sqlite/src/error.rs"]
pub(crate) mod error;
#[path = "../../../../crates/semel-sqlite/src/row.rs"]
pub(crate) mod row;
#[path = "../../../../crates/semel-sqlite/src/statements.rs"]
pub(crate) mod statements;

/// The tables.
pub(crate) const SCHEMA: [&str; 3] = [
    include_str!("../../../../crates/semel-sqlite/src/schema_1.sql"),
    include_str!("../../../../crates/semel-sqlite/src/schema_2.sql"),
    include_str!("../../../../crates/semel-sqlite/src/schema_3.sql"),
];
