//! Rewrites what is stored by the key that seals now.

use semel::transition::{Change, Claim};
use semel::{Cursor, Engine, Filter, OperationId, Page, Record, State, StoreError, Swap, Swapped};
use std::collections::{BTreeMap, BTreeSet, HashSet};
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
    /// Records that do not open or cannot be read: their key is not configured, or they are damaged. Each is named in the log.
    pub damaged: usize,
    /// Records that an open transaction held all the time.
    pub held: usize,
    /// Operations that were under way or in doubt all the time: they are finished with the key that sealed when they began.
    pub under_way: usize,
}

impl Rekeyed {
    /// Whether nothing is left, and no process can still seal with another key.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.damaged + self.held + self.under_way == 0
    }
}

/// Rewrites records, and the secrets in the store, by the key that seals now: what was sealed by older ones, and what was stored before anything was
/// sealed. With keys that only open, it takes the seals off. Client keys, which are sealed by one of these secrets, stay as they are
/// ([`Engine::convert_client_keys`] is for them).
///
/// It goes through all records, newest first, while requests are served. Each is written on condition that it is still the one
/// that was read, and nothing changes but its seal and its version, so that it may be killed at any point and run again, and any
/// number may run.
///
/// An operation that began before the keys changed ends by the older one, after its record was looked at perhaps. So those that are
/// under way are looked at again at the end, for two seconds, and those that have not ended by then are [told](Rekeyed::under_way). Operations
/// that begin later do not count: everybody has the new key before this is run.
pub struct Rekeyer {
    engine: Engine,
    options: RekeyOptions,
}

/// Rewritings at most of one record, as each loss on the version means that another write went through.
const MAX_LOSSES: usize = 32;
/// So many times a store that does not answer is asked again, longer and longer after each other.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How often what is held or under way is looked at again at the end, how long after each other, and how many of either at most.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
const MOST_LATER: usize = 10_000;

/// What became of some records.
#[derive(Default)]
struct Batch {
    rewritten: usize,
    damaged: usize,
    held: Vec<OperationId>,
    open: Vec<Open>,
}

/// An operation that its owner may still end.
struct Open {
    claim: Claim,
    /// Not in doubt: it will have ended soon.
    at_work: bool,
}

impl Open {
    /// The owner of an operation in doubt counts too: its word is taken however late it comes.
    fn of(record: &Record) -> Option<Self> {
        let at_work = record.state == State::InProgress;
        (at_work || record.state == State::Unknown).then(|| Self { claim: Claim::of(record), at_work })
    }
}

impl Batch {
    fn and(&mut self, other: Self) {
        self.rewritten += other.rewritten;
        self.damaged += other.damaged;
        self.held.extend(other.held);
        self.open.extend(other.open);
    }
}

/// What is to be looked at again at the end.
#[derive(Default)]
struct Later {
    held: Vec<OperationId>,
    at_work: Vec<Claim>,
}

impl Later {
    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.at_work.is_empty()
    }

    /// Counts what became of a batch, and remembers what came to no end.
    fn after(&mut self, batch: Batch, done: &mut Rekeyed) {
        done.rewritten += batch.rewritten;
        done.damaged += batch.damaged;
        done.held += remember(&mut self.held, batch.held);
        // Doubt is settled in minutes or days: there is no use in waiting for it.
        let (at_work, doubted): (Vec<Open>, Vec<Open>) =
            batch.open.into_iter().partition(|open| open.at_work);
        let claims = at_work.into_iter().map(|open| open.claim);
        done.under_way += doubted.len() + remember(&mut self.at_work, claims);
    }
}

/// Remembers as many as there is room for, and returns how many were left out.
fn remember<T>(kept: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> usize {
    kept.extend(more);
    let beyond = kept.len().saturating_sub(MOST_LATER);
    kept.truncate(MOST_LATER);
    beyond
}

impl Rekeyer {
    /// A rekeyer by these options, to the key by which `engine` seals.
    #[must_use]
    pub fn new(engine: Engine, options: RekeyOptions) -> Self {
        Self { engine, options: RekeyOptions { batch: options.batch.max(1), ..options } }
    }

    /// Goes once through all records that there are, and tells after each batch how far it is. A record that cannot be read is passed
    /// over and counted with the damaged ones: whether it is sealed, and with which key, is unknown.
    ///
    /// # Errors
    /// The store did not answer, again and again. What was rewritten stays so: run it again.
    pub async fn run(&self, mut progress: impl FnMut(&Rekeyed)) -> Result<Rekeyed, StoreError> {
        patiently(async || self.engine.rekey_fingerprint_secrets().await).await?;
        patiently(async || self.engine.reseal_secrets().await).await?;
        let (mut done, mut later, mut from) = (Rekeyed::default(), Later::default(), None);
        loop {
            let begun = Instant::now();
            let page = self.page(from).await?;
            done.looked_at += page.records.len();
            done.damaged += page.damaged;
            let concerned =
                page.records.iter().filter(|record| keeps_something(record) || Open::of(record).is_some());
            let batch = self.rewrite(concerned.map(|record| record.operation_id).collect()).await?;
            later.after(batch, &mut done);
            progress(&done);
            from = page.next;
            if from.is_none() {
                break;
            }
            tokio::time::sleep(self.options.pause.max(begun.elapsed())).await;
        }
        for _ in 0..LOOKS {
            if later.is_empty() {
                break;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
            later = self.look_again(later, &mut done).await?;
        }
        done.held += later.held.len();
        done.under_way += later.at_work.len();
        progress(&done);
        Ok(done)
    }

    /// Looks again at what was held or under way; what it still is.
    async fn look_again(&self, earlier: Later, done: &mut Rekeyed) -> Result<Later, StoreError> {
        let owners: HashSet<Claim> = earlier.at_work.into_iter().collect();
        let at_work = owners.iter().map(|claim| claim.operation_id);
        // In an order that is the same whenever the same is repeated: it is the order of the writes.
        let ids: BTreeSet<OperationId> = earlier.held.into_iter().chain(at_work).collect();
        let mut later = Later::default();
        for ids in ids.into_iter().collect::<Vec<_>>().chunks(self.options.batch) {
            let mut batch = self.rewrite(ids.to_vec()).await?;
            // Whoever has taken over since has the new key, and fences the earlier owner. What was in doubt is counted already.
            batch.open.retain(|open| owners.contains(&open.claim));
            later.after(batch, done);
        }
        Ok(later)
    }

    async fn page(&self, from: Option<Cursor>) -> Result<Page, StoreError> {
        let list =
            async || self.engine.store().list(Filter::default(), from.clone(), self.options.batch).await;
        patiently(list).await
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
                tracing::error!(%error, "damaged record left unchanged");
                Ok(Batch { damaged: 1, ..Batch::default() })
            }
            batch => batch,
        }
    }

    // Not `compare_and_swap`, which writes one record at a time: here each round is one batch, one commit for hundreds of records.
    async fn rewrite_together(&self, ids: &[OperationId]) -> Result<Batch, StoreError> {
        let mut batch = Batch::default();
        let mut records = self.find(ids.to_vec()).await?;
        // What may have been written by us without our being told.
        let mut lost = HashSet::new();
        let mut open: BTreeMap<OperationId, Open> = BTreeMap::new();
        for _ in 0..MAX_LOSSES {
            let mut swaps = Vec::new();
            for record in &records {
                // As it was seen last.
                open.remove(&record.operation_id);
                open.extend(Open::of(record).map(|still| (record.operation_id, still)));
                match self.engine.rewritten(record) {
                    Ok(Some(Change::Put { next, history })) => {
                        swaps.push(Swap { expected: record.expected(), next, history });
                    }
                    Ok(_) => batch.rewritten += usize::from(lost.remove(&record.operation_id)),
                    Err(error) => {
                        tracing::error!(%error, "damaged record left unchanged");
                        batch.damaged += 1;
                        // Told once: it is not looked at again.
                        open.remove(&record.operation_id);
                    }
                }
            }
            let sent: Vec<OperationId> = swaps.iter().map(|swap| swap.expected.operation_id).collect();
            if sent.is_empty() {
                batch.open = open.into_values().collect();
                return Ok(batch);
            }
            records = match self.engine.store().swap_all(swaps).await {
                Ok(answer) => {
                    let mut changed = Vec::new();
                    for (id, swapped) in sent.into_iter().zip(answer.items) {
                        match swapped {
                            Swapped::Done => batch.rewritten += 1,
                            Swapped::Changed(record) => changed.push(*record),
                            Swapped::Locked => batch.held.push(id),
                            Swapped::Missing => {
                                open.remove(&id);
                            }
                            Swapped::Damaged(why) => {
                                tracing::error!(%why, "damaged record left unchanged");
                                batch.damaged += 1;
                                open.remove(&id);
                            }
                            // What this version does not know stays open for the next round.
                            _ => {}
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
        Err(StoreError::Unavailable("records keep changing".into()))
    }

    async fn find(&self, ids: Vec<OperationId>) -> Result<Vec<Record>, StoreError> {
        let found = self.engine.store().find(ids).await?;
        Ok(found.items.into_iter().flatten().collect())
    }
}

/// Whether there is anything about a listed record that could be sealed.
fn keeps_something(record: &Record) -> bool {
    // Headers are not listed: whether there are any, beside a body that was not stored, is seen when it is looked at.
    record.checkpoint.is_some() || record.response.is_some()
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
