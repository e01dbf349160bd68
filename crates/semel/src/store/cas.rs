//! The compare-and-swap loop: decide on a record, write on condition that it is still the same, and decide again if it is not.

use super::{StoreError, StoreHandle, Swap, Swapped};
use crate::audit::AuditEntry;
use crate::record::{Expected, Record};
use crate::time::Now;
use crate::transition::Change;

/// Maximum number of writes. Each loss on the version means that another write succeeded, so it takes a storm to run out of them.
const MAX_WRITES: usize = 32;

/// What a decision is made on.
#[derive(Debug)]
pub enum Look {
    /// The record that the caller has.
    First,
    /// This record, which is there in place of the one that was decided on. Nothing was written.
    Changed(Box<Record>, Now),
    /// The answer to the write was lost: it may have been done. Read back and decide on what is there, or give up with this error. Never
    /// write the same again without a look.
    Lost(StoreError),
}

/// The result of a decision.
#[derive(Debug)]
pub enum Decided<T> {
    /// Write this change, if the expected record is still there.
    Write(Expected, Change),
    /// The same, with an entry of the audit in the same commit. For changes that put a record.
    WriteAudited(Expected, Change, Box<AuditEntry>),
    /// There is nothing to write.
    Stop(T),
}

/// Decides on a record that others may change meanwhile.
pub trait Decide: Send {
    /// What it ends with where there is nothing to write.
    type Stop: Send;

    /// Decides. Only what is decided last counts.
    fn decide(&mut self, look: Look) -> impl Future<Output = Result<Decided<Self::Stop>, StoreError>> + Send;
}

/// How the loop ended.
#[derive(Debug)]
pub enum Updated<T> {
    /// The last decision is written. This is the record now; `None`: it was removed.
    Written(Option<Box<Record>>),
    /// The last decision was to write nothing.
    Stopped(T),
    /// There is no record; nothing was written.
    Missing,
    /// An open transaction holds the record; nothing was written.
    Locked,
}

/// Decides and writes, until the write goes through or there is nothing to write.
///
/// A crash, or dropping the future, leaves at most one of the decided changes written.
///
/// # Errors
/// The decision's own, as they are. [`StoreError::Lost`] only where the last look was one at a lost answer. Whatever the store fails with
/// otherwise is about the last write alone: a caller that went on after [`Look::Lost`] has to remember that.
pub async fn compare_and_swap<D: Decide>(
    store: &StoreHandle,
    decision: &mut D,
) -> Result<Updated<D::Stop>, StoreError> {
    let mut look = Look::First;
    for _ in 0..MAX_WRITES {
        let (expected, change, entry) = match decision.decide(look).await? {
            Decided::Write(expected, change) => (expected, change, None),
            Decided::WriteAudited(expected, change, entry) => (expected, change, Some(entry)),
            Decided::Stop(value) => return Ok(Updated::Stopped(value)),
        };
        let (answer, next) = match change {
            Change::Put { next, history } => {
                let swap = Swap { expected, next, history };
                match entry {
                    None => (store.swap(&swap).await, Some(swap.next)),
                    Some(entry) => {
                        let next = swap.next.clone();
                        (store.audit(*entry, Some(swap)).await, Some(next))
                    }
                }
            }
            Change::Remove => (store.remove(&expected).await, None),
        };
        look = match answer {
            Ok((now, Swapped::Done)) => {
                return Ok(Updated::Written(next.map(|next| Box::new((*next).at(now)))));
            }
            Ok((now, Swapped::Changed(record))) => Look::Changed(record, now),
            Ok((_, Swapped::Missing)) => return Ok(Updated::Missing),
            Ok((_, Swapped::Locked)) => return Ok(Updated::Locked),
            Ok((_, Swapped::Damaged(why))) => return Err(StoreError::Damaged(why)),
            Err(error @ StoreError::Lost(_)) => Look::Lost(error),
            Err(error) => return Err(error),
        };
    }
    match look {
        Look::Lost(error) => Err(error),
        Look::First | Look::Changed(..) => Err(StoreError::Unavailable("the record keeps changing".into())),
    }
}

/// The error of a write that an open transaction kept out.
#[must_use]
pub fn locked() -> StoreError {
    StoreError::Unavailable("an open transaction holds the record".into())
}
