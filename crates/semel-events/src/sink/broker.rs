//! What sinks at brokers have in common.

#[cfg(feature = "nats")]
use std::fmt;
#[cfg(feature = "nats")]
use std::sync::{Arc, Mutex, PoisonError};

/// Why nothing can be published to a broker. The texts never repeat its address: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBroker {
    /// There can be no NATS server.
    #[error(
        "this is no address of a NATS server: it looks like nats://127.0.0.1:4222, or like several with commas between them"
    )]
    Nats,
    /// There can be no RabbitMQ.
    #[error("this is no address of RabbitMQ: it looks like amqp://user:password@127.0.0.1:5672/%2f")]
    RabbitMq,
    /// Subjects cannot begin like this.
    #[error(
        "no subject begins like this: it is words with dots between them, such as payments or shop.payments, without * and >"
    )]
    Subject,
}

/// Why there is no connection at the moment.
#[cfg(feature = "nats")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<String>>>);

#[cfg(feature = "nats")]
impl Trouble {
    pub(crate) fn is(&self, what: String) {
        self.set(Some(what));
    }

    pub(crate) fn over(&self) {
        self.set(None);
    }

    fn set(&self, what: Option<String>) {
        // A text is valid at any time.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}

#[cfg(feature = "nats")]
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(what) => write!(f, ": {what}"),
            None => Ok(()),
        }
    }
}
