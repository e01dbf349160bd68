//! What is done with a message.

use super::delivery::Delivery;
use super::failure::Failure;
use std::future::Future;

/// What is done with a message. It runs for each delivery, and so perhaps several times for one message: what must happen once goes
/// through an [inbox](crate::inbox).
///
/// A function that takes a [`Delivery`] is one.
pub trait Handler: Send + Sync + 'static {
    /// Handles one delivery. Once it returns `Ok`, the message is acknowledged, so that what it did has to be committed by then.
    fn handle(&self, delivery: Delivery) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl<F, R> Handler for F
where
    F: Fn(Delivery) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), Failure>> + Send,
{
    fn handle(&self, delivery: Delivery) -> impl Future<Output = Result<(), Failure>> + Send {
        self(delivery)
    }
}
