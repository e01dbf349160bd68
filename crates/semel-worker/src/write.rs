//! Changes that were decided on records, written on condition that these are still the same.

use semel::transition::Change;
use semel::{Draft, Engine, Expected, Record, StoreError, Swap, Swapped};

/// A record, and what it is to become.
pub(crate) struct Judged {
    pub(crate) record: Record,
    pub(crate) change: Change,
}

/// What became of a batch. To what is not in it somebody else saw, which is as good.
#[derive(Default)]
pub(crate) struct Written {
    /// The records as they are now, by our own hand.
    pub(crate) put: Vec<Record>,
    /// The records that we removed.
    pub(crate) removed: Vec<Record>,
    /// How many are untouched because an open transaction holds them.
    pub(crate) locked: usize,
}

/// Writes a batch in one commit for the replacements and one for the removals.
pub(crate) async fn write(engine: &Engine, batch: Vec<Judged>) -> Result<Written, StoreError> {
    let (mut swaps, mut removals) = (Vec::new(), Vec::new());
    for Judged { record, change } in batch {
        match change {
            Change::Put { next, history } => {
                swaps.push(Swap { expected: record.expected(), next, history });
            }
            Change::Remove => removals.push((record.expected(), record)),
        }
    }
    let mut written = Written::default();
    swap(engine, swaps, &mut written).await?;
    remove(engine, removals, &mut written).await?;
    Ok(written)
}

async fn swap(engine: &Engine, batch: Vec<Swap>, written: &mut Written) -> Result<(), StoreError> {
    let drafts: Vec<Draft> = batch.iter().map(|swap| (*swap.next).clone()).collect();
    if drafts.is_empty() {
        return Ok(());
    }
    let answer = engine.store().swap_all(batch).await?;
    let now = answer.moment();
    for (draft, swapped) in drafts.into_iter().zip(answer.items) {
        match swapped {
            Swapped::Done => written.put.push(draft.at(now)),
            Swapped::Locked => written.locked += 1,
            Swapped::Damaged(why) => tracing::error!(%why, "damaged record left unchanged"),
            // Changed or missing: the next round looks again.
            _ => {}
        }
    }
    Ok(())
}

async fn remove(
    engine: &Engine,
    batch: Vec<(Expected, Record)>,
    written: &mut Written,
) -> Result<(), StoreError> {
    let (items, records): (Vec<Expected>, Vec<Record>) = batch.into_iter().unzip();
    if items.is_empty() {
        return Ok(());
    }
    let answer = engine.store().remove_all(items).await?;
    for (record, removed) in records.into_iter().zip(answer.items) {
        match removed {
            Swapped::Done => written.removed.push(record),
            Swapped::Locked => written.locked += 1,
            Swapped::Damaged(why) => tracing::error!(%why, "damaged record left unchanged"),
            // Changed or missing: the next round looks again.
            _ => {}
        }
    }
    Ok(())
}
