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
    #[error("not a NATS URL: write nats://127.0.0.1:4222, or several separated by commas")]
    Nats,
    /// There can be no RabbitMQ.
    #[error("not a RabbitMQ URL: write amqp://user:password@127.0.0.1:5672/%2f")]
    RabbitMq,
    /// Subjects cannot begin like this.
    #[error(
        "not a valid subject prefix: write words separated by dots, such as payments or shop.payments, without * and >"
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
