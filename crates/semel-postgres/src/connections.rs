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
//! From an application's own pool the store keeps no connection.
//!
//! Calls of the store's own that wait do so in one queue for both, or a connection could be idle while a caller waits for the pool. A
//! kept connection no longer belongs to the pool, which may open another one for direct users.

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, PgPool, Postgres, Transaction};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A connection that has lain idle for longer may have died with a server that was restarted: it is asked before it is used.
const FRESH: Duration = Duration::from_secs(1);

/// Where connections come from. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pub(crate) pool: PgPool,
    own: Option<Arc<Own>>,
}

/// What the store keeps of a pool that is its own.
#[derive(Debug)]
struct Own {
    /// One permit for each connection that may be in use.
    permits: Arc<Semaphore>,
    patience: Duration,
    /// Connections live as long as the runtime that they were opened in: that of the store, not of its first caller.
    runtime: Handle,
    kept: Mutex<Vec<(PgConnection, Instant)>>,
}

/// A connection in use.
pub(crate) struct Taken {
    conn: Which,
    permit: Option<OwnedSemaphorePermit>,
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

    /// From a pool of its own, at most `most` at once. Called within the runtime that the connections live in.
    pub(crate) fn own(pool: PgPool, most: u32) -> Self {
        let permits = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX)));
        let patience = pool.options().get_acquire_timeout();
        Self {
            pool,
            own: Some(Arc::new(Own {
                permits,
                patience,
                runtime: Handle::current(),
                kept: Mutex::default(),
            })),
        }
    }

    pub(crate) async fn take(&self) -> Result<Taken, sqlx::Error> {
        let Some(own) = &self.own else {
            let lent = Lent { conn: self.pool.acquire().await?, well: false };
            return Taken { conn: Which::Lent(lent), permit: None }.cleaned().await;
        };
        let permit = tokio::time::timeout(own.patience, own.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        let taken = |conn: PgConnection| Taken { conn: Which::Own(Box::new(conn)), permit: Some(permit) };
        match own.pop_live().await {
            Some(conn) => Ok(taken(conn)),
            None => taken(own.open(&self.pool).await?).cleaned().await,
        }
    }

    /// Gets back one over which a call has gone well.
    pub(crate) fn give_back(&self, taken: Taken) {
        match (taken.conn, &self.own) {
            (Which::Own(conn), Some(own)) if !self.pool.is_closed() => {
                own.lock().push((*conn, Instant::now()));
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
            for (conn, _) in kept {
                let _closed = conn.close().await;
            }
        }
        self.pool.close().await;
    }
}

impl Own {
    async fn open(&self, pool: &PgPool) -> Result<PgConnection, sqlx::Error> {
        let (acquiring, runtime) = (pool.clone(), &self.runtime);
        match runtime.spawn(async move { acquiring.acquire().await }).await {
            Ok(acquired) => Ok(acquired?.detach()),
            // That runtime is over, and the store goes on in this one.
            Err(_) => Ok(pool.acquire().await?.detach()),
        }
    }

    /// The one that was used last, if it is alive.
    async fn pop_live(&self) -> Option<PgConnection> {
        loop {
            let (mut conn, since) = self.lock().pop()?;
            if since.elapsed() < FRESH || conn.ping().await.is_ok() {
                return Some(conn);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(PgConnection, Instant)>> {
        // A list of connections is whole at any time.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
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
