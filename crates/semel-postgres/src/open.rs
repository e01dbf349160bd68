//! Opens a store: checks the server, migrates the tables, reads the clock.

use crate::call::Server;
use crate::clock::StoreClock;
use crate::connections::Connections;
use crate::error::OpenError;
use crate::first;
use crate::mark::Ticker;
use crate::migration::{self, Migrated};
use crate::options::PgOptions;
use crate::store::PgStore;
use crate::write::Writing;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{Connection, PgPool, Row, raw_sql};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// `MATERIALIZED`, scans by `ctid` from a join, and the autovacuum settings of the table are all there from 13 on.
const OLDEST: i32 = 130_000;

impl PgStore {
    /// Opens the store over the application's own pool, with the default [`PgOptions`].
    ///
    /// # Errors
    /// What is wrong with the server or its settings, and what to do about it.
    pub async fn new(pool: PgPool) -> Result<Self, OpenError> {
        PgOptions::new().open(pool).await
    }

    /// Opens the store in the database of `url`, with the default [`PgOptions`].
    ///
    /// # Errors
    /// As [`new`](Self::new), and what is wrong with the URL.
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        PgOptions::new().connect(url).await
    }

    /// Migrates the tables of a database to the newest version. Opening does so too, unless the options say otherwise.
    ///
    /// # Errors
    /// [`OpenError::Newer`] if they are newer than this program can work with; else what the server reports.
    pub async fn migrate(pool: &PgPool) -> Result<Migrated, OpenError> {
        migration::migrate(pool).await
    }
}

impl PgOptions {
    /// Opens the store in the database of `url`, over connections of its own.
    ///
    /// # Errors
    /// What is wrong with the URL, the server or its settings, and what to do about it.
    pub async fn connect(self, url: &str) -> Result<PgStore, OpenError> {
        let this = self.told_by(url);
        let address = this.address(url)?;
        // Not from the pool, which would say no more than that it took too long.
        first::connection(&address).await?.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(this.max_connections)
            // Below the engine's own time limit, so that an exhausted pool is reported as such.
            .acquire_timeout(Duration::from_secs(1))
            .after_connect(move |conn, _| Box::pin(compiling_nothing(conn, this.prepared)))
            .connect_with(address)
            .await?;
        let connections = Connections::own(pool, this.max_connections);
        this.open_over(connections).await
    }

    /// Migrates the tables in the database of `url` to the newest version without opening a store. Opening does so too, unless told
    /// [not to](Self::without_migrating): this is for a step of its own before a deploy.
    ///
    /// # Errors
    /// What is wrong with the URL or the server, and what to do about it. Whether commits can be lost does not matter here.
    pub async fn migrate(self, url: &str) -> Result<Migrated, OpenError> {
        let this = self.told_by(url);
        let mut conn = first::connection(&this.address(url)?).await?;
        let anything_goes = this.dangerously_accept_fsync_off().dangerously_accept_lossy_commits();
        anything_goes.check_server(&mut conn).await?;
        let migrated = migration::migrate_over(&mut conn).await?;
        conn.close().await?;
        Ok(migrated)
    }

    /// With what a URL says of the store, and the driver does not.
    fn told_by(self, url: &str) -> Self {
        let mut said = url.split_once('?').map_or("", |(_, query)| query).split('&');
        let prepared = self.prepared && !said.any(|pair| pair == "statement-cache-capacity=0");
        Self { prepared, ..self }
    }

    fn address(&self, url: &str) -> Result<PgConnectOptions, OpenError> {
        let mut connect = PgConnectOptions::from_str(url).map_err(OpenError::Url)?;
        if connect.get_application_name().is_none() {
            connect = connect.application_name("semel");
        }
        if !self.prepared {
            // PgBouncer refuses a connection that asks for a setting which it does not know.
            connect = connect.statement_cache_capacity(0).extra_float_digits(None);
        }
        Ok(connect)
    }

    /// Opens the store over the application's own pool.
    ///
    /// sqlx pools ask the server for a sign of life before and after every use, and a connection out of one is reset, because a previous user may
    /// have left open on it: five round trips in place of one. The first can be switched off by
    /// `PgPoolOptions::test_before_acquire(false)`; [`connect`](Self::connect) does without all of them.
    ///
    /// # Errors
    /// What is wrong with the server or its settings, and what to do about it.
    pub async fn open(self, pool: PgPool) -> Result<PgStore, OpenError> {
        self.open_over(Connections::of_application(pool)).await
    }

    async fn open_over(self, connections: Connections) -> Result<PgStore, OpenError> {
        let pool = &connections.pool;
        self.check_server(&mut *pool.acquire().await?).await?;
        if self.migrate {
            migration::migrate(pool).await?;
        } else {
            migration::check(pool).await?;
        }
        migration::check_privileges(pool).await?;
        let server = Server { connections, prepared: self.prepared };
        let clock = StoreClock::new(self.clock, self.clock_terms);
        clock.announce();
        let writing = Writing { server, clock, lossy: self.lossy_commits };
        // Before anybody works with it: that a clock hold is open is to be known to all.
        writing.mark(false).await.map_err(OpenError::Clock)?;
        let ticker = Arc::new(Ticker::start(writing.clone()));
        Ok(PgStore {
            writing,
            damage: Arc::default(),
            max_concurrent_batches: self.max_concurrent_batches,
            _ticker: ticker,
        })
    }

    /// Durable means durable, and a standby decides nothing.
    async fn check_server(&self, conn: &mut PgConnection) -> Result<(), OpenError> {
        let sql = "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(),
                          current_setting('fsync') = 'off', current_setting('synchronous_commit') = 'off'";
        let row = raw_sql(sql).fetch_one(conn).await?;
        self.judge(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)
    }

    fn judge(
        &self,
        found: i32,
        standby: bool,
        fsync_off: bool,
        lossy_commits: bool,
    ) -> Result<(), OpenError> {
        if found < OLDEST {
            return Err(OpenError::TooOld { found, needed: OLDEST });
        }
        if standby {
            return Err(OpenError::Standby);
        }
        if fsync_off && !self.fsync_off {
            return Err(OpenError::FsyncOff);
        }
        if lossy_commits && !self.lossy_commits {
            return Err(OpenError::LossyCommits);
        }
        Ok(())
    }
}

/// Has the server compile no statement on this connection. Among millions of records short statements look long to it, and compiling one takes longer
/// than running it. Behind PgBouncer, where other clients reuse the session, it is left as it is.
async fn compiling_nothing(conn: &mut PgConnection, ours: bool) -> Result<(), sqlx::Error> {
    if !ours {
        return Ok(());
    }
    match raw_sql("SET jit = off").execute(conn).await {
        // A server that does not know the setting does not compile.
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_whether_statements_may_be_prepared() {
        for (query, prepared) in [
            ("", true),
            ("?statement-cache-capacity=10", true),
            ("?statement-cache-capacity=0", false),
            ("?sslmode=prefer&statement-cache-capacity=0&application_name=shop", false),
        ] {
            let options = PgOptions::new().told_by(&format!("postgres://app@db/payments{query}"));
            assert_eq!(options.prepared, prepared, "{query}");
        }
    }

    #[test]
    fn each_thing_that_is_not_durable_needs_a_word_of_its_own() {
        let (plain, fsync) = (PgOptions::new(), PgOptions::new().dangerously_accept_fsync_off());
        let lossy = PgOptions::new().dangerously_accept_lossy_commits();
        assert!(plain.judge(150_018, false, false, false).is_ok());
        assert!(matches!(plain.judge(150_018, false, true, false), Err(OpenError::FsyncOff)));
        assert!(matches!(lossy.judge(150_018, false, true, false), Err(OpenError::FsyncOff)));
        assert!(fsync.judge(150_018, false, true, false).is_ok());
        assert!(matches!(fsync.judge(150_018, false, false, true), Err(OpenError::LossyCommits)));
    }

    #[test]
    fn no_word_makes_a_standby_or_an_old_server_fit() {
        let brave = PgOptions::new().dangerously_accept_fsync_off().dangerously_accept_lossy_commits();
        assert!(matches!(brave.judge(150_018, true, false, false), Err(OpenError::Standby)));
        assert!(matches!(brave.judge(120_000, false, false, false), Err(OpenError::TooOld { .. })));
    }
}
