//! Catches panics of stores, services and handlers, so that they do not end the task that called them, whose client would be
//! told that the outcome is unknown.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The work panicked. The panic hook has printed the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Panicked;

/// Runs `work`; a panic in it is a value.
///
/// # Errors
/// It panicked, at whatever point of it.
pub async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // What a panic left half-done is dropped with the work, which is never polled again.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
