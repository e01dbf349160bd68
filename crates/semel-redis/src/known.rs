//! Operations that changed here a moment ago: nothing older of theirs is believed any more.

use semel::OperationId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The versions that this instance wrote, or may have written, a moment ago. With it, an instance never hears of its own operation how it was
/// before, whatever became of it in Redis.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Operations>);

#[derive(Debug, Default)]
struct Operations {
    /// The highest version, and when it was written last.
    versions: HashMap<OperationId, (u64, Duration)>,
    /// In the order of their writing, by the time since boot.
    order: VecDeque<(Duration, OperationId)>,
}

impl Known {
    /// Takes note of a version. Forgets what is longer ago than `lasts`.
    pub(crate) fn note(&self, id: OperationId, version: u64, boottime: Duration, lasts: Duration) {
        let mut operations = self.lock();
        while let Some((at, old)) = operations.order.front().copied()
            && boottime.saturating_sub(at) > lasts
        {
            operations.order.pop_front();
            if operations.versions.get(&old).is_some_and(|(_, last)| *last == at) {
                operations.versions.remove(&old);
            }
        }
        let known = operations.versions.entry(id).or_insert((version, boottime));
        *known = (known.0.max(version), boottime);
        operations.order.push_back((boottime, id));
    }

    /// Whether a later version than this one was written here.
    pub(crate) fn has_later(&self, id: &OperationId, version: u64) -> bool {
        self.lock().versions.get(id).is_some_and(|(known, _)| *known > version)
    }

    fn lock(&self) -> MutexGuard<'_, Operations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_for_as_long_as_a_guard_could_last() {
        let (known, lasts, at) = (Known::default(), Duration::from_secs(4), Duration::from_secs);
        let ids = [1, 2].map(OperationId::from_u128);
        known.note(ids[0], 2, at(1), lasts);
        known.note(ids[0], 3, at(2), lasts);
        known.note(ids[1], 7, at(6), lasts);
        assert!(known.has_later(&ids[0], 2) && known.has_later(&ids[1], 6));
        assert!(!known.has_later(&ids[0], 3) && !known.has_later(&ids[1], 7));
        known.note(ids[1], 7, at(7), lasts);
        assert!(!known.has_later(&ids[0], 2) && known.has_later(&ids[1], 6));
    }
}
