//! A key that may be known under a name that the operation had before.
//!
//! A record under a former name is decided on where it is, under its own key. It is looked for before the reservation, and once more when
//! a new record was made: another instance, with the configuration of before, may have begun in between. Then the new record, of which
//! nothing was executed, is taken back. What such an instance begins later is not seen; so all instances get a new name at once.

use super::{BeginError, Decision, Fingerprinted, Incoming, MAX_LOSSES, Next};
use crate::engine::Engine;
use crate::fingerprint::{Recipe, RecipeUnavailable, Subject};
use crate::identity::{Fingerprint, RecordKey};
use crate::policy::{Expired, InFlight, Policy};
use crate::record::{Expected, Record};
use crate::store::Swapped;
use crate::time::Now;
use crate::transition::{Claim, Standing, standing};
use std::sync::Arc;

/// A request as it was made under a former name.
struct UnderFormerName<'a> {
    subject: &'a dyn Subject,
    operation: Arc<str>,
}

impl Subject for UnderFormerName<'_> {
    fn recipe(&self) -> &Recipe {
        self.subject.recipe()
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.subject.fingerprint_as(&self.operation, recipe)
    }
}

impl Engine {
    /// What becomes of a request whose key is known under a former name; `None` where it is not.
    pub(super) async fn decide_formerly(
        &self,
        incoming: &Incoming<'_>,
        names: &[Arc<str>],
    ) -> Result<Option<Decision>, BeginError> {
        for operation in names {
            let key = RecordKey { operation: Arc::clone(operation), ..incoming.key.clone() };
            let stored = self.shared.stored_key(&key).await?;
            let (now, Some(record)) = self.shared.store.read(&stored).await? else { continue };
            if is_forgotten(&record, now, &incoming.policy) {
                continue;
            }
            let subject = UnderFormerName { subject: incoming.subject, operation: Arc::clone(operation) };
            let former = Incoming { key, subject: &subject, policy: Arc::clone(&incoming.policy) };
            let asked = self.asked(&former).await?;
            if let Some(decision) = self.decide_on(&asked, record, now).await? {
                return Ok(Some(decision));
            }
        }
        Ok(None)
    }

    /// The decision on a record; `None` where it turns out to be gone.
    async fn decide_on(
        &self,
        asked: &Fingerprinted<'_>,
        record: Record,
        now: Now,
    ) -> Result<Option<Decision>, BeginError> {
        let mut next = Next::Again(Box::new(record), now);
        for _ in 0..MAX_LOSSES {
            let decision = match next {
                Next::Again(record, now) => {
                    next = self.decide(asked, *record, now).await?;
                    continue;
                }
                Next::Reserve => return Ok(None),
                Next::Decided(decision) => decision,
            };
            return Ok(Some(match (decision, asked.incoming.policy.in_flight) {
                (Decision::InProgress { operation_id, retry_after }, InFlight::Wait(patience)) => {
                    self.wait(asked, operation_id, retry_after, patience).await?
                }
                (decision, _) => decision,
            }));
        }
        Ok(Some(super::in_progress(None)))
    }

    /// Whether a record that was just made may be executed: not if its key turned up under a former name meanwhile. Then the record is
    /// taken back, and the other one decides.
    pub(super) async fn is_still_new(
        &self,
        asked: &Fingerprinted<'_>,
        names: &[Arc<str>],
        made: Expected,
        claim: Claim,
    ) -> Result<Option<Decision>, BeginError> {
        let mut found = Ok(false);
        for operation in names {
            let key = RecordKey { operation: Arc::clone(operation), ..RecordKey::clone(&asked.key) };
            match self.shared.store.read(&key).await {
                Ok((now, Some(record))) if !is_forgotten(&record, now, &asked.incoming.policy) => {
                    found = Ok(true)
                }
                Ok(_) => {}
                Err(error) => found = Err(error),
            }
            if !matches!(found, Ok(false)) {
                break;
            }
        }
        if matches!(found, Ok(false)) {
            return Ok(None);
        }
        let taken_back = match self.shared.store.remove(&made).await {
            Ok((_, Swapped::Done | Swapped::Missing)) => found,
            // Somebody else has it in hand, and nothing was executed.
            Ok(_) => return Ok(Some(super::in_progress(None))),
            Err(error) => Err(error),
        };
        if let Err(error) = taken_back {
            let (key, policy) = (RecordKey::clone(&asked.key), Arc::clone(&asked.incoming.policy));
            self.abandon_lost_reservation(key, claim, policy);
            return Err(error.into());
        }
        let decided = self.decide_formerly(asked.incoming, names).await?;
        // It is gone again: the client may try again at once.
        Ok(Some(decided.unwrap_or_else(|| super::in_progress(None))))
    }
}

/// Whether a key is new although there is a record of it.
fn is_forgotten(record: &Record, now: Now, policy: &Policy) -> bool {
    match standing(record, now.earliest) {
        Standing::Alive | Standing::BodyOver => false,
        Standing::Tombstone => policy.expired == Expired::New,
        Standing::Gone => true,
    }
}
