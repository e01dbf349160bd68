//! Evidence about an unknown outcome, carried to the store: a person's, a webhook's or a poll's.

use super::Engine;
use crate::identity::OperationId;
use crate::observe::Event;
use crate::record::Record;
use crate::store::{StoreError, Swap, Swapped};
use crate::time::Timestamp;
use crate::transition::{About, Change, Refusal, Settlement, settle};

/// What became of evidence. Records are as they are stored, sealed where the engine has keys: [`Engine::open`] opens them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// It settled the outcome. This is the record now.
    Done(Box<Record>),
    /// It changed nothing. This is what is there, for whoever brought it to look at.
    Refused(Refusal, Box<Record>),
    /// There is no such operation.
    Missing,
}

/// Decisions at most, as each loss on the version means that somebody else's write went through.
const MAX_LOSSES: usize = 32;

impl Engine {
    /// Brings evidence about an operation. It moves an unknown outcome alone.
    ///
    /// A write whose answer was lost is read back: it was ours if the settler's token is there. Dropping the future may leave
    /// the outcome settled or not.
    ///
    /// # Errors
    /// The store did not answer. With [`StoreError::Lost`] nobody can say whether the outcome was settled: bring the same
    /// settlement again.
    pub async fn settle(&self, about: &About, settlement: &Settlement) -> Result<Settled, StoreError> {
        let (mut now, found) = self.find(about.operation_id).await?;
        let Some(mut record) = found else { return Ok(Settled::Missing) };
        let settlement = &*self.shared.sealed(settlement, &record);
        let mut answer_lost = false;
        for _ in 0..MAX_LOSSES {
            // A write of ours whose answer was lost, in this call or in one before it.
            if record.owner == settlement.settler {
                if answer_lost {
                    self.settled(&record);
                }
                return Ok(Settled::Done(Box::new(record)));
            }
            let (next, history) = match settle(&record, about, settlement, now) {
                Ok(Change::Put { next, history }) => (next, history),
                // Evidence never removes a record.
                Ok(Change::Remove) => return Ok(Settled::Missing),
                Err(refusal) => return Ok(Settled::Refused(refusal, Box::new(record))),
            };
            let swap = Swap { expected: record.expected(), next, history };
            let operation = &record.key.operation;
            match self.shared.store.swap(&swap).await {
                Ok((now, Swapped::Done)) => {
                    let settled = swap.next.at(now);
                    self.settled(&settled);
                    return Ok(Settled::Done(Box::new(settled)));
                }
                Ok((then, Swapped::Changed(changed))) => (now, record) = (then.earliest, *changed),
                Ok((_, Swapped::Missing)) => return Ok(Settled::Missing),
                Ok((_, Swapped::Damaged(why))) => {
                    self.shared.count(operation, Event::StoreError);
                    return Err(failed(StoreError::Damaged(why), answer_lost));
                }
                Ok((_, Swapped::Locked)) => {
                    let held = StoreError::Unavailable("an open transaction holds the record".into());
                    return Err(failed(held, answer_lost));
                }
                Err(lost @ StoreError::Lost(_)) => {
                    self.shared.count(operation, Event::StoreError);
                    answer_lost = true;
                    // If it cannot be read back either, what was lost first is what has to be said.
                    let Ok((then, found)) = self.find(about.operation_id).await else { return Err(lost) };
                    let Some(found) = found else { return Ok(Settled::Missing) };
                    (now, record) = (then, found);
                }
                Err(error) => {
                    self.shared.count(operation, Event::StoreError);
                    return Err(failed(error, answer_lost));
                }
            }
        }
        Err(failed(StoreError::Unavailable("the record changes all the time".into()), answer_lost))
    }

    fn settled(&self, record: &Record) {
        self.shared.count(&record.key.operation, Event::ReconcileResolved);
        self.shared.written(record);
    }

    /// The record of an operation id as it is stored, and the store's now. [`open`](Self::open) opens what is sealed of it.
    ///
    /// # Errors
    /// The store did not answer in time.
    pub async fn find(&self, id: OperationId) -> Result<(Timestamp, Option<Record>), StoreError> {
        let answer = self.shared.store.find(vec![id]).await?;
        Ok((answer.now, answer.items.into_iter().next().flatten()))
    }
}

/// Why a settlement failed. Where the answer to a try before was lost, that one may still turn up: perhaps it is what is in the way.
fn failed(error: StoreError, answer_lost: bool) -> StoreError {
    if answer_lost { StoreError::Lost(error.to_string()) } else { error }
}
