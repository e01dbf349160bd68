//! A store's bug is the store's: it must not end the request that ran into it, which would be told that nobody knows what happened.

use crate::store::{StoreError, StoreFuture};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// What the call answers. A panic in it is an answer that is lost: it may have been done before.
pub(crate) async fn caught<T>(mut call: StoreFuture<'_, T>) -> Result<T, StoreError> {
    poll_fn(|context| {
        // What a panic left behind is dropped with the call, and nobody looks at it again.
        catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(StoreError::Lost("the store panicked".into()))))
    })
    .await
}
