//! What is known of one tenant: how many keys it has, and how many it may make at once.
//!
//! How many it has is the store's word, asked for now and then, and what this instance has made since. What others make meanwhile is
//! not known before the next word: that is how far a tenant can get beyond its quota.

use super::bucket::Bucket;
use super::{Admission, Quota};
use crate::store::{StoreError, StoreHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long the store's word is good. Counting is cheap, but not free.
const GOOD_FOR: Duration = Duration::from_secs(5);
/// Counting may take this part of the time, whatever a tenant has.
const SHARE: u32 = 20;
/// How long a count may take. Longer than a request waits for it: the next one finds it done.
const LONGEST_COUNT: Duration = Duration::from_secs(60);
/// `Retry-After` for a client at its quota: some of its keys will have expired by then.
const RETRY_LIVE: Duration = Duration::from_secs(60);

pub(super) struct Account {
    known: Mutex<Known>,
    counted: Notify,
}

struct Known {
    bucket: Option<Bucket>,
    /// The store's last word.
    live: Option<u64>,
    /// Passes given out since that was asked for.
    since: u64,
    counting: bool,
    next_count: Instant,
    /// Why the last count came to nothing.
    failed: Option<StoreError>,
}

impl Account {
    pub(super) fn new(quota: &Quota) -> Arc<Self> {
        let known = Known {
            bucket: quota.new_keys.map(Bucket::full),
            live: None,
            since: 0,
            counting: false,
            next_count: Instant::now(),
            failed: None,
        };
        Arc::new(Self { known: Mutex::new(known), counted: Notify::new() })
    }

    /// Waits until the keys were counted for once, and has them counted again beside the requests when that is too long ago.
    pub(super) async fn counted(
        self: &Arc<Self>,
        store: &StoreHandle,
        tenant: &str,
        most: u64,
    ) -> Result<(), StoreError> {
        let counted = self.counted.notified();
        tokio::pin!(counted);
        // Subscribed before the check, so that no notification is missed.
        counted.as_mut().enable();
        if let Some((counting, since)) = self.next_count() {
            tokio::spawn(counting.count(store.clone(), tenant.to_owned(), most, since));
        }
        if self.known().live.is_some() {
            return Ok(());
        }
        let in_time = tokio::time::timeout(store.timeout(), counted).await.is_ok();
        let known = self.known();
        match (&known.live, &known.failed) {
            (Some(_), _) => Ok(()),
            (None, Some(error)) if in_time => Err(error.clone()),
            _ => Err(StoreError::Unavailable("counting the tenant's keys timed out".into())),
        }
    }

    /// The next count, if it is due and not running yet, and how many keys were created since the last one.
    fn next_count(self: &Arc<Self>) -> Option<(Counting, u64)> {
        let mut known = self.known();
        let is_time = !known.counting && known.next_count <= Instant::now();
        known.counting |= is_time;
        is_time.then(|| (Counting(Arc::clone(self)), known.since))
    }

    /// Whether it may make a new key now, as far as is known.
    pub(super) fn admit(self: &Arc<Self>, quota: &Quota) -> Admission {
        let mut known = self.known();
        if let Some(most) = quota.live_keys
            && known.live.unwrap_or(u64::MAX).saturating_add(known.since) >= most
        {
            return Admission::Refused { retry_after: RETRY_LIVE };
        }
        if let (Some(rate), Some(bucket)) = (quota.new_keys, &mut known.bucket)
            && let Err(retry_after) = bucket.take(rate)
        {
            return Admission::Refused { retry_after };
        }
        known.since += 1;
        Admission::Granted(Pass(Some(Arc::clone(self))))
    }

    fn put_back(&self) {
        let mut known = self.known();
        known.since = known.since.saturating_sub(1);
        if let Some(bucket) = &mut known.bucket {
            bucket.put_back();
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A poisoned lock is safe to use: the next count corrects any number.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running count, which ends in every case: a store that panics, or a runtime that ends before its task has begun, must not keep others
/// from counting again.
struct Counting(Arc<Account>);

impl Counting {
    async fn count(self, store: StoreHandle, tenant: String, most: u64, since: u64) {
        let begun = Instant::now();
        let counted = store.count_live(tenant, most, LONGEST_COUNT).await;
        let mut known = self.0.known();
        match counted {
            Ok(live) => {
                known.live = Some(live);
                known.since = known.since.saturating_sub(since);
                known.failed = None;
            }
            Err(error) => {
                tracing::warn!(%error, "the keys of a tenant could not be counted for its quota");
                known.failed = Some(error);
            }
        }
        // Without a first word nothing is admitted: then the next request asks again.
        let pause = known.live.map_or(Duration::ZERO, |_| GOOD_FOR.max(begun.elapsed() * SHARE));
        known.next_count = Instant::now() + pause;
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.known().counting = false;
        self.0.counted.notify_waiters();
    }
}

/// The right to make one new key. Dropped unused, it is as if it had never been given out.
#[must_use]
pub(in crate::engine) struct Pass(Option<Arc<Account>>);

impl Pass {
    /// For a tenant without a quota.
    pub(super) fn free() -> Self {
        Self(None)
    }

    /// The key is made, or may be.
    pub(in crate::engine) fn used(mut self) {
        self.0 = None;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(account) = self.0.take() {
            account.put_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn a_runtime_that_ends_before_the_count_has_begun_keeps_nobody_from_counting() {
        let account = {
            let _time = runtime().enter();
            Account::new(&Quota { live_keys: Some(1), new_keys: None })
        };
        let store = StoreHandle::new(Arc::new(MemoryStore::new()), Duration::from_secs(60));
        let counted = || account.counted(&store, "tenant", 1);
        let ending = runtime();
        {
            let _here = ending.enter();
            let mut waiting = pin!(counted());
            let polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending() && account.known().counting, "its task waits for its turn");
        }
        drop(ending);
        assert!(!account.known().counting);
        runtime().block_on(counted()).unwrap();
        assert_eq!(account.known().live, Some(0));
    }
}
