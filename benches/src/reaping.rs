//! What reapers do, told by whoever watches them.

use semel::observe::{Event, Observer};
use semel::{DueKind, DueQuery, Store, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts what was forgotten.
#[derive(Debug, Default)]
pub struct Forgotten(AtomicU64);

impl Forgotten {
    /// How many records so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Observer for Forgotten {
    fn count(&self, _operation: &str, event: Event) {
        if event == Event::TtlPruned {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// By how many seconds the record is late that should have been seen to first.
///
/// # Errors
/// The store's own.
pub async fn lateness(store: &dyn Store) -> Result<f64, StoreError> {
    let mut latest = Duration::ZERO;
    for kind in [DueKind::Window, DueKind::Purge] {
        let answer = store.due(DueQuery { kind, after: None, limit: 1 }).await?;
        for (_, since) in answer.items.iter().filter_map(semel::Record::due) {
            latest = latest.max(answer.now.after(since));
        }
    }
    Ok(latest.as_secs_f64())
}
