//! Calls that end: in time, and with a panic as an error.

use super::StoreError;
use crate::catch_panic::{Panicked, catch_panic};
use std::future::Future;
use std::time::Duration;

/// Whether a call may change what is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It changes nothing.
    Read,
    /// It may change something.
    Write,
}

impl Access {
    /// The error of a call that began and has no answer: a write may have been done, a read has changed nothing.
    pub(super) fn unanswered(self, why: &str) -> StoreError {
        match self {
            Self::Read => StoreError::Unavailable(why.into()),
            Self::Write => StoreError::Lost(why.into()),
        }
    }

    /// The error of a call that was not answered in time.
    pub(super) fn too_late(self) -> StoreError {
        self.unanswered("the store did not answer in time")
    }
}

/// Waits for a call to a database, no longer than `limit`. [`StoreHandle`](super::StoreHandle) bounds the calls to a store; this is for what
/// is kept beside the records, as an outbox.
///
/// # Errors
/// As the call's. A write that was not answered in time, or panicked, is [`StoreError::Lost`], a read [`StoreError::Unavailable`].
pub async fn bounded<T>(
    access: Access,
    limit: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(limit, unbounded(access, call)).await.unwrap_or_else(|_| Err(access.too_late()))
}

/// Waits for a call, however long it takes.
pub(super) async fn unbounded<T>(
    access: Access,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    catch_panic(call).await.unwrap_or_else(|Panicked| Err(access.unanswered("the store panicked")))
}
