//! The right to execute: whether the owner of an attempt may still act.

use crate::environment::Environment;
use crate::record::Record;
use crate::time::Timestamp;
use crate::transition::{Act, Refusal};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::Notify;

/// The right to execute, as the code that does the work sees it: a proxy that is still sending, a handler between two steps.
///
/// It ends when the outcome is declared unknown (a time-out), when a write of its owner is refused because another attempt took the
/// operation over or settled it, and when the lease has less than its margin left: a third of it, counted from the moment at which the
/// last confirmed extension was *sent* to the store, by `CLOCK_BOOTTIME`, which includes suspended time and cannot be set.
/// Once ended it stays so.
///
/// Its end undoes nothing: the outcome of work that goes on still counts unless evidence settled it first. But
/// send nothing more: another attempt may be about to execute.
///
/// Cheap to clone. From [`Ticket::right`](super::Ticket::right).
#[derive(Clone)]
pub struct Right {
    pub(super) seen: Arc<Seen>,
}

/// Why the right to execute has ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RightEnded {
    /// The outcome was declared unknown: the work took too long, or its ticket was dropped.
    #[error("the outcome of this attempt was declared unknown")]
    InDoubt,
    /// Another attempt took over, or evidence settled the outcome.
    #[error("another attempt took over, or the outcome was settled")]
    Fenced,
    /// The lease has less than its margin left, and no extension was confirmed.
    #[error("the lease could not be extended in time")]
    LeaseOver,
    /// The attempt ended as one in which nothing happened: the next request may execute.
    #[error("this attempt has ended, and the next one may execute")]
    Released,
}

impl RightEnded {
    const ALL: [Self; 4] = [Self::InDoubt, Self::Fenced, Self::LeaseOver, Self::Released];

    /// A short code, as records and logs have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InDoubt => "given_up",
            Self::Fenced => "fenced",
            Self::LeaseOver => "lease_over",
            Self::Released => "released",
        }
    }
}

impl Right {
    /// When the key's window is over: known once the outcome is stored.
    #[must_use]
    pub fn window_ends(&self) -> Option<Timestamp> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).times.expires
    }

    /// Whether it still holds. Ask right before sending what cannot be taken back.
    ///
    /// # Errors
    /// Why it has ended.
    pub fn check(&self) -> Result<(), RightEnded> {
        self.seen.check()
    }

    /// As [`check`](Self::check), without asking the clock: a lease that ran out shows a little later.
    ///
    /// # Errors
    /// Why it has ended.
    pub fn check_cheaply(&self) -> Result<(), RightEnded> {
        self.seen.ended_because().map_or(Ok(()), Err)
    }

    /// Has the task of `context` woken when it ends, as [`ended`](Self::ended) does, for the one task that polls all of the work: nothing has to
    /// be kept for it. Another task that calls it takes its place.
    pub fn wakes(&self, context: &Context<'_>) {
        let mut task = self.seen.task.lock().unwrap_or_else(PoisonError::into_inner);
        *task = Some(context.waker().clone());
        drop(task);
        // It may have ended before anybody was to be woken.
        if self.check_cheaply().is_err() {
            context.waker().wake_by_ref();
        }
    }

    /// Waits until it has ended, for a `select!` beside the work. A lease that runs out because the store does not answer is noticed by the
    /// heartbeat, within a tenth of it.
    pub async fn ended(&self) -> RightEnded {
        loop {
            // Made before the look: what ends in between wakes it.
            let notified = self.seen.has_ended.notified();
            if let Err(ended) = self.check() {
                return ended;
            }
            notified.await;
        }
    }
}

impl fmt::Debug for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Right").field(&self.check()).finish()
    }
}

/// What is known of the record, and of the right that goes with it. One allocation for both: every request has one.
pub(super) struct Seen {
    record: Mutex<Record>,
    /// 0 while it holds; else one more than the place of the reason.
    ended: AtomicU8,
    environment: Environment,
    /// Until when it holds, in nanoseconds of [`boottime`](Environment::boottime).
    until: AtomicU64,
    has_ended: Notify,
    /// What the log is to say of a doubt, beside its cause.
    pub(super) detail: Mutex<Option<String>>,
    /// The task that does the work.
    task: Mutex<Option<Waker>>,
}

/// The record as last seen.
impl Deref for Seen {
    type Target = Mutex<Record>;

    fn deref(&self) -> &Mutex<Record> {
        &self.record
    }
}

impl Seen {
    /// A record whose lease of this length was asked for just now.
    pub(super) fn new(record: Record, environment: Environment, lease: Duration) -> Self {
        let begun = environment.boottime();
        Self::begun(record, begun, environment, lease)
    }

    /// A record whose lease of this length was asked for at `begun`, or later.
    pub(super) fn begun(record: Record, begun: Duration, environment: Environment, lease: Duration) -> Self {
        Self {
            record: Mutex::new(record),
            environment,
            ended: AtomicU8::new(0),
            until: AtomicU64::new(holds_until(begun, lease)),
            has_ended: Notify::new(),
            detail: Mutex::new(None),
            task: Mutex::new(None),
        }
    }

    /// Called before an act is written: once one of these may be stored, another attempt may execute.
    pub(super) fn about_to(&self, act: &Act) {
        match act {
            Act::Doubt { .. } => self.end(RightEnded::InDoubt),
            Act::Retryable { .. } | Act::Release { .. } => self.end(RightEnded::Released),
            Act::Extend { .. } | Act::Advance { .. } | Act::Complete { .. } | Act::Fail { .. } => {}
        }
    }

    /// An act is written that was begun then.
    pub(super) fn written(&self, act: &Act, begun: Duration) {
        match act {
            Act::Extend { lease } | Act::Advance { lease, .. } => {
                self.until.fetch_max(holds_until(begun, *lease), Relaxed);
            }
            // Nobody executes after these: there is nothing to stop for.
            Act::Complete { .. } | Act::Fail { .. } => self.keep(),
            Act::Doubt { .. } | Act::Retryable { .. } | Act::Release { .. } => {}
        }
    }

    /// An act was refused.
    pub(super) fn refused(&self, refusal: Refusal) {
        if matches!(refusal, Refusal::Fenced | Refusal::InDoubt) {
            self.end(RightEnded::Fenced);
        }
    }

    /// The operation has ended for good: the lease does not matter any more.
    pub(super) fn keep(&self) {
        self.until.store(u64::MAX, Relaxed);
    }

    /// Ends the right and wakes all waiters. The first reason stays.
    pub(super) fn end(&self, why: RightEnded) {
        let code = RightEnded::ALL.iter().position(|reason| *reason == why).unwrap_or(0) + 1;
        #[expect(clippy::cast_possible_truncation, reason = "there are four reasons")]
        let ended = self.ended.compare_exchange(0, code as u8, Relaxed, Relaxed);
        if ended.is_ok() {
            self.has_ended.notify_waiters();
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(task) = task {
                task.wake();
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), RightEnded> {
        if self.ended_because().is_none()
            && nanoseconds(self.environment.boottime()) >= self.until.load(Relaxed)
        {
            self.end(RightEnded::LeaseOver);
        }
        self.ended_because().map_or(Ok(()), Err)
    }

    fn ended_because(&self) -> Option<RightEnded> {
        let code = usize::from(self.ended.load(Relaxed)).checked_sub(1)?;
        RightEnded::ALL.get(code).copied()
    }
}

/// Two thirds of a lease are for sending. The heartbeat comes after the first; the last is for what is still being sent when the second ends.
fn holds_until(begun: Duration, lease: Duration) -> u64 {
    nanoseconds(begun.saturating_add(lease - lease / 3))
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Fingerprint, OperationId, Owner, RecipeId, RecordKey};
    use crate::policy::Policy;
    use crate::time::Timestamp;
    use crate::transition::{Reservation, reserve};

    const LEASE: Duration = Duration::from_secs(30);

    fn begun_ago(ago: Duration) -> Right {
        let reservation = Reservation {
            key: RecordKey::new("acme", "create_payment", "key"),
            operation_id: OperationId::random(),
            fingerprint: Fingerprint([7; 32]),
            recipe: RecipeId([9; 16]),
            owner: Owner::random(),
        };
        let record = reserve(reservation, &Policy::default()).at(Timestamp::from_millis(0));
        let begun = Environment::default().boottime().saturating_sub(ago);
        Right { seen: Arc::new(Seen::begun(record, begun, Environment::default(), LEASE)) }
    }

    #[test]
    fn it_ends_with_the_margin_of_the_lease_and_an_extension_moves_that() {
        assert_eq!(begun_ago(LEASE / 2).check(), Ok(()));
        let extended = begun_ago(LEASE / 2);
        extended.seen.written(&Act::Extend { lease: LEASE }, Environment::default().boottime());
        assert_eq!(extended.check(), Ok(()));
        // An extension counts from when it was asked for, not from when the store answered.
        let late = begun_ago(LEASE);
        late.seen
            .written(&Act::Extend { lease: LEASE }, Environment::default().boottime().saturating_sub(LEASE));
        assert_eq!(late.check(), Err(RightEnded::LeaseOver));
    }

    #[test]
    fn once_ended_it_stays_so_and_the_first_reason_too() {
        let right = begun_ago(LEASE);
        assert_eq!(right.check_cheaply(), Ok(()), "nobody has looked at the clock");
        assert_eq!(right.check(), Err(RightEnded::LeaseOver));
        right.seen.written(&Act::Extend { lease: LEASE }, Environment::default().boottime());
        right.seen.end(RightEnded::Fenced);
        assert_eq!((right.check(), right.check_cheaply()), {
            let over = Err(RightEnded::LeaseOver);
            (over, over)
        });
    }

    #[tokio::test]
    async fn whoever_waits_is_woken() {
        let right = begun_ago(Duration::ZERO);
        let waiting = tokio::spawn({
            let right = right.clone();
            async move { right.ended().await }
        });
        tokio::task::yield_now().await;
        right.seen.refused(Refusal::AlreadyAdvanced);
        assert_eq!(right.check(), Ok(()));
        right.seen.refused(Refusal::Fenced);
        assert_eq!(waiting.await.unwrap(), RightEnded::Fenced);
    }
}
