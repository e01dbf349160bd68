//! Which pointers are there, as far as this process knows by heart.

use semel::OperationId;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many operations are known by heart to have their pointers, twice.
const KNOWN: usize = 10_000;

/// Operations whose pointers are there, as far as this process has seen of late.
#[derive(Debug, Default)]
pub(crate) struct KnownPointers(Mutex<[HashSet<OperationId>; 2]>);

impl KnownPointers {
    pub(crate) fn are_there(&self, ids: impl Iterator<Item = OperationId>) {
        let mut known = self.lock();
        for id in ids {
            if known[0].len() >= KNOWN {
                known[1] = std::mem::take(&mut known[0]);
            }
            known[0].insert(id);
        }
    }

    pub(crate) fn is_there(&self, id: OperationId) -> bool {
        self.lock().iter().any(|known| known.contains(&id))
    }

    fn lock(&self) -> MutexGuard<'_, [HashSet<OperationId>; 2]> {
        // Two sets that are each valid at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
