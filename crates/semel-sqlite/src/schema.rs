//! The tables, and how they are created in a file.

use crate::error::OpenError;
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// The newest schema version that this program knows.
pub(crate) const VERSION: i64 = 6;

/// The oldest program that can go on working beside this schema, by the newest version that it knows. Written with the schema: a
/// step that only adds leaves it, and programs of the version before can still open the file.
const COMPATIBLE_WITH: i64 = 3;

/// The steps from each version to the next; the first one makes the tables. A step that has been released never changes.
const MIGRATIONS: [&str; VERSION as usize] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
];

/// What a file is before anything is done to it.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Version { found: i64, compatible_with: i64 },
    Foreign,
}

impl Found {
    /// Whether there is nothing to add.
    fn is_known(&self) -> bool {
        matches!(self, Self::Version { found, .. } if *found >= VERSION)
    }
}

/// Refuses a file that is not ours or is newer than we are. Only reads.
pub(crate) fn check(conn: &Connection, path: &Path, share_database_file: bool) -> Result<(), OpenError> {
    match found(conn).map_err(|error| opening(path, error))? {
        Found::Foreign if !share_database_file => Err(OpenError::NotOurs { path: path.into() }),
        Found::Version { found, compatible_with } if found > VERSION && compatible_with > VERSION => {
            Err(OpenError::Newer { path: path.into(), found, known: VERSION })
        }
        _ => Ok(()),
    }
}

/// Brings the file to the newest version. Of several processes that open it at once, one does it, and the others find it done:
/// the version is looked at again under the write lock.
pub(crate) fn migrate(
    conn: &mut Connection,
    path: &Path,
    share_database_file: bool,
) -> Result<(), OpenError> {
    let failed = |error| opening(path, error);
    if found(conn).map_err(failed)?.is_known() {
        return Ok(());
    }
    let transaction =
        conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
    check(&transaction, path, share_database_file)?;
    let from = match found(&transaction).map_err(failed)? {
        // Another process did it meanwhile.
        known if known.is_known() => return Ok(()),
        Found::Version { found, .. } => found,
        Found::Empty | Found::Foreign => 0,
    };
    for migration in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction
        .execute(
            "INSERT INTO semel_meta (name, value) VALUES ('schema_version', ?1), ('compatible_with', ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [VERSION, COMPATIBLE_WITH],
        )
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}

// The version is kept in a table of our own and not in `user_version`: that one belongs to the application whose tables may
// live in the same file.
fn found(conn: &Connection) -> rusqlite::Result<Found> {
    let ours: bool = conn.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'semel_meta')",
        [],
        |row| row.get(0),
    )?;
    if ours {
        let number = |name: &str| {
            conn.query_row("SELECT value FROM semel_meta WHERE name = ?1", [name], |row| row.get::<_, i64>(0))
                .optional()
        };
        let Some(found) = number("schema_version")? else { return Ok(Found::Foreign) };
        // A file from before this number was written says nothing of who else can read it.
        let compatible_with = number("compatible_with")?.unwrap_or(found);
        return Ok(Found::Version { found, compatible_with });
    }
    let empty: bool =
        conn.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))?;
    Ok(if empty { Found::Empty } else { Found::Foreign })
}

pub(crate) fn opening(path: &Path, error: rusqlite::Error) -> OpenError {
    use rusqlite::ErrorCode;
    let path = path.into();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Locked { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::ReadOnly { path },
        _ => OpenError::Sqlite { path, source: error },
    }
}
