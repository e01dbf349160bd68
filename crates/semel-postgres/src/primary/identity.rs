//! What a server says of itself: which product, which database system, which timeline, primary or standby.

use crate::error::{OpenError, sqlstate};
use sqlx::postgres::PgConnection;
use sqlx::{Row, raw_sql};

/// What tells one server from another, and one time as primary from a later one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    /// Made by initdb, and the same on all standbys.
    pub(crate) system: String,
    /// Raised by every promotion.
    pub(crate) timeline: i32,
    /// In recovery: it takes no writes.
    pub(crate) standby: bool,
    pub(crate) read_only: bool,
}

/// The timeline that a primary writes to is told by the name of its current WAL file: the control file follows at the next checkpoint.
const IDENTIFY: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()),
  greatest((SELECT timeline_id FROM pg_control_checkpoint()), CASE WHEN pg_is_in_recovery() THEN 0
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer END),
  pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";

impl Identity {
    pub(crate) async fn of(conn: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let row = raw_sql(IDENTIFY).fetch_one(conn).await?;
        Ok(Self {
            system: row.try_get(0)?,
            timeline: row.try_get(1)?,
            standby: row.try_get(2)?,
            read_only: row.try_get(3)?,
        })
    }

    pub(crate) fn takes_writes(&self) -> bool {
        !self.standby && !self.read_only
    }
}

/// Refuses servers that only speak PostgreSQL's protocol. What the store builds on (advisory locks that transactions share, data-modifying
/// WITH in one snapshot, a commit that waits for a standby) they do otherwise, or not at all, and mostly without an error.
pub(crate) async fn check_product(conn: &mut PgConnection) -> Result<(), OpenError> {
    let version: String = raw_sql("SELECT version()").fetch_one(&mut *conn).await?.try_get(0)?;
    if let Some(product) = other_product(&version) {
        return Err(OpenError::NotPostgres { product });
    }
    // Whatever does not know PostgreSQL's own catalogue is something else, however it calls itself.
    match Identity::of(conn).await {
        Err(error)
            if sqlstate(&error).is_some_and(|state| state.starts_with("42") || state.starts_with("0A")) =>
        {
            Err(OpenError::NotPostgres { product: format!("a server that reports \"{version}\"") })
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// The product behind `version()`, where it is not PostgreSQL.
fn other_product(version: &str) -> Option<String> {
    const OTHERS: [(&str, &str); 10] = [
        ("CockroachDB", "CockroachDB"),
        ("-YB-", "YugabyteDB"),
        ("Yugabyte", "YugabyteDB"),
        ("Greenplum", "Greenplum"),
        ("Redshift", "Amazon Redshift"),
        ("Materialize", "Materialize"),
        ("QuestDB", "QuestDB"),
        ("CrateDB", "CrateDB"),
        ("RisingWave", "RisingWave"),
        ("openGauss", "openGauss"),
    ];
    let known =
        OTHERS.iter().find(|(mark, _)| version.contains(mark)).map(|(_, product)| (*product).to_owned());
    known.or_else(|| {
        let genuine = version.starts_with("PostgreSQL ") || version.starts_with("EnterpriseDB ");
        (!genuine).then(|| format!("a server that reports \"{version}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_only_speak_the_protocol_are_known_by_their_version() {
        for (version, product) in [
            ("CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27)", "CockroachDB"),
            ("PostgreSQL 11.2-YB-2.19.0.0-b0 on x86_64-pc-linux-gnu", "YugabyteDB"),
            ("PostgreSQL 12.12 (Greenplum Database 7.0.0 build commit:0a7a3566)", "Greenplum"),
            ("PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.56754", "Amazon Redshift"),
            ("Frobnicate 1.0", "a server that reports \"Frobnicate 1.0\""),
        ] {
            assert_eq!(other_product(version).as_deref(), Some(product), "{version}");
        }
        for version in ["PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64", "PostgreSQL 16.2 on aarch64"] {
            assert_eq!(other_product(version), None, "{version}");
        }
    }
}
