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

const MIGRATIONS: [Migration; 6] = [
    Migration { version: 1, name: "records", sql: include_str!("../migrations/0001_records.sql") },
    Migration { version: 2, name: "messages", sql: include_str!("../migrations/0002_messages.sql") },
    Migration { version: 3, name: "answers", sql: include_str!("../migrations/0003_answers.sql") },
    Migration { version: 4, name: "clock", sql: include_str!("../migrations/0004_clock.sql") },
    Migration { version: 5, name: "hold", sql: include_str!("../migrations/0005_hold.sql") },
    Migration { version: 6, name: "audit", sql: include_str!("../migrations/0006_audit.sql") },
];

/// The newest schema version that this program knows.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The oldest program that can go on working beside this schema, by the newest version that it knows. Written with the schema:
/// during a rolling deploy instances of the version before start and run on tables that are already newer.
const COMPATIBLE_WITH: i64 = 3;

/// "semel mi" as a number: the advisory lock that is held while migrating.
const LOCK: i64 = 0x7365_6d65_6c20_6d69;

/// All steps, oldest first: for teams that run their own migrations.
#[must_use]
pub fn migrations() -> &'static [Migration] {
    &MIGRATIONS
}

/// What a migration did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Migrated {
    /// The version that the database had; 0: it had no tables.
    pub from: i64,
    /// The version that it has. The same as before where there was nothing to do, and beyond what this program knows where a newer
    /// one has been here.
    pub to: i64,
}

/// The whole as one script of plain SQL, from any version (or an empty database) to the newest: what is there already is left as it
/// is, so that it can be run again.
///
/// It is a single statement: it happens as a whole or not at all, by itself as well as inside the transaction that a tool for
/// migrations puts around it.
///
/// ```
/// assert!(semel_postgres::migration_script().contains("CREATE TABLE semel_records"));
/// ```
#[must_use]
pub fn migration_script() -> String {
    let mut steps = String::new();
    for Migration { version, name, sql } in MIGRATIONS {
        steps.push_str(&format!(
            "IF version_found < {version} THEN\n-- Version {version}: {name}\n\n{sql}\nEND IF;\n\n"
        ));
    }
    let set_version = set_version();
    format!(
        "-- The tables of Semel, up to version {VERSION}, in the first schema of the search_path. Can be run again.
DO $semel$
DECLARE
version_found bigint := 0;
BEGIN
-- Of several that run at once, one does it.
PERFORM pg_advisory_xact_lock({LOCK});
IF {TABLES_EXIST} THEN
SELECT {VERSION_FOUND} INTO version_found FROM semel_meta;
END IF;

{steps}IF version_found < {VERSION} THEN
{set_version};
END IF;
END
$semel$;
"
    )
}

/// Brings the database to the newest version. Of several instances that start at once, one does it, and the others find it done.
///
/// The tables are made in the first schema of the role's `search_path`.
pub(crate) async fn migrate(pool: &PgPool) -> Result<Migrated, OpenError> {
    migrate_over(&mut *pool.acquire().await?).await
}

pub(crate) async fn migrate_over(conn: &mut PgConnection) -> Result<Migrated, OpenError> {
    let from = found(&mut *conn).await?.checked()?;
    if from >= VERSION {
        return Ok(Migrated { from, to: from });
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
    transaction.commit().await?;
    Ok(Migrated { from, to: from.max(VERSION) })
}

/// Refuses a database whose tables are missing, old or too new. Only reads.
pub(crate) async fn check(pool: &PgPool) -> Result<(), OpenError> {
    let mut conn = pool.acquire().await?;
    let found = found(&mut conn).await?.checked()?;
    if found < VERSION { Err(OpenError::NotMigrated { found, known: VERSION }) } else { Ok(()) }
}

/// Refuses a role that may not do all that requests need: one that can reserve and not complete would execute what it cannot remember.
pub(crate) async fn check_privileges(pool: &PgPool) -> Result<(), OpenError> {
    let missing = "SELECT string_agg(format('%s on %s', privilege, name), ', ' ORDER BY name, privilege)
         FROM unnest(ARRAY['semel_records', 'semel_answers', 'semel_history', 'semel_remembered', 'semel_clock']) AS name,
              unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
         WHERE NOT has_table_privilege(name, privilege) AND NOT (name = 'semel_clock' AND privilege = 'DELETE')";
    let row = raw_sql(missing).fetch_one(&mut *pool.acquire().await?).await?;
    match row.try_get::<Option<String>, _>(0)? {
        Some(missing) => Err(OpenError::NotAllowed { missing }),
        None => Ok(()),
    }
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

/// Not by to_regclass(), which may answer from what the connection remembers from before it waited for the lock.
const TABLES_EXIST: &str = "EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relname = 'semel_meta' AND n.nspname = ANY (current_schemas(false)))";

const VERSION_FOUND: &str = "coalesce(max(value) FILTER (WHERE name = 'schema_version'), 0)";

async fn found(conn: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let sql = format!("SELECT {TABLES_EXIST}");
    let there = raw_sql(AssertSqlSafe(sql)).fetch_one(&mut *conn).await?;
    if !there.try_get::<bool, _>(0)? {
        return Ok(Found { version: 0, compatible_with: 0 });
    }
    let sql = format!(
        "SELECT {VERSION_FOUND}, coalesce(max(value) FILTER (WHERE name = 'compatible_with'), 0) FROM semel_meta"
    );
    let row = raw_sql(AssertSqlSafe(sql)).fetch_one(conn).await?;
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
    fn no_step_ends_the_script_that_it_is_part_of() {
        assert!(migrations().iter().all(|migration| !migration.sql.contains("$semel$")));
    }

    #[test]
    fn a_newer_schema_is_refused_unless_it_says_that_it_is_compatible() {
        let found = |version, compatible_with| Found { version, compatible_with }.checked();
        assert!(matches!(found(0, 0), Ok(0)));
        assert!(found(VERSION + 1, VERSION).is_ok());
        assert!(matches!(found(VERSION + 1, VERSION + 1), Err(OpenError::Newer { .. })));
    }
}
