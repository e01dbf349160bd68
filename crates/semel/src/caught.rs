//! Somebody else's bug is theirs: a store, a service or a handler that panics must not end the task that ran into it, whose client would be
//! told that nobody knows what happened.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The work ended in a panic, which has been told on standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Panicked;

/// Runs `work`; a panic in it is a value.
///
/// # Errors
/// It panicked, at whatever point of it.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // What a panic left behind is dropped with the work: it is not polled again, and nobody looks at it.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
