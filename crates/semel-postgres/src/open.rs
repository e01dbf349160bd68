//! Opens a store: checks the server, migrates the tables, reads the clock.

use crate::call::Server;
use crate::clock::StoreClock;
use crate::commit::{Commits, hear};
use crate::connections::Connections;
use crate::error::OpenError;
use crate::mark::Ticker;
use crate::migration::{self, Migrated};
use crate::options::PgOptions;
use crate::primary::{Primary, addresses, check_product, set_up};
use crate::replication::{Declared, Replication, Standing};
use crate::store::PgStore;
use crate::watch::Watch;
use crate::write::Writing;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{Connection, PgPool, Row, raw_sql};
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
        let primary = this.primary(url)?;
        // Not from the pool, which would say no more than that it took too long.
        primary.first_connection().await?.close().await?;
        let checking = primary.clone();
        let pool = PgPoolOptions::new()
            .max_connections(this.max_connections)
            // Below the engine's own time limit, so that an exhausted pool is reported as such.
            .acquire_timeout(Duration::from_secs(1))
            .after_connect(move |conn, _| {
                let primary = checking.clone();
                Box::pin(async move {
                    set_up(conn, this.prepared).await?;
                    primary.check(conn).await.map_err(|error| sqlx::Error::Configuration(error.into()))
                })
            })
            .connect_with(primary.address())
            .await?;
        let several_hosts = primary.has_several_hosts();
        let connections = Connections::own(pool, primary, this.max_connections);
        this.open_over(connections, several_hosts).await
    }

    /// Migrates the tables in the database of `url` to the newest version without opening a store. Opening does so too, unless told
    /// [not to](Self::without_migrating): this is for a step of its own before a deploy.
    ///
    /// # Errors
    /// What is wrong with the URL or the server, and what to do about it. Whether commits can be lost does not matter here.
    pub async fn migrate(self, url: &str) -> Result<Migrated, OpenError> {
        let this = self.told_by(url);
        let mut conn = this.primary(url)?.first_connection().await?;
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

    fn primary(&self, url: &str) -> Result<Primary, OpenError> {
        let addresses = addresses(url)?.into_iter().map(|address| self.address(address)).collect();
        Ok(Primary::new(addresses, self.prepared))
    }

    fn address(&self, mut connect: PgConnectOptions) -> PgConnectOptions {
        if connect.get_application_name().is_none() {
            connect = connect.application_name("semel");
        }
        if !self.prepared {
            // PgBouncer refuses a connection that asks for a setting which it does not know.
            connect = connect.statement_cache_capacity(0).extra_float_digits(None);
        }
        connect
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
        self.open_over(Connections::of_application(pool), false).await
    }

    async fn open_over(self, connections: Connections, several_hosts: bool) -> Result<PgStore, OpenError> {
        let pool = &connections.pool;
        self.check_server(&mut *pool.acquire().await?).await?;
        let commits = self.commits(&mut *pool.acquire().await?, several_hosts).await?;
        if self.migrate {
            migration::migrate(pool).await?;
        } else {
            migration::check(pool).await?;
        }
        migration::check_privileges(pool).await?;
        let server = Server { connections, commits, prepared: self.prepared };
        let clock = StoreClock::new(self.clock, self.clock_terms);
        clock.announce();
        let watch = Watch::start(server.clone()).map(Arc::new);
        let writing = Writing { server, clock, lossy: self.lossy_commits };
        // Before anybody works with it: that a clock hold is open is to be known to all.
        writing.mark(false).await.map_err(OpenError::Clock)?;
        let ticker = Arc::new(Ticker::start(writing.clone()));
        Ok(PgStore {
            writing,
            damage: Arc::default(),
            max_concurrent_batches: self.max_concurrent_batches,
            _ticker: ticker,
            _watch: watch,
        })
    }

    /// How the store's commits are to be taken, once replication is found to be as declared.
    async fn commits(&self, conn: &mut PgConnection, several_hosts: bool) -> Result<Commits, OpenError> {
        let (replication, asynchronous) = (self.replication, self.asynchronous);
        let declared = Declared { replication, asynchronous, several_hosts };
        Standing::of(&mut *conn).await?.check(&declared)?;
        if asynchronous {
            tracing::warn!(
                "a failover may lose acknowledged outcomes, and retries then execute again: replication is accepted as asynchronous"
            );
        }
        match replication {
            Some(Replication::Synchronous) => {
                Ok(Commits::synchronous(self.max_concurrent_batches, hear(conn).await?))
            }
            _ => Ok(Commits::trusted(self.max_concurrent_batches)),
        }
    }

    /// Durable means durable, and a standby decides nothing.
    async fn check_server(&self, conn: &mut PgConnection) -> Result<(), OpenError> {
        check_product(&mut *conn).await?;
        let sql = "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(),
                          current_setting('fsync') = 'off', current_setting('synchronous_commit')";
        let row = raw_sql(sql).fetch_one(conn).await?;
        self.judge(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)
    }

    fn judge(
        &self,
        found: i32,
        standby: bool,
        fsync_off: bool,
        synchronous_commit: &str,
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
        match synchronous_commit {
            _ if self.lossy_commits => Ok(()),
            "off" => Err(OpenError::LossyCommits),
            setting @ ("local" | "remote_write") => Err(OpenError::WeakCommits { setting: setting.into() }),
            _ => Ok(()),
        }
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
        assert!(plain.judge(150_018, false, false, "on").is_ok());
        assert!(plain.judge(150_018, false, false, "remote_apply").is_ok());
        assert!(matches!(plain.judge(150_018, false, true, "on"), Err(OpenError::FsyncOff)));
        assert!(matches!(lossy.judge(150_018, false, true, "on"), Err(OpenError::FsyncOff)));
        assert!(fsync.judge(150_018, false, true, "on").is_ok());
        assert!(matches!(fsync.judge(150_018, false, false, "off"), Err(OpenError::LossyCommits)));
        for weak in ["local", "remote_write"] {
            let refused = fsync.judge(150_018, false, false, weak);
            assert!(matches!(refused, Err(OpenError::WeakCommits { .. })), "{weak}: {refused:?}");
            assert!(lossy.judge(150_018, false, false, weak).is_ok());
        }
    }

    #[test]
    fn no_word_makes_a_standby_or_an_old_server_fit() {
        let brave = PgOptions::new().dangerously_accept_fsync_off().dangerously_accept_lossy_commits();
        assert!(matches!(brave.judge(150_018, true, false, "on"), Err(OpenError::Standby)));
        assert!(matches!(brave.judge(120_000, false, false, "on"), Err(OpenError::TooOld { .. })));
    }
}
