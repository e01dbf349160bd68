//! What a client's next retry would get: the rules of a request that arrives, applied to a record as it is or as it would be.

use super::begin::unknown;
use super::{Decision, Engine, OperatorTerms};
use crate::identity::Owner;
use crate::policy::{Expired, Policy};
use crate::record::Record;
use crate::store::StoreError;
use crate::time::Now;
use crate::transition::{
    About, Arrival, Arrived, Change, Evidence, Match, Refusal, Settlement, arrive, settle,
};

/// What a retry of the same request would get.
#[derive(Debug)]
pub enum Forecast {
    /// It would execute, as this attempt.
    Executes {
        /// The attempt.
        attempt: u32,
    },
    /// It would be answered by this decision, which is never to execute.
    Answered(Decision),
}

impl Engine {
    /// What a retry of the same request would get if it found this record, as it is stored. Nothing is written.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]: the stored answer does not open.
    pub fn forecast(&self, record: Record, policy: &Policy, now: Now) -> Result<Forecast, StoreError> {
        let arrival = Arrival { matches: Match::Same, owner: Owner::random(), policy };
        Ok(match arrive(&record, &arrival, now) {
            Arrived::Take(Change::Put { next, .. }) => Forecast::Executes { attempt: next.attempt },
            Arrived::Take(Change::Remove) | Arrived::Forgotten => Forecast::Executes { attempt: 1 },
            Arrived::Expired if policy.expired == Expired::New => Forecast::Executes { attempt: 1 },
            Arrived::Doubt(Change::Put { next, .. }) => Forecast::Answered(unknown(&next.at(now), now)),
            answer => Forecast::Answered(self.answered(answer, record, now)?),
        })
    }

    /// The record as this settlement would leave it, and what the next retry would get then; or why the rules refuse it. Nothing is written.
    ///
    /// # Errors
    /// As [`forecast`](Self::forecast).
    pub fn forecast_settled(
        &self,
        record: &Record,
        about: &About,
        settlement: &Settlement,
        terms: OperatorTerms,
        policy: &Policy,
        now: Now,
    ) -> Result<Result<(Record, Forecast), Refusal>, StoreError> {
        let settlement = &*self.shared.sealed(settlement, record);
        let change = match settle(record, about, settlement, now.earliest) {
            Ok(change) => change,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let is_early = terms.after_lease && !record.times.lease.has_come(now.earliest);
        if is_early && settlement.evidence == Evidence::NotExecuted {
            return Ok(Err(Refusal::LeaseRunning));
        }
        let Change::Put { next, .. } = change else { return Ok(Err(Refusal::NotUnknown)) };
        let settled = next.at(now);
        let forecast = self.forecast(settled.clone(), policy, now)?;
        Ok(Ok((settled, forecast)))
    }
}
