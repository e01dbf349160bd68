//! A count of what is open, taken from the store.
//!
//! Stores have no cheap count, and none is asked of them: what is open is listed page by page, newest first, up to a
//! limit. In health there are as many open records as requests under way; a number near the limit is an alarm by itself, and
//! whether it is ten thousand or more changes nothing.

use semel::{Filter, Record, State, StoreError, StoreHandle, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// Records of one kind that are looked at, at most.
const LIMIT: usize = 10_000;

/// Records per call to the store.
const PAGE: usize = 1_000;

/// What is open, by operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenOperations {
    /// By label.
    pub operations: BTreeMap<String, Open>,
    /// Open records that cannot be read: whose they are is not known. The log names them.
    pub damaged: u64,
    /// Whether everything was looked at. If not, counts and ages are at least what they say.
    pub whole: bool,
}

/// What is open of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Open {
    /// Operations in progress.
    pub in_progress: u64,
    /// How long ago the oldest of them began.
    pub in_progress_oldest: Duration,
    /// Operations whose outcome is unknown, dead letters among them.
    pub unknown: u64,
    /// How long ago the oldest of them began.
    pub unknown_oldest: Duration,
    /// Operations that only a person can settle.
    pub dead_letters: u64,
}

impl Open {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            in_progress: self.in_progress + other.in_progress,
            in_progress_oldest: self.in_progress_oldest.max(other.in_progress_oldest),
            unknown: self.unknown + other.unknown,
            unknown_oldest: self.unknown_oldest.max(other.unknown_oldest),
            dead_letters: self.dead_letters + other.dead_letters,
        }
    }
}

impl OpenOperations {
    /// Looks at everything that is open. `label` names what an operation is counted under.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn take(store: &StoreHandle, label: impl Fn(&str) -> String) -> Result<Self, StoreError> {
        Self::take_of(store, label, |_| true).await
    }

    /// What is open of the tenants that are allowed. Records that cannot be read are of no tenant that could be told.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn take_of(
        store: &StoreHandle,
        label: impl Fn(&str) -> String,
        is_allowed: impl Fn(&Record) -> bool,
    ) -> Result<Self, StoreError> {
        let now = store.now().await?.earliest;
        let mut all = Self::default();
        let of = |state| Filter { state: Some(state), ..Filter::default() };
        let in_progress = each(store, of(State::InProgress), |record| {
            if !is_allowed(record) {
                return;
            }
            let open = all.operations.entry(label(&record.key.operation)).or_default();
            open.in_progress += 1;
            open.in_progress_oldest = open.in_progress_oldest.max(age(record, now));
        })
        .await?;
        let unknown = each(store, of(State::Unknown), |record| {
            if !is_allowed(record) {
                return;
            }
            let open = all.operations.entry(label(&record.key.operation)).or_default();
            open.unknown += 1;
            open.unknown_oldest = open.unknown_oldest.max(age(record, now));
            open.dead_letters += u64::from(record.dead_letter);
        })
        .await?;
        if !unknown.all {
            all.count_dead_letters(store, &label, &is_allowed).await?;
        }
        all.whole = in_progress.all && unknown.all;
        all.damaged = in_progress.damaged + unknown.damaged;
        Ok(all)
    }

    /// Everything together.
    #[must_use]
    pub fn total(&self) -> Open {
        self.operations.values().copied().fold(Open::default(), Open::and)
    }

    /// Newer doubt must not hide dead letters, which are old by nature.
    async fn count_dead_letters(
        &mut self,
        store: &StoreHandle,
        label: &impl Fn(&str) -> String,
        is_allowed: &impl Fn(&Record) -> bool,
    ) -> Result<(), StoreError> {
        for open in self.operations.values_mut() {
            open.dead_letters = 0;
        }
        let dead = Filter { dead_letter: Some(true), ..Filter::default() };
        each(store, dead, |record| {
            if !is_allowed(record) {
                return;
            }
            self.operations.entry(label(&record.key.operation)).or_default().dead_letters += 1;
        })
        .await?;
        Ok(())
    }
}

/// What was seen of the records that a filter lets through.
struct Seen {
    all: bool,
    damaged: u64,
}

/// Looks at the records that a filter lets through, up to the limit.
async fn each(
    store: &StoreHandle,
    filter: Filter,
    mut look: impl FnMut(&Record),
) -> Result<Seen, StoreError> {
    let (mut seen, mut damaged, mut from) = (0, 0, None);
    while seen < LIMIT {
        let page = store.list(filter.clone(), from, PAGE.min(LIMIT - seen)).await?;
        page.records.iter().for_each(&mut look);
        seen += page.records.len() + page.damaged;
        damaged += page.damaged as u64;
        from = page.next;
        if from.is_none() {
            return Ok(Seen { all: true, damaged });
        }
    }
    Ok(Seen { all: false, damaged })
}

fn age(record: &Record, now: Timestamp) -> Duration {
    now.after(record.times.created)
}
