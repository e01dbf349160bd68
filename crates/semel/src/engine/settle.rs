//! Evidence about an unknown outcome, carried to the store: a person's, a webhook's or a poll's.

use super::Engine;
use crate::identity::OperationId;
use crate::observe::Event;
use crate::record::Record;
use crate::store::StoreError;
use crate::store::cas::{Decide, Decided, Look, Updated, compare_and_swap, locked};
use crate::time::Timestamp;
use crate::transition::{About, Change, Refusal, Settlement, settle};

/// What became of evidence. Records are as they are stored, sealed where the engine has keys: [`Engine::open`] opens them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// It settled the outcome. This is the record now.
    Done(Box<Record>),
    /// It changed nothing. This is the stored record.
    Refused(Refusal, Box<Record>),
    /// There is no such operation.
    Missing,
}

impl Engine {
    /// Brings evidence about an operation. It moves an unknown outcome alone.
    ///
    /// A write whose answer was lost is read back: it was ours if the settler's token is there. Dropping the future may leave
    /// the outcome settled or not.
    ///
    /// # Errors
    /// The store did not answer. With [`StoreError::Lost`] it is unknown whether the outcome was settled: submit the same
    /// settlement again.
    pub async fn settle(&self, about: &About, settlement: &Settlement) -> Result<Settled, StoreError> {
        let (now, found) = self.find(about.operation_id).await?;
        let Some(record) = found else { return Ok(Settled::Missing) };
        let settlement = &*self.shared.sealed(settlement, &record);
        let operation = record.key.operation.clone();
        let mut decision = Settling { engine: self, about, settlement, record, now, answer_lost: false };
        let updated = compare_and_swap(&self.shared.store, &mut decision).await;
        let answer_lost = decision.answer_lost;
        match updated {
            Ok(Updated::Written(Some(settled))) => {
                self.settled(&settled);
                Ok(Settled::Done(settled))
            }
            Ok(Updated::Stopped(settled)) => Ok(settled),
            Ok(Updated::Missing | Updated::Written(None)) => Ok(Settled::Missing),
            Ok(Updated::Locked) => Err(failed(locked(), answer_lost)),
            Err(error) => {
                self.shared.count(&operation, Event::StoreError);
                Err(failed(error, answer_lost))
            }
        }
    }

    pub(super) fn settled(&self, record: &Record) {
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

/// A settlement, decided on the record as last read.
struct Settling<'a> {
    engine: &'a Engine,
    about: &'a About,
    settlement: &'a Settlement,
    record: Record,
    now: Timestamp,
    answer_lost: bool,
}

impl Decide for Settling<'_> {
    type Stop = Settled;

    async fn decide(&mut self, look: Look) -> Result<Decided<Settled>, StoreError> {
        match look {
            Look::First => {}
            Look::Changed(changed, then) => (self.now, self.record) = (then.earliest, *changed),
            Look::Lost(error) => {
                self.answer_lost = true;
                // If it cannot be read back either, what was lost first is what has to be said.
                let read_back = self.engine.find(self.about.operation_id).await;
                let Ok((then, found)) = read_back else { return Err(error) };
                self.engine.shared.count(&self.record.key.operation, Event::StoreError);
                let Some(found) = found else { return Ok(Decided::Stop(Settled::Missing)) };
                (self.now, self.record) = (then, found);
            }
        }
        let Self { record, settlement, .. } = self;
        // A write of ours whose answer was lost, in this call or in one before it.
        if record.owner == settlement.settler {
            if self.answer_lost {
                self.engine.settled(record);
            }
            return Ok(Decided::Stop(Settled::Done(Box::new(record.clone()))));
        }
        Ok(match settle(record, self.about, settlement, self.now) {
            Ok(change @ Change::Put { .. }) => Decided::Write(record.expected(), change),
            // Evidence never removes a record.
            Ok(Change::Remove) => Decided::Stop(Settled::Missing),
            Err(refusal) => Decided::Stop(Settled::Refused(refusal, Box::new(record.clone()))),
        })
    }
}

/// Why a settlement failed. Where the answer to a try before was lost, that one may still turn up: perhaps it is what is in the way.
fn failed(error: StoreError, answer_lost: bool) -> StoreError {
    match error {
        StoreError::Lost(_) => error,
        _ if answer_lost => StoreError::Lost(error.to_string()),
        _ => error,
    }
}
