//! Whether a failover at this moment could lose what is acknowledged.

use semel::StoreError;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a failover at this moment could lose what is acknowledged, although the store was opened as
/// [`Synchronous`](super::Replication::Synchronous). Clones tell the same.
///
/// While it could, nothing new is reserved; outcomes are stored all the same, as what they tell has happened.
#[derive(Clone, Default, Debug)]
pub struct Risk(Arc<Mutex<Option<Arc<str>>>>);

impl Risk {
    /// Why it could; `None`: it could not, as far as the store can see.
    #[must_use]
    pub fn reason(&self) -> Option<Arc<str>> {
        // One value, valid at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, reason: Option<String>) {
        let reason: Option<Arc<str>> = reason.map(Arc::from);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &reason) {
            (None, Some(reason)) => {
                tracing::error!(%reason, "a failover could lose acknowledged outcomes: nothing new is reserved");
            }
            (Some(_), None) => tracing::info!("synchronous replication holds again"),
            _ => {}
        }
        *known = reason;
    }

    /// Refuses what a failover could lose.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.reason() {
            Some(reason) => Err(StoreError::Unavailable(format!(
                "a failover could lose what is reserved now, and it would be executed again: {reason}"
            ))),
            None => Ok(()),
        }
    }
}
