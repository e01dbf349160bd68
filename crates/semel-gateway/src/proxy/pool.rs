//! Connections to the service that wait for their next request.

use super::connection::Connection;
use crate::lanes;
use crate::limits::Limits;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// The idle connections of each lane, the one used last on top: under little load the others grow old and are closed.
pub(super) struct Pool {
    lanes: Box<[Mutex<Idle>]>,
    /// Of all lanes.
    count: AtomicUsize,
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
            lanes: (0..lanes::count()).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
            most: limits.upstream_idle_connections,
            expires_after: limits.upstream_idle_timeout,
        })
    }

    /// A connection that was used within `freshness`, and that the service has not hung up on.
    pub(super) fn take(&self, freshness: Duration) -> Option<Box<Connection>> {
        loop {
            let mut connection = {
                let mut idle = self.idle(lanes::here());
                let (_, since) = idle.connections.last()?;
                if since.elapsed() > freshness.min(self.expires_after) {
                    // Those below are older still.
                    return None;
                }
                self.count.fetch_sub(1, Relaxed);
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
        let counted = |count| (count < self.most).then_some(count + 1);
        if self.count.fetch_update(Relaxed, Relaxed, counted).is_err() {
            return;
        }
        let lane = lanes::here();
        let mut idle = self.idle(lane);
        idle.connections.push((connection, Instant::now()));
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self), lane, self.expires_after));
        }
    }

    /// Drops what has expired. Whether anything is left.
    fn tidy(&self, lane: usize) -> bool {
        let mut idle = self.idle(lane);
        let kept = idle.connections.partition_point(|(_, since)| since.elapsed() > self.expires_after);
        let expired: Vec<_> = idle.connections.drain(..kept).collect();
        idle.is_watched = !idle.connections.is_empty();
        let is_watched = idle.is_watched;
        drop(idle);
        self.count.fetch_sub(expired.len(), Relaxed);
        // Closing takes a moment, and nobody else is to wait for it.
        drop(expired);
        is_watched
    }

    fn idle(&self, lane: usize) -> MutexGuard<'_, Idle> {
        // Connections are only moved under the lock: a poisoned one is as good as any.
        self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what nobody on a lane uses any more, until nothing is left.
async fn watch(pool: Weak<Pool>, lane: usize, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.tidy(lane) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::connection::tests::connected;

    #[tokio::test]
    async fn no_more_are_kept_than_may_be() {
        let limits = Limits { upstream_idle_connections: 1, ..Limits::default() };
        let pool = Pool::new(&limits);
        let ((one, _line), (two, _other_line)) = (connected().await, connected().await);
        for _ in 0..2 {
            assert!(pool.take(Duration::MAX).is_none());
        }
        pool.put(one);
        pool.put(two);
        let kept = pool.take(Duration::MAX).expect("one was kept");
        assert!(pool.take(Duration::MAX).is_none(), "and no other");
        // It can be kept again, and what has expired makes room.
        pool.put(kept);
        assert_eq!(pool.count.load(Relaxed), 1);
        let mut idle = pool.idle(lanes::here());
        idle.connections[0].1 = Instant::now().checked_sub(limits.upstream_idle_timeout * 2).unwrap();
        drop(idle);
        assert!(!pool.tidy(lanes::here()));
        assert_eq!(pool.count.load(Relaxed), 0);
    }
}
