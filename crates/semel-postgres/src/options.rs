//! How a store is opened.

use crate::replication::Replication;
use semel::clock::{Clock, SystemClock, Terms};
use std::sync::Arc;

/// How a [`PgStore`](crate::PgStore) is opened. What `new()` gives is safe as it stands.
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
    pub(crate) max_concurrent_batches: usize,
    pub(crate) max_connections: u32,
    pub(crate) prepared: bool,
    pub(crate) migrate: bool,
    pub(crate) lossy_commits: bool,
    pub(crate) fsync_off: bool,
    pub(crate) replication: Option<Replication>,
    pub(crate) asynchronous: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) clock_terms: Terms,
}

impl std::fmt::Debug for PgOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            max_concurrent_batches,
            max_connections,
            prepared,
            migrate,
            lossy_commits,
            fsync_off,
            replication,
            asynchronous,
            clock: _,
            clock_terms,
        } = self;
        f.debug_struct("PgOptions")
            .field("max_concurrent_batches", max_concurrent_batches)
            .field("max_connections", max_connections)
            .field("prepared", prepared)
            .field("migrate", migrate)
            .field("lossy_commits", lossy_commits)
            .field("fsync_off", fsync_off)
            .field("replication", replication)
            .field("asynchronous", asynchronous)
            .field("clock_terms", clock_terms)
            .finish_non_exhaustive()
    }
}

impl Default for PgOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl PgOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_concurrent_batches: 2,
            max_connections: 10,
            prepared: true,
            migrate: true,
            lossy_commits: false,
            fsync_off: false,
            replication: None,
            asynchronous: false,
            clock: Arc::new(SystemClock),
            clock_terms: Terms::default(),
        }
    }

    /// How many batches of one kind are in flight at once. Default 2: while the server syncs one, it works on the other. Higher values
    /// make smaller batches. From 1 to 4, so that the locks of all creates fit into the server's lock table.
    #[must_use]
    pub fn max_concurrent_batches(mut self, batches: usize) -> Self {
        self.max_concurrent_batches = batches.clamp(1, 4);
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

    /// Does not create or change tables: run the [`migrations`](crate::migrations) in a step of your own. Opening fails where they are
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

    /// Says how acknowledged commits outlive a failover. Without a word, a server with standbys is refused: whether a failover to one of them loses
    /// commits cannot be seen.
    ///
    /// [`Replication::Synchronous`] is verified, which needs the role `pg_read_all_stats`, and watched: while it does not hold, nothing new is
    /// reserved ([`PgStore::risk`](crate::PgStore::risk)).
    #[must_use]
    pub fn replication(mut self, replication: Replication) -> Self {
        self.replication = Some(replication);
        self
    }

    /// Goes on where standbys follow asynchronously and may be promoted. A failover then loses acknowledged outcomes, and a retry executes again.
    #[must_use]
    pub fn dangerously_accept_asynchronous_replication(mut self) -> Self {
        self.asynchronous = true;
        self
    }

    /// Takes the steady time that the server's clock is compared with from `clock`. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How far, and on whose word, the server's clock is believed. Default: jumps of more than an hour open a clock hold, which ends once this
    /// machine's kernel has reported a synchronised clock, with which the server's agrees, for a quarter of an hour. A step of less than
    /// [`Terms::max_step`] is followed, and ends windows by as much: it must be no more than a quarter of the shortest time for which any operation here
    /// [remembers](semel::Policy::remembered) a key. Where that is less than four hours, pass `Terms::default().within(policy.remembered())`; a gateway does
    /// so by itself. All processes on one store need the same.
    #[must_use]
    pub fn clock_terms(mut self, terms: Terms) -> Self {
        self.clock_terms = terms;
        self
    }
}
