//! What operators do to records: each act with its entry of the audit, in one commit.

use super::Engine;
use crate::audit::AuditEntry;
use crate::identity::OperationId;
use crate::observe::Event;
use crate::record::{Draft, Record};
use crate::store::StoreError;
use crate::store::cas::{Decide, Decided, Look, Updated, compare_and_swap, locked};
use crate::time::Timestamp;
use crate::transition::{About, Change, Evidence, Refusal, Settlement, ask_now, settle};

/// Makes the entry of the audit for a change, of the record as it was and as it is to be.
pub type Audited<'a> = &'a (dyn Fn(&Record, &Draft) -> AuditEntry + Send + Sync);

/// What an operator's act is held to beside the rules of the state machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorTerms {
    /// The version that the operator looked at: if the record was written since, nothing is done. `None`: whatever the version.
    pub version: Option<u64>,
    /// Whether "not executed" counts only once the lease is over.
    pub after_lease: bool,
}

/// What became of an operator's act. Records are as they are stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Acted {
    /// It is done, and in the audit. This is the record now.
    Done(Box<Record>),
    /// It changed nothing, by the rules. This is the stored record.
    Refused(Refusal, Box<Record>),
    /// The record was written since the operator looked at it; nothing was done. This is the stored record.
    Moved(Box<Record>),
    /// There is no such operation.
    Missing,
}

impl Engine {
    /// Settles doubt on an operator's word, as [`settle`](Self::settle), and writes the audit in the same commit.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub async fn settle_audited(
        &self,
        about: &About,
        settlement: &Settlement,
        terms: OperatorTerms,
        audited: Audited<'_>,
    ) -> Result<Acted, StoreError> {
        let (_, found) = self.find(about.operation_id).await?;
        let Some(record) = found else { return Ok(Acted::Missing) };
        let settlement = &*self.shared.sealed(settlement, &record);
        let acted = self.act_on(
            about.operation_id,
            audited,
            terms,
            |record, now| {
                let absent = settlement.evidence == Evidence::NotExecuted && terms.after_lease;
                let change = settle(record, about, settlement, now)?;
                match absent && !record.times.lease.has_come(now) {
                    true => Err(Refusal::LeaseRunning),
                    false => Ok(change),
                }
            },
            Some(settlement),
        );
        let acted = acted.await;
        match &acted {
            Ok(Acted::Done(settled)) => self.settled(settled),
            Err(_) => self.shared.count(&record.key.operation, Event::StoreError),
            Ok(_) => {}
        }
        acted
    }

    /// Has doubt asked about now, on an operator's word, and writes the audit in the same commit.
    ///
    /// # Errors
    /// As [`settle`](Self::settle). With [`StoreError::Lost`] it is unknown whether it will be asked about now.
    pub async fn ask_now_audited(
        &self,
        id: OperationId,
        terms: OperatorTerms,
        audited: Audited<'_>,
    ) -> Result<Acted, StoreError> {
        self.act_on(id, audited, terms, |record, _| ask_now(record), None).await
    }

    async fn act_on<F>(
        &self,
        id: OperationId,
        audited: Audited<'_>,
        terms: OperatorTerms,
        rule: F,
        settlement: Option<&Settlement>,
    ) -> Result<Acted, StoreError>
    where
        F: Fn(&Record, Timestamp) -> Result<Change, Refusal> + Send + Sync,
    {
        let (now, found) = self.find(id).await?;
        let Some(record) = found else { return Ok(Acted::Missing) };
        let mut acting =
            Acting { engine: self, id, audited, terms, rule, settlement, record, now, lost: None };
        let updated = compare_and_swap(self.store(), &mut acting).await;
        let answer_lost = acting.lost.is_some();
        match updated {
            Ok(Updated::Written(Some(record))) => Ok(Acted::Done(record)),
            Ok(Updated::Stopped(acted)) => Ok(acted),
            Ok(Updated::Missing | Updated::Written(None)) => Ok(Acted::Missing),
            Ok(Updated::Locked) if answer_lost => Err(StoreError::Lost(locked().to_string())),
            Ok(Updated::Locked) => Err(locked()),
            Err(error @ StoreError::Lost(_)) => Err(error),
            Err(error) if answer_lost => Err(StoreError::Lost(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

/// An operator's act, decided on the record as last read.
struct Acting<'a, F> {
    engine: &'a Engine,
    id: OperationId,
    audited: Audited<'a>,
    terms: OperatorTerms,
    rule: F,
    /// A settlement shows by its token that a write whose answer was lost was this one.
    settlement: Option<&'a Settlement>,
    record: Record,
    now: Timestamp,
    lost: Option<StoreError>,
}

impl<F> Decide for Acting<'_, F>
where
    F: Fn(&Record, Timestamp) -> Result<Change, Refusal> + Send + Sync,
{
    type Stop = Acted;

    async fn decide(&mut self, look: Look) -> Result<Decided<Acted>, StoreError> {
        match look {
            Look::First => {}
            Look::Changed(changed, then) => (self.now, self.record) = (then.earliest, *changed),
            Look::Lost(error) => {
                // Without a token that shows whose write it was, it stays unknown.
                if self.settlement.is_none() {
                    return Err(error);
                }
                self.lost = Some(error.clone());
                let Ok((then, found)) = self.engine.find(self.id).await else { return Err(error) };
                let Some(found) = found else { return Ok(Decided::Stop(Acted::Missing)) };
                (self.now, self.record) = (then, found);
            }
        }
        let record = &self.record;
        if self.settlement.is_some_and(|settlement| settlement.settler == record.owner) {
            return Ok(Decided::Stop(Acted::Done(Box::new(record.clone()))));
        }
        if self.terms.version.is_some_and(|version| version != record.version) {
            return Ok(Decided::Stop(Acted::Moved(Box::new(record.clone()))));
        }
        Ok(match (self.rule)(record, self.now) {
            Ok(change) => match &change {
                Change::Put { next, .. } => {
                    let entry = Box::new((self.audited)(record, next));
                    Decided::WriteAudited(record.expected(), change, entry)
                }
                // No act of an operator removes a record.
                Change::Remove => Decided::Stop(Acted::Missing),
            },
            Err(refusal) => Decided::Stop(Acted::Refused(refusal, Box::new(record.clone()))),
        })
    }
}
