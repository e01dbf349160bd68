//! How a store is opened.

use crate::call::Server;
use crate::clock::StoreClock;
use crate::connections::Connections;
use crate::error::OpenError;
use crate::mark::Ticker;
use crate::migration::{self, Migrated};
use crate::store::PgStore;
use crate::write::Writing;
use semel::clock::{Clock, SystemClock, Terms};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgPool, Row, raw_sql};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How a [`PgStore`] is opened. What `new()` gives is safe as it stands.
///
/// ```no_run
/// # use semel_postgres::{OpenError, PgOptions};
/// # async fn run() -> Result<(), OpenError> {
/// let store = PgOptions::new().without_prepared_statements().connect("postgres://app@pgbouncer:6432/payments").await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PgOptions {
    lanes: usize,
    max_connections: u32,
    prepared: bool,
    migrate: bool,
    lossy_commits: bool,
    fsync_off: bool,
    clock: Arc<dyn Clock>,
    clock_terms: Terms,
}

impl std::fmt::Debug for PgOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            lanes,
            max_connections,
            prepared,
            migrate,
            lossy_commits,
            fsync_off,
            clock: _,
            clock_terms,
        } = self;
        f.debug_struct("PgOptions")
            .field("lanes", lanes)
            .field("max_connections", max_connections)
            .field("prepared", prepared)
            .field("migrate", migrate)
            .field("lossy_commits", lossy_commits)
            .field("fsync_off", fsync_off)
            .field("clock_terms", clock_terms)
            .finish_non_exhaustive()
    }
}

impl Default for PgOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// `MATERIALIZED`, scans by `ctid` from a join, and the autovacuum settings of the table are all there from 13 on.
const OLDEST: i32 = 130_000;

impl PgOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lanes: 2,
            max_connections: 10,
            prepared: true,
            migrate: true,
            lossy_commits: false,
            fsync_off: false,
            clock: Arc::new(SystemClock),
            clock_terms: Terms::default(),
        }
    }

    /// How many batches of one kind are under way at once. Default 2: while the server syncs one, it works on the other. More
    /// lanes make smaller batches. At least 1, at most 4, so that the locks of all creates fit into the server's table.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes.clamp(1, 4);
        self
    }

    /// How many connections the store uses at once for its own calls. Default 10, at least 1. Transactions of the application's over
    /// [`pool`](crate::PgStore::pool), [`once`](crate::PgStore::once) and phases, and the outbox, take as many again at most: a server has to allow for both.
    #[must_use]
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// Prepares no statement on the server. For PgBouncer and other poolers in transaction mode, where the server's connection
    /// may be another one from one transaction to the next. Each call is then a transaction of four round trips in place of a
    /// statement of one. `statement-cache-capacity=0` in a URL says the same.
    #[must_use]
    pub fn without_prepared_statements(mut self) -> Self {
        self.prepared = false;
        self
    }

    /// Does not create or change tables: somebody else runs the [`migrations`](crate::migrations). Opening fails where they are
    /// not there.
    #[must_use]
    pub fn without_migrating(mut self) -> Self {
        self.migrate = false;
        self
    }

    /// Goes on where `synchronous_commit` is off. A crash of the server then loses acknowledged outcomes, and a retry may execute
    /// again. For tests and benchmarks of everything but the disk.
    #[must_use]
    pub fn dangerously_accept_lossy_commits(mut self) -> Self {
        self.lossy_commits = true;
        self
    }

    /// Goes on where the server runs with `fsync=off`. A crash of its machine then loses acknowledged outcomes, or the whole
    /// database. For tests and benchmarks of everything but the disk.
    #[must_use]
    pub fn dangerously_accept_fsync_off(mut self) -> Self {
        self.fsync_off = true;
        self
    }

    /// Takes the steady time that the server's clock is compared with from `clock`. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How far, and on whose word, the server's clock is believed. Default: jumps of more than an hour open a clock hold, which ends once this
    /// machine's kernel has reported a synchronised clock, with which the server's agrees, for a quarter of an hour.
    #[must_use]
    pub fn clock_terms(mut self, terms: Terms) -> Self {
        self.clock_terms = terms;
        self
    }

    /// Opens the store in the database of `url`, over connections of its own.
    ///
    /// # Errors
    /// What is wrong with the URL, the server or its settings, and what to do about it.
    pub async fn connect(self, url: &str) -> Result<PgStore, OpenError> {
        let this = self.told_by(url);
        let pool = PgPoolOptions::new()
            .max_connections(this.max_connections)
            // Below the engine's own time limit: a full pool is told as such.
            .acquire_timeout(Duration::from_secs(1))
            .after_connect(move |conn, _| Box::pin(compiling_nothing(conn, this.prepared)))
            .connect_with(this.address(url)?)
            .await?;
        let connections = Connections::own(pool, this.max_connections);
        this.open_over(connections).await
    }

    /// Brings the tables in the database of `url` to the newest version, and opens nothing. Opening does it by itself, unless told
    /// [not to](Self::without_migrating): this is for a step of its own before a deploy.
    ///
    /// # Errors
    /// What is wrong with the URL or the server, and what to do about it. Whether commits can be lost does not matter here.
    pub async fn migrate(self, url: &str) -> Result<Migrated, OpenError> {
        // Not from a pool, which tries on for a while and then says no more than that it took too long.
        let this = self.told_by(url);
        let mut conn = this.address(url)?.connect().await?;
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
    /// sqlx pools ask the server for a sign of life before and after every use, and a connection out of one is cleaned of what somebody may
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
        let writing = Writing { server, clock, lossy: self.lossy_commits };
        // Before anybody works with it: that a clock hold is open is to be known to all.
        writing.mark(false).await.map_err(OpenError::Clock)?;
        let ticker = Arc::new(Ticker::start(writing.clone()));
        Ok(PgStore { writing, damage: Arc::default(), lanes: self.lanes, _ticker: ticker })
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
/// than running it. Where the session may be somebody else's next, as behind PgBouncer, it is left as it is.
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
