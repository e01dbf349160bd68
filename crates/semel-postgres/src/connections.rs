//! The store's connections, and idle ones that it keeps.
//!
//! A pool of sqlx's asks the server for a sign of life each time that it gets a connection back, and by default before it hands one
//! out: two more round trips for every call of one. So the store keeps a few connections of its own out of the pool between
//! calls. A connection on which a call failed or was cancelled is closed: its state is unknown.
//!
//! **A pool may hand out a connection with a transaction left open.** sqlx does not end one whose `begin` is dropped before the server has
//! answered, by a time-out say, and gives its connection back. What is written over it is acknowledged and never committed. So every
//! connection out of a pool is cleaned before it is used.
//!
//! Connections of the store's own are opened to whichever host is the primary, and those to a former one are not kept. From an application's own pool the store keeps no connection.
//!
//! Calls of the store's own that wait do so in one queue for both, or a connection could be idle while a caller waits for the pool. A
//! kept connection no longer belongs to the pool, which may open another one for direct users.

use crate::error::unavailable;
use crate::primary::Primary;
use semel::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, PgPool, Postgres, Transaction};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// A connection that has lain idle for longer may have died with a server that was restarted: it is asked before it is used.
const FRESH: Duration = Duration::from_secs(1);
/// How long it may take to answer that.
const ASKED: Duration = Duration::from_millis(500);

/// Where connections come from. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pub(crate) pool: PgPool,
    own: Option<Arc<Own>>,
}

/// What the store keeps of a pool that is its own.
#[derive(Debug)]
struct Own {
    primary: Primary,
    /// One permit for each connection that may be in use.
    permits: Arc<Semaphore>,
    patience: Duration,
    /// Connections live as long as the runtime that they were opened in: that of the store, not of its first caller.
    runtime: Handle,
    kept: Mutex<Vec<Kept>>,
}

/// An idle connection.
#[derive(Debug)]
struct Kept {
    conn: PgConnection,
    since: Instant,
    /// How often the primary had moved when it was opened.
    moves: u64,
}

/// A connection in use.
pub(crate) struct Taken {
    conn: Which,
    permit: Option<OwnedSemaphorePermit>,
    moves: u64,
    is_new: bool,
}

/// Tells when the primary has moved to another host.
pub(crate) struct Moves(Option<watch::Receiver<u64>>);

impl Moves {
    /// Returns once it has moved; never, where there is only one host.
    pub(crate) async fn moved(&mut self) {
        let moved = match &mut self.0 {
            Some(moves) => moves.changed().await.is_ok(),
            None => false,
        };
        if !moved {
            std::future::pending().await
        }
    }
}

enum Which {
    Own(Box<PgConnection>),
    Lent(Lent),
}

/// A connection of the application's pool.
struct Lent {
    conn: PoolConnection<Postgres>,
    /// Whether the call over it has gone well.
    well: bool,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.well {
            self.conn.close_on_drop();
        }
    }
}

impl Connections {
    /// Of a pool that is the application's.
    pub(crate) fn of_application(pool: PgPool) -> Self {
        Self { pool, own: None }
    }

    /// Of its own, to the primary, at most `most` at once, beside a pool for others. Called within the runtime that the connections live in.
    pub(crate) fn own(pool: PgPool, primary: Primary, most: u32) -> Self {
        let permits = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX)));
        let patience = pool.options().get_acquire_timeout();
        let (runtime, kept) = (Handle::current(), Mutex::default());
        Self { pool, own: Some(Arc::new(Own { primary, permits, patience, runtime, kept })) }
    }

    pub(crate) async fn take(&self) -> Result<Taken, StoreError> {
        let failed = |error: sqlx::Error| unavailable(&error);
        let Some(own) = &self.own else {
            let lent = Lent { conn: self.pool.acquire().await.map_err(failed)?, well: false };
            let taken = Taken { conn: Which::Lent(lent), permit: None, moves: 0, is_new: false };
            return taken.cleaned().await.map_err(failed);
        };
        let permit = tokio::time::timeout(own.patience, own.permits.clone().acquire_owned()).await;
        let permit = permit
            .map_err(|_| failed(sqlx::Error::PoolTimedOut))?
            .map_err(|_| failed(sqlx::Error::PoolClosed))?;
        let taken = |conn: PgConnection, moves: u64, is_new: bool| Taken {
            conn: Which::Own(Box::new(conn)),
            permit: Some(permit),
            moves,
            is_new,
        };
        match own.pop_live().await {
            Some(Kept { conn, moves, .. }) => Ok(taken(conn, moves, false)),
            None => {
                // Before it is opened: if the primary moves meanwhile, this one is not kept.
                let moves = own.moves();
                Ok(taken(own.open().await?, moves, true))
            }
        }
    }

    /// One that nobody else waits for.
    pub(crate) async fn fresh(&self) -> Result<PgConnection, StoreError> {
        match &self.own {
            Some(own) => own.open().await,
            None => Ok(self.pool.acquire().await.map_err(|error| unavailable(&error))?.detach()),
        }
    }

    pub(crate) fn have_several_hosts(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.primary.has_several_hosts())
    }

    /// Looks for the primary among all hosts, and drops idle connections to another one.
    pub(crate) async fn look(&self) -> Result<PgConnection, StoreError> {
        let Some(own) = self.own.as_ref().filter(|own| own.primary.has_several_hosts()) else {
            return self.fresh().await;
        };
        let found = own.primary.look(&self.pool).await;
        let moves = own.moves();
        own.lock().retain(|kept| kept.moves == moves);
        found.map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    pub(crate) fn moves(&self) -> Moves {
        Moves(self.own.as_ref().map(|own| own.primary.moves()))
    }

    /// Gets back one over which a call has gone well.
    pub(crate) fn give_back(&self, taken: Taken) {
        match (taken.conn, &self.own) {
            (Which::Own(conn), Some(own)) if !self.pool.is_closed() && taken.moves == own.moves() => {
                own.lock().push(Kept { conn: *conn, since: Instant::now(), moves: taken.moves });
                // Released last, so that the next waiter finds the connection.
                drop(taken.permit);
            }
            (Which::Lent(mut lent), _) => lent.well = true,
            (Which::Own(_), _) => {}
        }
    }

    pub(crate) async fn close(&self) {
        if let Some(own) = &self.own {
            own.permits.close();
            let kept = std::mem::take(&mut *own.lock());
            for Kept { conn, .. } in kept {
                let _closed = conn.close().await;
            }
        }
        self.pool.close().await;
    }
}

impl Own {
    async fn open(&self) -> Result<PgConnection, StoreError> {
        let primary = self.primary.clone();
        // Given up together with the call that needs it.
        let mut opening = JoinSet::new();
        opening.spawn_on(async move { primary.connect().await }, &self.runtime);
        let opened = match opening.join_next().await {
            Some(Ok(opened)) => opened,
            // That runtime is over, and the store goes on in this one.
            _ => self.primary.connect().await,
        };
        opened.map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// How often the primary has moved.
    fn moves(&self) -> u64 {
        *self.primary.moves().borrow()
    }

    /// The one that was used last, if it is alive and one to the primary.
    async fn pop_live(&self) -> Option<Kept> {
        loop {
            let mut kept = self.lock().pop()?;
            if kept.moves != self.moves() {
                continue;
            }
            if kept.since.elapsed() < FRESH {
                return Some(kept);
            }
            let asked = tokio::time::timeout(ASKED, kept.conn.ping()).await;
            if matches!(asked, Ok(Ok(()))) {
                return Some(kept);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        // A list of connections is whole at any time.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Whether nobody has used it before.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn conn(&mut self) -> &mut PgConnection {
        match &mut self.conn {
            Which::Own(conn) => conn,
            Which::Lent(lent) => &mut lent.conn,
        }
    }

    /// Rolls back a transaction that was left open. (To begin one within another is a warning of the server's, not an error; a ROLLBACK
    /// alone would be a warning at every other time.)
    async fn cleaned(mut self) -> Result<Self, sqlx::Error> {
        self.conn().begin().await?.rollback().await?;
        Ok(self)
    }
}

/// Begins a transaction, and completes the `BEGIN` even if the caller is cancelled.
///
/// sqlx's own `begin` is not like that: dropped before the server has answered, it leaves the transaction open and gives the connection back
/// to the pool, where the writes of others join it and are never committed.
///
/// # Errors
/// There is no connection, or it failed.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    let beginning = tokio::spawn(async move { pool.begin().await });
    beginning.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}
