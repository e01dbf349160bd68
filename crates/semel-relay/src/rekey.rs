//! Rewrites what is stored by the key that seals now.

use crate::bounded::in_time;
use semel::transition::Change;
use semel::{Body, Cursor, Engine, Filter, OperationId, Record, StoreError, Swap, Swapped};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// How a [`Rekeyer`] works.
#[derive(Clone, Copy, Debug)]
pub struct RekeyOptions {
    /// At most so many records in one commit, and so many answers in memory at a time. Default 64.
    pub batch: usize,
    /// How long the store has for others between two batches, at least; it gets no less than the last batch took. Default 10 ms.
    pub pause: Duration,
}

impl Default for RekeyOptions {
    fn default() -> Self {
        Self { batch: 64, pause: Duration::from_millis(10) }
    }
}

/// What a [`Rekeyer`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rekeyed {
    /// Records that were looked at. Most need nothing: they are as they should be, or keep nothing that is sealed.
    pub looked_at: usize,
    /// Records that were rewritten.
    pub rewritten: usize,
    /// Records that do not open: their key is not configured, or they are damaged. Each is named in the log.
    pub damaged: usize,
    /// Records that somebody's open transaction held all the time.
    pub held: usize,
}

/// Rewrites records by the key that seals now: what was sealed by older ones, and what was stored before anything was sealed. With
/// keys that only open, it takes the seals off.
///
/// It goes through all records, newest first, beside whoever serves requests. Each is written on condition that it is still the one
/// that was read, and nothing changes but its seal and its version, so that it may be killed at any point and run again, and any
/// number may run.
pub struct Rekeyer {
    engine: Engine,
    options: RekeyOptions,
}

/// Rewritings at most of one record, as each loss on the version means that somebody else's write went through.
const MAX_LOSSES: usize = 32;
/// So many times a store that does not answer is asked again, longer and longer after each other.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How often what an open transaction holds is looked at again at the end, how long after each other, and how many of them at most.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
const MOST_HELD: usize = 10_000;

/// What became of some records.
#[derive(Default)]
struct Batch {
    rewritten: usize,
    damaged: usize,
    held: Vec<OperationId>,
}

impl Batch {
    fn and(&mut self, other: Self) {
        self.rewritten += other.rewritten;
        self.damaged += other.damaged;
        self.held.extend(other.held);
    }
}

impl Rekeyer {
    /// A rekeyer by these options, to the key by which `engine` seals.
    #[must_use]
    pub fn new(engine: Engine, options: RekeyOptions) -> Self {
        Self { engine, options: RekeyOptions { batch: options.batch.max(1), ..options } }
    }

    /// Goes once through all records that there are, and tells after each batch how far it is.
    ///
    /// # Errors
    /// The store did not answer, again and again, or a record cannot even be listed. What was rewritten stays so: run it again.
    pub async fn run(&self, mut progress: impl FnMut(&Rekeyed)) -> Result<Rekeyed, StoreError> {
        let (mut done, mut held, mut from) = (Rekeyed::default(), Vec::new(), None);
        loop {
            let begun = Instant::now();
            let (records, next) = self.page(from).await?;
            done.looked_at += records.len();
            let kept = records.iter().filter(|record| keeps_something(record));
            let batch = self.rewrite(kept.map(|record| record.operation_id).collect()).await?;
            done.rewritten += batch.rewritten;
            done.damaged += batch.damaged;
            done.held += batch.held.len().saturating_sub(MOST_HELD.saturating_sub(held.len()));
            held.extend(batch.held);
            held.truncate(MOST_HELD);
            progress(&done);
            from = next;
            if from.is_none() {
                break;
            }
            tokio::time::sleep(self.options.pause.max(begun.elapsed())).await;
        }
        for _ in 0..LOOKS {
            if held.is_empty() {
                break;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let mut still = Vec::new();
            for ids in held.chunks(self.options.batch) {
                let batch = self.rewrite(ids.to_vec()).await?;
                done.rewritten += batch.rewritten;
                done.damaged += batch.damaged;
                still.extend(batch.held);
            }
            held = still;
        }
        done.held += held.len();
        progress(&done);
        Ok(done)
    }

    async fn page(&self, from: Option<Cursor>) -> Result<(Vec<Record>, Option<Cursor>), StoreError> {
        let list = async || {
            in_time(&self.engine, self.engine.store().list(Filter::default(), from, self.options.batch)).await
        };
        let page = patiently(list).await?;
        Ok((page.records, page.next))
    }

    /// Rewrites the records of these ids, as far as they need it.
    async fn rewrite(&self, ids: Vec<OperationId>) -> Result<Batch, StoreError> {
        if ids.is_empty() {
            return Ok(Batch::default());
        }
        match patiently(async || self.rewrite_together(&ids).await).await {
            // An error is whole, and the damage is one record's: the others are rewritten without it.
            Err(StoreError::Damaged(_)) if ids.len() > 1 => {
                let mut batch = Batch::default();
                for id in ids {
                    batch.and(Box::pin(self.rewrite(vec![id])).await?);
                }
                Ok(batch)
            }
            Err(error @ StoreError::Damaged(_)) => {
                tracing::error!(%error, "it is left as it is");
                Ok(Batch { damaged: 1, ..Batch::default() })
            }
            batch => batch,
        }
    }

    async fn rewrite_together(&self, ids: &[OperationId]) -> Result<Batch, StoreError> {
        let mut batch = Batch::default();
        let mut records = self.find(ids.to_vec()).await?;
        // What may have been written by us without our being told.
        let mut lost = HashSet::new();
        for _ in 0..MAX_LOSSES {
            let mut swaps = Vec::new();
            for record in &records {
                match self.engine.rewritten(record) {
                    Ok(Some(Change::Put { next, history })) => {
                        swaps.push(Swap { expected: record.expected(), next, history });
                    }
                    Ok(_) => batch.rewritten += usize::from(lost.remove(&record.operation_id)),
                    Err(error) => {
                        tracing::error!(%error, "it is left as it is");
                        batch.damaged += 1;
                    }
                }
            }
            let sent: Vec<OperationId> = swaps.iter().map(|swap| swap.expected.operation_id).collect();
            if sent.is_empty() {
                return Ok(batch);
            }
            records = match in_time(&self.engine, self.engine.store().swap(swaps)).await {
                Ok(answer) => {
                    let mut changed = Vec::new();
                    for (id, swapped) in sent.into_iter().zip(answer.items) {
                        match swapped {
                            Swapped::Done => batch.rewritten += 1,
                            Swapped::Changed(record) => changed.push(*record),
                            Swapped::Locked => batch.held.push(id),
                            Swapped::Missing => {}
                        }
                    }
                    changed
                }
                Err(StoreError::Lost(_)) => {
                    let found = self.find(sent.clone()).await?;
                    lost.extend(sent);
                    found
                }
                Err(error) => return Err(error),
            };
        }
        Err(StoreError::Unavailable("the records change all the time".into()))
    }

    async fn find(&self, ids: Vec<OperationId>) -> Result<Vec<Record>, StoreError> {
        let found = in_time(&self.engine, self.engine.store().find(ids)).await?;
        Ok(found.items.into_iter().flatten().collect())
    }
}

/// Whether there is anything about a listed record that could be sealed.
fn keeps_something(record: &Record) -> bool {
    let answered = record.response.as_ref();
    record.checkpoint.is_some()
        || answered.is_some_and(|kept| kept.body == Body::Omitted || !kept.headers.is_empty())
}

/// Asks a store that does not answer again.
async fn patiently<T>(call: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match call().await {
            Err(StoreError::Unavailable(_) | StoreError::Lost(_)) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            answer => return answer,
        }
    }
    call().await
}
