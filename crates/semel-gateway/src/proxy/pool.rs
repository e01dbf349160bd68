//! Connections to the service that wait for their next request.

use super::connection::Connection;
use crate::limits::Limits;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// The idle connections, the one used last on top: under little load the others grow old and are closed.
pub(super) struct Pool {
    idle: Mutex<Idle>,
    most: usize,
    expires_after: Duration,
}

#[derive(Default)]
struct Idle {
    connections: Vec<(Box<Connection>, Instant)>,
    is_watched: bool,
}

impl Pool {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            idle: Mutex::default(),
            most: limits.upstream_idle_connections,
            expires_after: limits.upstream_idle_timeout,
        })
    }

    /// A connection that was used within `freshness`, and that the service has not hung up on.
    pub(super) fn take(&self, freshness: Duration) -> Option<Box<Connection>> {
        loop {
            let mut connection = {
                let mut idle = self.idle();
                let (_, since) = idle.connections.last()?;
                if since.elapsed() > freshness.min(self.expires_after) {
                    // Those below are older still.
                    return None;
                }
                idle.connections.pop()?.0
            };
            if connection.is_alive() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, if it can take another request.
    pub(super) fn put(self: &Arc<Self>, mut connection: Box<Connection>) {
        if connection.is_idle() {
            self.keep(connection);
        }
    }

    /// Keeps a connection that is idle.
    pub(super) fn keep(self: &Arc<Self>, connection: Box<Connection>) {
        let mut idle = self.idle();
        if idle.connections.len() >= self.most {
            return;
        }
        idle.connections.push((connection, Instant::now()));
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self), self.expires_after));
        }
    }

    /// Drops what has expired. Whether anything is left.
    fn tidy(&self) -> bool {
        let mut idle = self.idle();
        let kept = idle.connections.partition_point(|(_, since)| since.elapsed() > self.expires_after);
        let expired: Vec<_> = idle.connections.drain(..kept).collect();
        idle.is_watched = !idle.connections.is_empty();
        let is_watched = idle.is_watched;
        drop(idle);
        // Closing takes a moment, and nobody else is to wait for it.
        drop(expired);
        is_watched
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        // Connections are only moved under the lock: a poisoned one is as good as any.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what nobody uses any more, until nothing is left.
async fn watch(pool: Weak<Pool>, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.tidy() {
            return;
        }
    }
}
