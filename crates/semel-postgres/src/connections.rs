//! Connections at hand.
//!
//! A pool of sqlx's asks the server for a sign of life each time that it gets a connection back, and by default before it hands one
//! out: two more round trips for every call of one. So the store keeps a few connections of its own out of the pool between
//! calls. A connection over which a call failed, or was given up midway, goes back to the pool, which finds out what it is worth.
//!
//! Over an application's own pool the store keeps none: they are not its to keep.
//!
//! Whoever waits does so in one queue for both, or a connection could lie at hand while somebody waits for the pool.

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, PgPool, Postgres};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
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
    kept: Mutex<Vec<(PgConnection, Instant)>>,
}

/// A connection in use.
pub(crate) struct Taken {
    conn: Which,
    permit: Option<OwnedSemaphorePermit>,
}

enum Which {
    Kept(Box<PgConnection>),
    Pooled(PoolConnection<Postgres>),
}

impl Connections {
    /// Of a pool that is the application's.
    pub(crate) fn of_application(pool: PgPool) -> Self {
        Self { pool, own: None }
    }

    /// Of a pool that nobody else uses, so many at once.
    pub(crate) fn own(pool: PgPool, most: u32) -> Self {
        let permits = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX)));
        let patience = pool.options().get_acquire_timeout();
        Self { pool, own: Some(Arc::new(Own { permits, patience, kept: Mutex::default() })) }
    }

    pub(crate) async fn take(&self) -> Result<Taken, sqlx::Error> {
        let Some(own) = &self.own else {
            return Ok(Taken { conn: Which::Pooled(self.pool.acquire().await?), permit: None });
        };
        let permit = tokio::time::timeout(own.patience, own.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        let conn = match own.pop_live().await {
            Some(conn) => Which::Kept(Box::new(conn)),
            None => Which::Pooled(self.pool.acquire().await?),
        };
        Ok(Taken { conn, permit: Some(permit) })
    }

    /// Gets back one over which a call has gone well.
    pub(crate) fn give_back(&self, taken: Taken) {
        let Some(own) = self.own.as_ref().filter(|_| !self.pool.is_closed()) else { return };
        let conn = match taken.conn {
            Which::Kept(conn) => *conn,
            Which::Pooled(conn) => conn.detach(),
        };
        own.lock().push((conn, Instant::now()));
        // Only now, so that whoever waits finds it.
        drop(taken.permit);
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
            Which::Kept(conn) => conn,
            Which::Pooled(conn) => conn,
        }
    }
}
