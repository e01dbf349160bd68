//! Connections to the service that wait for their next request.

use super::connection::Connection;
use crate::limits::Limits;
use crate::listener::core_threads;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// The idle connections of each thread. The one used last is the next to be used: under little load the others grow old and are closed.
pub(in crate::upstream) struct Pool {
    threads: Box<[Mutex<Idle>]>,
    /// Of all threads.
    count: AtomicUsize,
    most: usize,
    expires_after: Duration,
}

#[derive(Default)]
struct Idle {
    /// The one used last is the last.
    connections: VecDeque<(Box<Connection>, Instant)>,
    is_watched: bool,
}

impl Pool {
    pub(in crate::upstream) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            threads: (0..core_threads::count()).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
            most: limits.upstream_idle_connections,
            expires_after: limits.upstream_idle_timeout,
        })
    }

    /// A connection that was used within `freshness`, and that the service has not hung up on.
    pub(in crate::upstream) fn take(&self, freshness: Duration) -> Option<Box<Connection>> {
        loop {
            let mut connection = {
                let mut idle = self.idle(core_threads::here());
                let (_, since) = idle.connections.back()?;
                if since.elapsed() > freshness.min(self.expires_after) {
                    // The others are older still.
                    return None;
                }
                self.count.fetch_sub(1, Relaxed);
                idle.connections.pop_back()?.0
            };
            if connection.is_alive() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, if it can take another request.
    pub(in crate::upstream) fn put(self: &Arc<Self>, mut connection: Box<Connection>) {
        if connection.is_idle() {
            self.keep(connection);
        }
    }

    /// Keeps a connection that is idle, in place of the oldest one where there are as many as may be: one that nobody has used for long may be too
    /// old for what comes next, and must not keep out one that is not.
    pub(in crate::upstream) fn keep(self: &Arc<Self>, connection: Box<Connection>) {
        let thread = core_threads::here();
        let counted = |count| (count < self.most).then_some(count + 1);
        if self.count.fetch_update(Relaxed, Relaxed, counted).is_err() && !self.give_one_up(thread) {
            return;
        }
        let mut idle = self.idle(thread);
        idle.connections.push_back((connection, Instant::now()));
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self), thread, self.expires_after));
        }
    }

    /// Closes the oldest connection of this thread, or of another where it has none. Its place stays counted: whether there is one now.
    fn give_one_up(&self, thread: usize) -> bool {
        let others = (0..self.threads.len()).filter(|other| *other != thread);
        std::iter::once(thread).chain(others).any(|thread| {
            let oldest = self.idle(thread).connections.pop_front();
            oldest.is_some()
        })
    }

    /// Drops what has expired. Whether anything is left.
    fn tidy(&self, thread: usize) -> bool {
        let mut idle = self.idle(thread);
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

    fn idle(&self, thread: usize) -> MutexGuard<'_, Idle> {
        // Connections are only moved under the lock: a poisoned one is as good as any.
        self.threads[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what nobody on a thread uses any more, until nothing is left.
async fn watch(pool: Weak<Pool>, thread: usize, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.tidy(thread) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::http1::connection::tests::connected;

    #[tokio::test]
    async fn no_more_are_kept_than_may_be() {
        let limits = Limits { upstream_idle_connections: 1, ..Limits::default() };
        let pool = Pool::new(&limits);
        let ((one, _line), (two, _other_line)) = (connected().await, connected().await);
        for _ in 0..2 {
            assert!(pool.take(Duration::MAX).is_none());
        }
        let last: *const Connection = &*two;
        pool.put(one);
        pool.put(two);
        let kept = pool.take(Duration::MAX).expect("one was kept");
        assert!(std::ptr::eq(&*kept, last), "the one that was used last");
        assert!(pool.take(Duration::MAX).is_none(), "and no other");
        // It can be kept again, and what has expired makes room.
        pool.put(kept);
        assert_eq!(pool.count.load(Relaxed), 1);
        let mut idle = pool.idle(core_threads::here());
        idle.connections[0].1 = Instant::now().checked_sub(limits.upstream_idle_timeout * 2).unwrap();
        drop(idle);
        assert!(!pool.tidy(core_threads::here()));
        assert_eq!(pool.count.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn what_is_too_old_for_a_request_keeps_nothing_out() {
        let limits = Limits { upstream_idle_connections: 1, ..Limits::default() };
        let pool = Pool::new(&limits);
        let ((old, mut line), (young, _other_line)) = (connected().await, connected().await);
        let freshness = Duration::from_secs(1);
        pool.put(old);
        pool.idle(core_threads::here()).connections[0].1 = Instant::now().checked_sub(freshness * 2).unwrap();
        assert!(pool.take(freshness).is_none());
        pool.put(young);
        assert!(pool.take(freshness).is_some(), "else every request would have to dial");
        let read = tokio::io::AsyncReadExt::read(&mut line, &mut [0]).await;
        assert!(matches!(read, Ok(0)), "the old one is closed");
        assert_eq!(pool.count.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn a_thread_without_connections_takes_the_place_of_anothers() {
        let limits = Limits { upstream_idle_connections: 1, ..Limits::default() };
        let threads = [Mutex::default(), Mutex::default()].into();
        let pool = Pool::new(&limits);
        let mut pool = Arc::into_inner(pool).expect("nobody else has it");
        pool.threads = threads;
        let pool = Arc::new(pool);
        let ((one, _line), (two, _other_line)) = (connected().await, connected().await);
        pool.idle(1).connections.push_back((one, Instant::now()));
        pool.count.store(1, Relaxed);
        pool.put(two);
        assert!(pool.idle(1).connections.is_empty());
        assert!(pool.take(Duration::MAX).is_some());
        assert_eq!(pool.count.load(Relaxed), 0);
    }
}
