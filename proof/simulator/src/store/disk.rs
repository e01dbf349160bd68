//! What the instances of a store share, and how it crashes.

use super::contents::Contents;
use super::pauses::Pauses;
use crate::machine::Machine;
use semel::clock::{Terms, Turn};
use semel::{Draft, HistoryEntry, Now, Owner, Record, RecordKey, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Is told of every write that was committed, and of those that a crash took back.
pub(crate) trait Audit: Send + Sync {
    /// A write by this instance. `draft` and `history` are what it asked for; a creation has no `before`, a removal no `draft`.
    fn wrote(&self, instance: usize, write: &Write<'_>, now: Now);

    /// A crash took a write back: this is the record again, `None` if it is gone.
    fn took_back(&self, key: &RecordKey, record: Option<&Record>, is_whole: bool);

    /// A request that would own by this token is told that its key has a record.
    fn found(&self, owner: Owner, record: &Record, now: Now);

    /// A write changed nothing, as another came first.
    fn overtaken(&self);

    /// An instance thinks otherwise of the clock than before.
    fn turned(&self, instance: usize, turn: Turn);

    /// An instance goes by this time. Of what its machine stood still, it could not know of this much, in milliseconds.
    fn judged(&self, instance: usize, now: Now, hidden: i64);

    /// An operator's word that the clock is right has been followed: by how many milliseconds it is off then, and what time it is from then on.
    fn accepted(&self, off: i64, earliest: Timestamp);
}

/// One committed write.
pub(crate) struct Write<'a> {
    pub(crate) key: &'a RecordKey,
    pub(crate) before: Option<&'a Record>,
    pub(crate) draft: Option<&'a Draft>,
    pub(crate) history: Option<&'a HistoryEntry>,
    /// Whether an answer that somebody has tampered with is written back as it was found.
    pub(crate) carries_damage: bool,
}

/// What the instances of a store share. Clones are the same disk.
#[derive(Clone)]
pub struct Disk(pub(super) Arc<Shared>);

pub(super) struct Shared {
    contents: Mutex<Contents>,
    pub(super) machine: Machine,
    pub(super) terms: Terms,
    pub(super) audit: Option<Arc<dyn Audit>>,
    pub(super) pauses: Pauses,
}

impl Disk {
    /// An empty disk that goes by the clock of this machine.
    #[must_use]
    pub fn new(machine: Machine, terms: Terms) -> Self {
        Self(Arc::new(Shared {
            contents: Mutex::default(),
            machine,
            terms,
            audit: None,
            pauses: Pauses::default(),
        }))
    }

    pub(crate) fn audited(machine: Machine, terms: Terms, audit: Arc<dyn Audit>) -> Self {
        Self(Arc::new(Shared {
            contents: Mutex::default(),
            machine,
            terms,
            audit: Some(audit),
            pauses: Pauses::default(),
        }))
    }

    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loses writes that nobody was told of, as many as `keep` says of how many there are. Answers that are under way are lost.
    pub(crate) fn crash(&self, keep: impl FnOnce(u64) -> u64) -> usize {
        let undone = self.contents().crash(keep);
        self.tell(&undone);
        undone.len()
    }

    /// Stops, and starts again with what is durable. Calls without faults are durable once they return.
    pub fn restart(&self) {
        self.contents().flush();
        self.crash(|_| 0);
    }

    /// Goes on with a replica that lacks the last `lag` writes, whoever was told of them.
    pub(crate) fn fail_over(&self, lag: u64) -> usize {
        let undone = self.contents().fail_over(lag);
        self.tell(&undone);
        undone.len()
    }

    /// By how much the clock may step and be followed.
    pub(crate) fn max_step(&self) -> Duration {
        self.0.terms.max_step
    }

    fn tell(&self, undone: &[RecordKey]) {
        let Some(audit) = &self.0.audit else { return };
        for key in undone {
            let contents = self.contents();
            audit.took_back(key, contents.record(key), contents.is_whole(key));
        }
    }
}
