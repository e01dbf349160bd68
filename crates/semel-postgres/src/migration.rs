//! The tables, and how a database comes to have them.

use crate::error::OpenError;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, PgPool, Row, raw_sql};

/// One step from a schema version to the next. A step that has been released never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Migration {
    /// The version that the database has afterwards.
    pub version: i64,
    /// What it is about.
    pub name: &'static str,
    /// Plain SQL, to be run in one transaction.
    pub sql: &'static str,
}

const MIGRATIONS: [Migration; 1] =
    [Migration { version: 1, name: "records", sql: include_str!("../migrations/0001_records.sql") }];

/// The newest schema version that this program knows.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The oldest program that can go on working beside this schema, by the newest version that it knows. Written with the schema:
/// during a rolling deploy instances of the version before start and run on tables that are already newer.
const COMPATIBLE_WITH: i64 = 1;

/// "semel mi", as a number: whoever migrates holds this advisory lock.
const LOCK: i64 = 0x7365_6d65_6c20_6d69;

/// All steps, oldest first: for teams that run their own migrations.
#[must_use]
pub fn migrations() -> &'static [Migration] {
    &MIGRATIONS
}

/// The whole as one script of plain SQL, from an empty database to the newest version.
///
/// ```
/// assert!(semel_postgres::migration_script().starts_with("BEGIN;"));
/// ```
#[must_use]
pub fn migration_script() -> String {
    let mut script = String::from("BEGIN;\n");
    for Migration { version, name, sql } in MIGRATIONS {
        script.push_str(&format!("\n-- Version {version}: {name}\n\n{sql}"));
    }
    script + "\n" + &set_version() + ";\n\nCOMMIT;\n"
}

/// Brings the database to the newest version. Of several instances that start at once, one does it, and the others find it done.
///
/// The tables are made in the first schema of the role's `search_path`.
pub(crate) async fn migrate(pool: &PgPool) -> Result<(), OpenError> {
    let mut conn = pool.acquire().await?;
    if found(&mut conn).await?.checked()? >= VERSION {
        return Ok(());
    }
    let mut transaction = conn.begin().await?;
    raw_sql(AssertSqlSafe(format!("SELECT pg_advisory_xact_lock({LOCK})")))
        .execute(&mut *transaction)
        .await?;
    // Again, under the lock. A statement of its own sees what others have committed meanwhile.
    let from = found(&mut transaction).await?.checked()?;
    for Migration { sql, .. } in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        raw_sql(*sql).execute(&mut *transaction).await?;
    }
    if from < VERSION {
        raw_sql(AssertSqlSafe(set_version())).execute(&mut *transaction).await?;
    }
    Ok(transaction.commit().await?)
}

/// Refuses a database whose tables are missing, old or too new. Only reads.
pub(crate) async fn check(pool: &PgPool) -> Result<(), OpenError> {
    let mut conn = pool.acquire().await?;
    let found = found(&mut conn).await?.checked()?;
    if found < VERSION { Err(OpenError::NotMigrated { found, known: VERSION }) } else { Ok(()) }
}

struct Found {
    version: i64,
    compatible_with: i64,
}

impl Found {
    fn checked(self) -> Result<i64, OpenError> {
        if self.version > VERSION && self.compatible_with > VERSION {
            return Err(OpenError::Newer { found: self.version, known: VERSION });
        }
        Ok(self.version)
    }
}

async fn found(conn: &mut PgConnection) -> Result<Found, sqlx::Error> {
    // Not by to_regclass(), which may answer from what the connection remembers from before it waited for the lock.
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE c.relname = 'semel_meta' AND n.nspname = ANY (current_schemas(false)))";
    let there = raw_sql(sql).fetch_one(&mut *conn).await?;
    if !there.try_get::<bool, _>(0)? {
        return Ok(Found { version: 0, compatible_with: 0 });
    }
    let sql = "SELECT coalesce(max(value) FILTER (WHERE name = 'schema_version'), 0),
                      coalesce(max(value) FILTER (WHERE name = 'compatible_with'), 0) FROM semel_meta";
    let row = raw_sql(sql).fetch_one(conn).await?;
    Ok(Found { version: row.try_get(0)?, compatible_with: row.try_get(1)? })
}

fn set_version() -> String {
    format!(
        "INSERT INTO semel_meta (name, value) VALUES ('schema_version', {VERSION}), ('compatible_with', {COMPATIBLE_WITH})
ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_up_from_one_without_a_gap() {
        let versions: Vec<_> = migrations().iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());
    }

    #[test]
    fn a_newer_schema_is_refused_unless_it_says_that_it_is_compatible() {
        let found = |version, compatible_with| Found { version, compatible_with }.checked();
        assert!(matches!(found(0, 0), Ok(0)));
        assert!(found(VERSION + 1, VERSION).is_ok());
        assert!(matches!(found(VERSION + 1, VERSION + 1), Err(OpenError::Newer { .. })));
    }
}
