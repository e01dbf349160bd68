//! Forgets on time.

use crate::count;
use crate::due::Walk;
use crate::write::{Judged, write};
use semel::observe::Event;
use semel::transition::{Change, Refusal, reap};
use semel::{DueKind, Engine, Record, StoreError, Timestamp, When};
use std::time::Duration;
use tokio::time::Instant;

/// What becomes of a tombstone whose time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Forget {
    /// It is removed, with its history.
    #[default]
    Hard,
    /// It stays in the store as `expired`, without answer and checkpoint, for whoever has to keep a trace of everything. Clients
    /// notice no difference: a key that comes back is new work, and takes the tombstone's place. **The store grows for ever.**
    Soft,
}

/// How a [`Reaper`] works.
#[derive(Clone, Copy, Debug)]
pub struct ReaperOptions {
    /// Hard or soft. Default: hard.
    pub forget: Forget,
    /// At most so many records in one commit, and four times as many while it is late. Default 512.
    pub batch: usize,
    /// How long the store has for others between two batches, at least. It gets no less than the last batch took, unless the reaper
    /// is late by more than two seconds: one that falls behind for politeness never catches up. Default 10 ms.
    pub pause: Duration,
}

impl Default for ReaperOptions {
    fn default() -> Self {
        Self { forget: Forget::default(), batch: 512, pause: Duration::from_millis(10) }
    }
}

/// What is forgotten later than this is late: a reaper comes by every second.
const LATE: Duration = Duration::from_secs(2);

/// So many times as much goes into a batch then: what a commit costs, however much is in it, is paid less often.
const HURRY: usize = 4;

/// Drops bodies whose retention is over, makes tombstones of what has expired, and removes these when their time is over.
///
/// It only makes room: windows are judged on every read, whether or not it has come by. What is in progress, unknown or a dead
/// letter has no window and is never touched, however old.
pub struct Reaper {
    engine: Engine,
    options: ReaperOptions,
}

/// What a round of the reaper did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reaped {
    /// Bodies that were dropped before their records' windows ended, and records that became tombstones.
    pub reduced: usize,
    /// Records that were removed.
    pub removed: usize,
}

impl Reaped {
    fn and(self, other: Self) -> Self {
        Self { reduced: self.reduced + other.reduced, removed: self.removed + other.removed }
    }
}

impl Reaper {
    /// A reaper by these options.
    #[must_use]
    pub fn new(engine: Engine, options: ReaperOptions) -> Self {
        Self { engine, options: ReaperOptions { batch: options.batch.max(1), ..options } }
    }

    /// Goes once through all that is over by now.
    ///
    /// # Errors
    /// The store did not answer. What was done before stays so; the rest is found the next time.
    pub async fn round(&self) -> Result<Reaped, StoreError> {
        // All at once: no record is in two of them, and a store that groups commits has one for all.
        let reaped = tokio::join!(self.go_through(DueKind::Body), self.go_through(DueKind::Window), async {
            match self.options.forget {
                Forget::Hard => self.go_through(DueKind::Purge).await,
                Forget::Soft => Ok(Reaped::default()),
            }
        },);
        Ok(reaped.0?.and(reaped.1?).and(reaped.2?))
    }

    async fn go_through(&self, kind: DueKind) -> Result<Reaped, StoreError> {
        let (mut walk, mut reaped) = (Walk::new(kind), Reaped::default());
        let mut batch = self.options.batch;
        let mut over_by = None;
        loop {
            let begun = Instant::now();
            let page = walk.next(&self.engine, batch).await?;
            // What ends while this goes on is for the next round. Windows that end as fast as tombstones are made would keep it going for
            // ever, and nobody would come by for the tombstones.
            let until = *over_by.get_or_insert(page.now);
            let more = page.items.len() == batch
                && page.items.last().and_then(Record::due).is_some_and(|(_, since)| since <= until);
            let first = page.items.first().and_then(Record::due);
            let late = first.is_some_and(|(_, since)| page.now.after(since) > LATE);
            let judge = |record| {
                let change = self.judge(&record, page.now).ok()?;
                Some(Judged { record, change })
            };
            let written = write(&self.engine, page.items.into_iter().filter_map(judge).collect()).await?;
            for record in &written.removed {
                count::count(&self.engine, record, Event::TtlPruned);
            }
            reaped.reduced += written.put.len();
            reaped.removed += written.removed.len();
            if !more {
                return Ok(reaped);
            }
            let (hurry, pause) = if late { (HURRY, Duration::ZERO) } else { (1, begun.elapsed()) };
            batch = self.options.batch.saturating_mul(hurry);
            tokio::time::sleep(self.options.pause.max(pause)).await;
        }
    }

    fn judge(&self, record: &Record, now: Timestamp) -> Result<Change, Refusal> {
        if self.options.forget == Forget::Hard {
            return reap(record, now);
        }
        // As if its tombstone stood for ever; when that is over is written down all the same, for requests go by it.
        let mut kept = record.clone();
        let purge = kept.times.purge.take();
        let mut change = reap(&kept, now)?;
        if let Change::Put { next, .. } = &mut change {
            next.times.purge = purge.map(When::At);
        }
        Ok(change)
    }
}
