//! Finds owners that gave no sign of life, without a request coming by.

use crate::count;
use crate::due::Walk;
use crate::rules::Rules;
use crate::write::{Judged, write};
use semel::observe::{Event, log_doubt_of};
use semel::transition::{Refusal, watch};
use semel::{DueKind, Engine, StoreError};

/// Moves on what was left in progress when its lease ran out, by the operation's `stale` policy. What only a client's retry can
/// resume is left to that.
///
/// Any number of them may be at work on one store: of two that judge the same record one writes, and the other finds it done.
pub struct LeaseWatch {
    engine: Engine,
    rules: Rules,
    batch: usize,
    walk: Walk,
}

impl LeaseWatch {
    /// A watch that moves on at most `batch` records in one commit.
    #[must_use]
    pub fn new(engine: Engine, rules: Rules, batch: usize) -> Self {
        Self { engine, rules, batch: batch.max(1), walk: Walk::new(DueKind::Lease) }
    }

    /// Looks once through the leases that are over by now. How many it moved on.
    ///
    /// # Errors
    /// The store did not answer. What was moved on before stays so; the rest is found the next time.
    pub async fn round(&mut self) -> Result<usize, StoreError> {
        let round = self.look_through().await;
        if !matches!(round, Ok((_, 0))) {
            self.walk.look_at_everything();
        }
        round.map(|(moved, _)| moved)
    }

    /// How many were moved on, and how many could not be yet: an open transaction holds them, or the clock has not run for long enough.
    async fn look_through(&mut self) -> Result<(usize, usize), StoreError> {
        self.walk.begin();
        let (mut moved, mut locked) = (0, 0);
        loop {
            let page = self.walk.next(&self.engine, self.batch).await?;
            let (full, now) = (page.items.len() == self.batch, page.moment());
            let mut batch = Vec::new();
            for record in page.items {
                let rules = (self.rules)(&record.key.operation);
                match rules.map(|rules| watch(&record, &rules.policy, now)) {
                    Some(Ok(change)) => batch.push(Judged { record, change }),
                    // It is over by the time, and may not be judged so yet: the clock has to run smoothly for a whole lease first.
                    Some(Err(Refusal::NotDue)) => locked += 1,
                    // A retry resumes it, or another process knows the operation.
                    Some(Err(_)) | None => self.walk.leave(&record),
                }
            }
            let written = write(&self.engine, batch).await?;
            for record in &written.put {
                log_doubt_of(record);
                count::count(&self.engine, &record.key.operation, Event::ZombieKey);
                count::written(&self.engine, record);
            }
            moved += written.put.len();
            locked += written.locked;
            if !full {
                return Ok((moved, locked));
            }
        }
    }
}
