//! The reaper: drops answers and purges records when their time is over.

use crate::count;
use crate::due::Walk;
use crate::write::{Judged, write};
use semel::observe::Event;
use semel::transition::{Change, Refusal, reap};
use semel::{Answer, DueKind, Engine, Record, StoreError, Timestamp, When};
use std::time::Duration;
use tokio::time::Instant;

/// What becomes of a tombstone whose time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Forget {
    /// It is removed, with its history.
    #[default]
    Hard,
    /// It stays in the store, `expired` by its time, without headers, body and checkpoint, for services that have to keep a trace of everything. Clients
    /// notice no difference: a key that comes back is new work, and takes the tombstone's place. **The store grows for ever.**
    Soft,
}

/// How a [`Reaper`] works.
#[derive(Clone, Copy, Debug)]
pub struct ReaperOptions {
    /// Hard or soft. Default: hard.
    pub forget: Forget,
    /// How many records go into the first commit of a round. The next ones take as many as the store forgets in twenty milliseconds, from a
    /// quarter of this to four times as many: a larger batch costs less for each record, and others may have to wait for it. Where it is late by
    /// two seconds it is four times as many in any case. Default 512.
    pub batch: usize,
    /// How long the store has for others between two batches, at least. It gets as long as the last batch took, and less the later the reaper
    /// is beyond a second, down to this where it is late by two: one that falls behind for politeness never catches up. Default 10 ms.
    pub pause: Duration,
}

impl Default for ReaperOptions {
    fn default() -> Self {
        Self { forget: Forget::default(), batch: 512, pause: Duration::from_millis(10) }
    }
}

/// What is forgotten within this is on time: a reaper comes by every second.
const ON_TIME: Duration = Duration::from_secs(1);

/// What is forgotten later than this is late. In between it is so by degrees.
const LATE: Duration = Duration::from_secs(2);

/// How long a batch should take: what a commit costs, however much is in it, is paid as rarely as others can bear.
const LONG: Duration = Duration::from_millis(20);

/// A batch is at most so many times as large as the first one, and where that takes too long it is so many times smaller.
const STRETCH: usize = 4;

/// Drops answers whose time is over, and removes records when their tombstones' time is over. A record that holds a checkpoint becomes a
/// tombstone without one before that; of all others it is read off the time that they are.
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
    /// Answers that were dropped, and records that became tombstones.
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

    /// Removes everything that has expired by now, once.
    ///
    /// # Errors
    /// The store did not answer. What was done before stays so; the rest is found the next time.
    pub async fn round(&self) -> Result<Reaped, StoreError> {
        // All at once: none is in another's way, and a store that groups commits has one for all.
        let reaped = tokio::join!(
            self.go_through(Chore::Answers),
            self.go_through(Chore::Windows(Walk::new(DueKind::Window))),
            async {
                match self.options.forget {
                    Forget::Hard => self.go_through(Chore::Tombstones).await,
                    Forget::Soft => Ok(Reaped::default()),
                }
            },
        );
        Ok(reaped.0?.and(reaped.1?).and(reaped.2?))
    }

    async fn go_through(&self, mut kind: Chore) -> Result<Reaped, StoreError> {
        let (mut stride, mut reaped) = (Stride::new(self.options), Reaped::default());
        loop {
            let begun = Instant::now();
            let Batch { over, done } = match &mut kind {
                Chore::Answers => self.drop_answers(stride.batch).await?,
                Chore::Windows(walk) => self.end_windows(walk, stride.batch).await?,
                Chore::Tombstones => self.purge(stride.batch).await?,
            };
            reaped = reaped.and(done);
            let Some(pause) = stride.next(&over, begun) else { return Ok(reaped) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn drop_answers(&self, at_most: usize) -> Result<Batch, StoreError> {
        let over = self.engine.store().drop_answers(at_most).await?;
        Ok(Batch { done: Reaped { reduced: over.items.len(), removed: 0 }, over })
    }

    async fn end_windows(&self, walk: &mut Walk, at_most: usize) -> Result<Batch, StoreError> {
        let Answer { now, items, .. } = walk.next(&self.engine, at_most).await?;
        let since = items.iter().filter_map(Record::due).map(|(_, since)| since).collect();
        let judge = |record| {
            let change = self.judge(&record, now).ok()?;
            Some(Judged { record, change })
        };
        let written = write(&self.engine, items.into_iter().filter_map(judge).collect()).await?;
        for record in &written.removed {
            count::count(&self.engine, &record.key.operation, Event::TtlPruned);
        }
        let done = Reaped { reduced: written.put.len(), removed: written.removed.len() };
        Ok(Batch { over: Answer::at(now, since), done })
    }

    async fn purge(&self, at_most: usize) -> Result<Batch, StoreError> {
        let Answer { now, items, .. } = self.engine.store().purge(at_most).await?;
        for purged in &items {
            count::count(&self.engine, &purged.operation, Event::TtlPruned);
        }
        let done = Reaped { reduced: 0, removed: items.len() };
        let since = items.into_iter().map(|purged| purged.since).collect();
        Ok(Batch { over: Answer::at(now, since), done })
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

/// What there is to forget.
enum Chore {
    Answers,
    /// Of records that hold a checkpoint.
    Windows(Walk),
    Tombstones,
}

/// What one batch of a round came to.
struct Batch {
    /// Since when what it dealt with was over, earliest first.
    over: Answer<Timestamp>,
    done: Reaped,
}

/// How much goes into one batch of a round, and how long after it the next one comes.
struct Stride {
    options: ReaperOptions,
    batch: usize,
    until: Option<Timestamp>,
}

impl Stride {
    fn new(options: ReaperOptions) -> Self {
        Self { options, batch: options.batch, until: None }
    }

    /// How long to pause after a batch that was begun then, of what is over since these moments, earliest first; `None`: the round is over.
    ///
    /// What ends while it goes on is for the next round. Where as much ends as is forgotten, it would go on for ever, and nobody would come by
    /// for the rest.
    fn next(&mut self, over: &Answer<Timestamp>, begun: Instant) -> Option<Duration> {
        let until = *self.until.get_or_insert(over.now);
        let (first, last) = (over.items.first()?, over.items.last()?);
        if over.items.len() < self.batch || *last > until {
            return None;
        }
        let took = begun.elapsed();
        let (smallest, largest) =
            (self.options.batch.div_ceil(STRETCH), self.options.batch.saturating_mul(STRETCH));
        let behind = over.now.after(*first).saturating_sub(ON_TIME);
        let late = behind.div_duration_f64(LATE.saturating_sub(ON_TIME)).min(1.0);
        let fitting = self.batch as f64 * LONG.div_duration_f64(took.max(Duration::from_micros(1)));
        // Where the store is slow, small batches would make the reaper later still.
        let urgent = largest as f64 * late;
        self.batch = (fitting.max(urgent) as usize).clamp(smallest, largest);
        Some(self.options.pause.max(took.mul_f64(1.0 - late)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Timestamp = Timestamp::from_millis(1_000_000);

    /// As many as were asked for, so late, in a batch that took so long: the pause after it.
    async fn full(stride: &mut Stride, late: Duration, took: Duration) -> Option<Duration> {
        let begun = Instant::now();
        tokio::time::advance(took).await;
        let over = Answer::at(SINCE.plus(late), vec![SINCE; stride.batch]);
        stride.next(&over, begun)
    }

    #[tokio::test(start_paused = true)]
    async fn batches_are_as_large_as_others_can_bear() {
        let mut stride = Stride::new(ReaperOptions::default());
        let on_time = Duration::from_millis(500);
        for (took, next) in [(10, 1024), (5, 2048), (1, 2048), (40, 1024), (80, 256), (900, 128), (0, 2048)] {
            full(&mut stride, on_time, Duration::from_millis(took)).await;
            assert_eq!(stride.batch, next, "after {took} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn late_in_a_slow_store_they_are_large_all_the_same() {
        for (late, next) in [(1_000, 128), (1_250, 512), (1_500, 1024), (2_000, 2048), (60_000, 2048)] {
            let mut stride = Stride::new(ReaperOptions::default());
            full(&mut stride, Duration::from_millis(late), Duration::from_millis(900)).await;
            assert_eq!(stride.batch, next, "late by {late} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_later_the_shorter_the_pause() {
        for (late, pause) in [(500, 40), (1_000, 40), (1_500, 20), (2_000, 10), (60_000, 10)] {
            let mut stride = Stride::new(ReaperOptions::default());
            let paused = full(&mut stride, Duration::from_millis(late), Duration::from_millis(40)).await;
            assert_eq!(paused, Some(Duration::from_millis(pause)), "late by {late} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_not_full_is_the_last() {
        let mut stride = Stride::new(ReaperOptions::default());
        let over = Answer::at(SINCE, vec![SINCE; stride.batch - 1]);
        assert_eq!(stride.next(&over, Instant::now()), None);
    }
}
