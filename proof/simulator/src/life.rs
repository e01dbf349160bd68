//! The life of one process: it can be killed for good, or stand still for a while.

use std::future::pending;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// One process, from its start to its end. Whatever leaves it or comes back to it passes here first: to everybody else, a process that says
/// and hears nothing any more is dead, whatever its tasks go on computing.
#[derive(Debug, Default)]
pub(crate) struct Life {
    killed: AtomicBool,
    death: Notify,
    stands_still_until: Mutex<Option<Instant>>,
    /// The same, unless it is woken before.
    sleeps_until: Mutex<Option<Instant>>,
    woken: Notify,
}

impl Life {
    /// Goes on only if the process lives, and not before it has stopped standing still.
    pub(crate) async fn pass(&self) {
        loop {
            if !self.is_alive() {
                return pending().await;
            }
            let [stands_still, sleeps] = [&self.stands_still_until, &self.sleeps_until].map(|until| {
                until.lock().unwrap_or_else(PoisonError::into_inner).filter(|until| *until > Instant::now())
            });
            match (stands_still, sleeps) {
                (Some(until), _) => tokio::time::sleep_until(until).await,
                (None, Some(until)) => {
                    let _ = tokio::time::timeout_at(until, self.woken.notified()).await;
                }
                (None, None) => return,
            }
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.killed.load(Relaxed)
    }

    pub(crate) fn kill(&self) {
        self.killed.store(true, Relaxed);
        self.death.notify_waiters();
    }

    /// Stands still for so long, or for as long as it would have anyway.
    pub(crate) fn stand_still(&self, span: Duration) {
        let mut until = self.stands_still_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Some(Instant::now() + span));
    }

    /// Stands still for so long, unless it is woken.
    pub(crate) fn sleep(&self, span: Duration) {
        let mut until = self.sleeps_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Some(Instant::now() + span));
    }

    pub(crate) fn wake(&self) {
        *self.sleeps_until.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.woken.notify_waiters();
    }

    /// What the work comes to; `None`: the process was killed meanwhile, and the work with it.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut death = std::pin::pin!(self.death.notified());
        death.as_mut().enable();
        if !self.is_alive() {
            return None;
        }
        tokio::select! {
            biased;
            () = death => None,
            done = work => Some(done),
        }
    }
}
