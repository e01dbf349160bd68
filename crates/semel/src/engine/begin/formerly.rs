//! A key that may be known under a name that the operation had before, or in the scope that its keys had.
//!
//! A record under a former name or in a former scope is decided on where it is, under its own key. It is looked for before the reservation, and once more when
//! a new record was made: another instance, with the configuration of before, may have begun in between. Then the new record, of which
//! nothing was executed, is taken back. What such an instance begins later is not seen; so all instances get a new name at once.

use super::{BeginError, Decision, Fingerprinted, Incoming, MAX_LOSSES, Next};
use crate::engine::Engine;
use crate::fingerprint::{Recipe, RecipeUnavailable, Subject};
use crate::identity::{Fingerprint, KeyScope, RecordKey};
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
        keys: &[RecordKey],
    ) -> Result<Option<Decision>, BeginError> {
        for key in keys {
            let stored = self.shared.stored_key(key).await?;
            let (now, Some(record)) = self.shared.store.read(&stored).await? else { continue };
            if is_forgotten(&record, now, &incoming.policy) || !is_of(incoming, &record) {
                continue;
            }
            let operation = Arc::clone(&record.key.operation);
            let key = RecordKey { operation: Arc::clone(&operation), ..key.clone() };
            let subject = UnderFormerName { subject: incoming.subject, operation };
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
        keys: &[RecordKey],
        made: Expected,
        claim: Claim,
    ) -> Result<Option<Decision>, BeginError> {
        let mut found = Ok(false);
        for key in keys {
            // The client's key as the store has it.
            let key = RecordKey { key: Arc::clone(&asked.key.key), ..key.clone() };
            match self.shared.store.read(&key).await {
                Ok((now, Some(record)))
                    if !is_forgotten(&record, now, &asked.incoming.policy)
                        && is_of(asked.incoming, &record) =>
                {
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
        let decided = self.decide_formerly(asked.incoming, keys).await?;
        // It is gone again: the client may try again at once.
        Ok(Some(decided.unwrap_or_else(|| super::in_progress(None))))
    }
}

/// Where else a request's key may be known: under names that its operation had before, and in the scope that its keys had.
///
/// Across operations, a record under a former name is found as the key's own, and needs no look.
pub(super) fn former_keys(incoming: &Incoming<'_>) -> Vec<RecordKey> {
    let Incoming { key, subject, .. } = incoming;
    let former = subject.former_scope().filter(|scope| *scope != key.scope);
    let within_operations = [Some(key.scope), former].contains(&Some(KeyScope::Operation));
    let named = |operation| RecordKey { operation, ..key.clone() }.in_scope(KeyScope::Operation);
    let mut keys = Vec::new();
    match former {
        Some(KeyScope::Tenant) => keys.push(key.clone().in_scope(KeyScope::Tenant)),
        Some(KeyScope::Operation) => keys.push(named(Arc::clone(&key.operation))),
        None => {}
    }
    if within_operations {
        keys.extend(subject.former_operations().into_iter().map(named));
    }
    keys
}

/// Whether a record is of the request's operation, by its name or a former one. Across operations, as keys once were, the record may be
/// another operation's: then it says nothing of this request.
fn is_of(incoming: &Incoming<'_>, record: &Record) -> bool {
    let operation = &record.key.operation;
    *operation == incoming.key.operation || incoming.subject.former_operations().contains(operation)
}

/// Whether a key is new although there is a record of it.
fn is_forgotten(record: &Record, now: Now, policy: &Policy) -> bool {
    match standing(record, now.earliest) {
        Standing::Alive | Standing::BodyOver => false,
        Standing::Tombstone => policy.expired == Expired::New,
        Standing::Gone => true,
    }
}
