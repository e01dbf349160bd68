//! Records that cannot be read, met on the way to others.

use crate::store::StoreError;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How many damaged records are logged one by one. After that one last line is logged.
const MOST: usize = 1_000;

/// Logs damaged records that a store skips: each one once, not at every read.
#[derive(Debug, Default)]
pub struct DamageLog {
    told: Mutex<BTreeSet<String>>,
}

impl DamageLog {
    /// How many damaged records may stand before those that are looked for.
    pub const LIMIT: usize = MOST;

    /// Skips and logs a damaged record. Any other error is returned.
    ///
    /// # Errors
    /// The error, unless it is [`StoreError::Damaged`].
    pub fn pass(&self, error: StoreError) -> Result<(), StoreError> {
        let StoreError::Damaged(what) = error else { return Err(error) };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST && told.insert(what.clone()) {
            tracing::error!(%what, "damaged record skipped");
            if told.len() == MOST {
                tracing::error!("too many damaged records: further ones are not logged");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_damage_is_passed_over() {
        let passed = DamageLog::default();
        for _ in 0..2 {
            assert!(passed.pass(StoreError::Damaged("operation 1: its state".into())).is_ok());
        }
        assert_eq!(passed.told.lock().unwrap().len(), 1);
        assert!(passed.pass(StoreError::Unavailable("away".into())).is_err());
        for number in 0..2 * MOST {
            passed.pass(StoreError::Damaged(number.to_string())).unwrap();
        }
        assert_eq!(passed.told.lock().unwrap().len(), MOST, "it does not grow without end");
    }
}
