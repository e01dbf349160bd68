//! A request comes in: reserve first, then decide.

mod formerly;

use formerly::former_keys;

use super::quota::Admission;
use super::{Engine, Ticket};
use crate::environment::Environment;
use crate::fingerprint::{Recipe, RecipeUnavailable, Subject};
use crate::identity::{Fingerprint, MAX_TENANT, OperationId, Owner, RecipeId, RecordKey};
use crate::observe::{Event, log_doubt_of};
use crate::policy::{Expired, InFlight, Policy};
use crate::record::{Draft, Expected as ExpectedRecord, Origin, Record, State};
use crate::store::{Created, StoreError, Swap, Swapped};
use crate::time::{Now, Timestamp};
use crate::trace::note;
use crate::transition::{
    Arrival, Arrived, Change, Claim, Match, Reservation, Standing, arrive, reserve, standing,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A request, as the engine sees it.
pub struct Incoming<'a> {
    /// The scope and the client's key.
    pub key: RecordKey,
    /// What is asked for, to be fingerprinted.
    pub subject: &'a dyn Subject,
    /// The rules of the operation.
    pub policy: Arc<Policy>,
}

/// What becomes of a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Decision {
    /// Execute it, and finish the ticket.
    Execute(Ticket),
    /// Answer with the record's stored response.
    Replay(Box<Record>),
    /// The operation has ended, but its answer was not stored or was dropped. The record names the resource.
    NotStored(Box<Record>),
    /// Another request executes it.
    InProgress {
        /// The operation, unless an open transaction hides it, or the key's window ended while this request waited.
        operation_id: Option<OperationId>,
        /// When to ask again.
        retry_after: Duration,
    },
    /// It is unknown whether it happened.
    Unknown {
        /// The operation.
        operation_id: OperationId,
        /// When to ask again.
        retry_after: Duration,
    },
    /// The key belongs to a different request.
    KeyReused {
        /// The operation that it belongs to.
        operation_id: OperationId,
        /// How that operation stands.
        state: State,
        /// When the key's window is over, if that is known yet.
        expires: Option<Timestamp>,
    },
    /// The key is new, and its tenant has as many as it may for now. Nothing is stored of the request.
    QuotaExceeded {
        /// When there may be room.
        retry_after: Duration,
    },
    /// The key's window is over.
    Expired {
        /// The operation that it stood for.
        operation_id: OperationId,
        /// When the window was over.
        expires: Option<Timestamp>,
    },
    /// The record's fingerprint recipe is unavailable here, so the requests cannot be compared.
    CannotTell {
        /// The operation in question.
        operation_id: OperationId,
    },
}

/// Why nothing could be decided. Nothing was executed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The store did not answer, or not for certain: fail closed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request cannot be fingerprinted under its own recipe: it was made with another secret than is configured.
    #[error("the configured fingerprint recipe needs another secret")]
    Recipe,
    /// The tenant's name is longer than [`MAX_TENANT`].
    #[error("the tenant name has {0} bytes, and the limit is {most}", most = MAX_TENANT)]
    Tenant(usize),
}

/// Retries of a decision that lost on the version. Each loss means that another write succeeded, so running out
/// of them takes a storm; the answer then is that the operation is in progress, which is true.
const MAX_LOSSES: usize = 32;

/// `Retry-After` while the operation is in progress: most have ended by then.
const RETRY_SOON: Duration = Duration::from_secs(1);
/// Smallest and largest `Retry-After` while the outcome is unknown. It grows with the age of the doubt.
const RETRY_UNKNOWN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// A request with its stored key and fingerprint: what every step of its decision needs.
pub(super) struct Fingerprinted<'a> {
    pub(super) incoming: &'a Incoming<'a>,
    /// Its key as the store has it.
    pub(super) key: Cow<'a, RecordKey>,
    pub(super) fingerprint: Fingerprint,
    pub(super) recipe: RecipeId,
    pub(super) owner: Owner,
}

impl Fingerprinted<'_> {
    fn draft(&self, environment: &Environment) -> Draft {
        let reservation = Reservation {
            key: RecordKey::clone(&self.key),
            operation_id: environment.operation_id(),
            fingerprint: self.fingerprint,
            recipe: self.recipe,
            owner: self.owner,
        };
        reserve(reservation, &self.incoming.policy)
    }
}

/// The longest that a request waits for the end of a window that its answer is gone with.
const LONGEST_WINDOW_PAUSE: Duration = Duration::from_secs(1);

/// What one look at a record leads to.
enum Next {
    Decided(Decision),
    /// It was changed meanwhile: decide on this record.
    Again(Box<Record>, Now),
    /// The record is gone: reserve.
    Reserve,
}

// What is rare is boxed: a future is as large as the largest of what it may have to wait for, and every request has one.
impl Engine {
    /// Reserves the operation, or finds out how it stands.
    ///
    /// Call it on a task of its own: once the reservation is made, only the ticket's holder can finish it, and a client that hangs
    /// up must not take it along.
    ///
    /// # Errors
    /// Nothing could be decided, and nothing may be executed.
    pub async fn begin(&self, incoming: Incoming<'_>) -> Result<Decision, BeginError> {
        let begun = self.find_out(&incoming).await;
        if let Some(event) = told(&begun) {
            self.shared.count(&incoming.key.operation, event);
        }
        note(|noted| {
            noted.operation = Some(incoming.key.operation.clone());
            noted.operation_id = operation_id(&begun);
            // A request that executes noted it when it became the owner.
            noted.decision = decision(&begun).or(noted.decision);
        });
        begun
    }

    async fn find_out(&self, incoming: &Incoming<'_>) -> Result<Decision, BeginError> {
        let former = former_keys(incoming);
        if !former.is_empty()
            && let Some(decision) = Box::pin(self.decide_formerly(incoming, &former)).await?
        {
            return Ok(decision);
        }
        let asked = self.asked(incoming).await?;
        let decision = self.reserve(&asked).await?;
        match (decision, incoming.policy.in_flight) {
            (Decision::InProgress { operation_id, retry_after }, InFlight::Wait(patience)) => {
                Box::pin(self.wait(&asked, operation_id, retry_after, patience)).await
            }
            (decision, _) => Ok(decision),
        }
    }

    /// The record that a new operation would have, for a store that reserves in a transaction of the application's.
    ///
    /// # Errors
    /// The store did not answer, or the request cannot be fingerprinted.
    pub async fn draft(&self, incoming: &Incoming<'_>) -> Result<Draft, BeginError> {
        Ok(self.asked(incoming).await?.draft(self.environment()))
    }

    /// The request with its fingerprint, under a recipe that the store keeps.
    async fn asked<'a>(&self, incoming: &'a Incoming<'a>) -> Result<Fingerprinted<'a>, BeginError> {
        let tenant = incoming.key.tenant.len();
        if tenant > MAX_TENANT {
            return Err(BeginError::Tenant(tenant));
        }
        // Before the recipe is kept: with it, a store counts as used.
        let key = match self.shared.client_keys.stored(&incoming.key) {
            Some(key) => key,
            None => Box::pin(self.shared.stored_key(&incoming.key)).await?,
        };
        let recipe = incoming.subject.recipe();
        let recipe_id = recipe.id();
        let fingerprint = incoming.subject.fingerprint_under(recipe).map_err(|_| BeginError::Recipe)?;
        self.shared.keep_recipe(recipe_id, recipe).await?;
        Ok(Fingerprinted { incoming, key, fingerprint, recipe: recipe_id, owner: self.environment().owner() })
    }

    /// Creates the record, or decides on the one that is there, until a write succeeds.
    ///
    /// Not [`compare_and_swap`](crate::store::cas::compare_and_swap), which begins with a record and ends where it is missing: here a record
    /// that is gone is reserved again, and a lost answer is read back by the token of the owner that the write would have made.
    pub(super) async fn reserve(&self, asked: &Fingerprinted<'_>) -> Result<Decision, BeginError> {
        let mut next = Next::Reserve;
        for _ in 0..MAX_LOSSES {
            next = match next {
                Next::Decided(decision) => return Ok(decision),
                Next::Again(record, now) => self.decide(asked, *record, now).await?,
                Next::Reserve => self.create(asked).await?,
            };
        }
        match next {
            Next::Decided(decision) => Ok(decision),
            Next::Again(..) | Next::Reserve => Ok(in_progress(None)),
        }
    }

    async fn create(&self, asked: &Fingerprinted<'_>) -> Result<Next, BeginError> {
        // Given back by whatever does not make a key.
        let pass = match self.shared.admit(&asked.incoming.key.tenant).await? {
            Admission::Granted(pass) => pass,
            Admission::Refused { retry_after } => {
                return Box::pin(self.known_alone(asked, retry_after)).await;
            }
        };
        let draft = asked.draft(self.environment());
        let begun = self.environment().boottime();
        match self.shared.store.create(&draft).await {
            Ok((now, Created::Inserted)) => {
                pass.used();
                let record = draft.at(now);
                match self.formerly_begun(asked, &record).await? {
                    Some(decision) => Ok(Next::Decided(decision)),
                    None => Ok(self.execute(asked, record, begun)),
                }
            }
            Ok((now, Created::Exists(record))) => Ok(Next::Again(record, now)),
            Ok((_, Created::Locked)) => Ok(Next::Decided(in_progress(None))),
            Ok((_, Created::Damaged(why))) => Err(StoreError::Damaged(why).into()),
            Err(error @ StoreError::Lost(_)) => {
                pass.used();
                Box::pin(self.read_back(asked, Claim::of(&draft), error, begun)).await
            }
            Err(error) => {
                if matches!(error, StoreError::Unavailable(_)) {
                    // Perhaps it takes keys of another format by now.
                    self.shared.client_keys.forget();
                }
                Err(error.into())
            }
        }
    }

    /// The decision on a key that turned up under a former name after this record was made.
    async fn formerly_begun(
        &self,
        asked: &Fingerprinted<'_>,
        made: &Record,
    ) -> Result<Option<Decision>, BeginError> {
        let former = former_keys(asked.incoming);
        if former.is_empty() || made.attempt > 1 {
            return Ok(None);
        }
        Box::pin(self.is_still_new(asked, &former, made.expected(), Claim::of(made))).await
    }

    /// For a tenant that may not make a new key: what is known is answered as ever. Reading first is safe here, as nothing is executed
    /// on the word that there is nothing.
    async fn known_alone(
        &self,
        asked: &Fingerprinted<'_>,
        retry_after: Duration,
    ) -> Result<Next, BeginError> {
        Ok(match self.shared.store.read(&asked.key).await? {
            (now, Some(record)) => Next::Again(Box::new(record), now),
            (_, None) => Next::Decided(Decision::QuotaExceeded { retry_after }),
        })
    }

    async fn decide(&self, asked: &Fingerprinted<'_>, record: Record, now: Now) -> Result<Next, BeginError> {
        let matches = self.compare(asked, &record).await?;
        let arrival = Arrival { matches, owner: asked.owner, policy: &asked.incoming.policy };
        match arrive(&record, &arrival, now) {
            Arrived::Take(Change::Put { next, history }) => {
                // A new owner resumes from the checkpoint: if that cannot be unsealed, the request does not execute.
                self.checkpoint_of(&record)?;
                let swap = Swap { expected: record.expected(), next, history };
                let begun = self.environment().boottime();
                match self.shared.store.swap(&swap).await {
                    Ok((now, Swapped::Done)) => Ok(self.execute(asked, swap.next.at(now), begun)),
                    Err(error @ StoreError::Lost(_)) => {
                        Box::pin(self.read_back(asked, Claim::of(&swap.next), error, begun)).await
                    }
                    other => lost(other?),
                }
            }
            Arrived::Doubt(Change::Put { next, history }) => {
                let swap = Swap { expected: record.expected(), next, history };
                match self.shared.store.swap(&swap).await {
                    Ok((now, Swapped::Done)) => {
                        let doubted = swap.next.at(now);
                        log_doubt_of(&doubted);
                        self.shared.count(&doubted.key.operation, Event::ZombieKey);
                        self.shared.written(&doubted);
                        Ok(Next::Again(Box::new(doubted), now))
                    }
                    other => lost(other?),
                }
            }
            Arrived::Forgotten | Arrived::Take(Change::Remove) | Arrived::Doubt(Change::Remove) => {
                match self.shared.store.remove(&record.expected()).await? {
                    (_, Swapped::Done) => {
                        // A tombstone that the policy lets be new work; what is gone by its own time is no retry.
                        if standing(&record, now.earliest) == Standing::Tombstone {
                            self.shared.count(&record.key.operation, Event::ExpiredRetry);
                        }
                        Ok(Next::Reserve)
                    }
                    other => lost(other),
                }
            }
            // Under this policy an expired key is new. The answer went with its window, and `now` is of a moment before.
            Arrived::Expired if asked.incoming.policy.expired == Expired::New => {
                Box::pin(self.read_after_window(asked, record, now)).await
            }
            Arrived::Replay => {
                let expected = record.expected();
                match self.answered(Arrived::Replay, record, now) {
                    Ok(decision) => Ok(Next::Decided(decision)),
                    Err(error) => Box::pin(self.read_unopened(asked, expected, error)).await,
                }
            }
            answer => Ok(Next::Decided(self.answered(answer, record, now)?)),
        }
    }

    /// Reads a record whose answer does not open. A store with a cache in front may have told an earlier version of it, sealed by a key that is
    /// gone since; a read tells what is stored.
    async fn read_unopened(
        &self,
        asked: &Fingerprinted<'_>,
        unopened: ExpectedRecord,
        error: StoreError,
    ) -> Result<Next, BeginError> {
        match self.shared.store.read(&asked.key).await? {
            (now, Some(later)) if later.expected() != unopened => Ok(Next::Again(Box::new(later), now)),
            _ => Err(error.into()),
        }
    }

    /// Reads a record again whose window must be over any moment. If it is not over by then, its answer was lost: then the request is refused,
    /// and nothing is executed.
    async fn read_after_window(
        &self,
        asked: &Fingerprinted<'_>,
        record: Record,
        now: Now,
    ) -> Result<Next, BeginError> {
        let left = record.times.expires.map_or(Duration::ZERO, |end| end.after(now.earliest));
        tokio::time::sleep(left.min(LONGEST_WINDOW_PAUSE)).await;
        Ok(match self.shared.store.read(&asked.key).await? {
            (now, Some(later))
                if later.expected() == record.expected()
                    && matches!(standing(&later, now.earliest), Standing::Alive | Standing::BodyOver) =>
            {
                Next::Decided(self.answered(Arrived::Expired, later, now)?)
            }
            (now, Some(later)) => Next::Again(Box::new(later), now),
            (_, None) => Next::Reserve,
        })
    }

    /// How the request compares with a record, under the record's own recipe and the name that its operation has there.
    async fn compare(&self, asked: &Fingerprinted<'_>, record: &Record) -> Result<Match, StoreError> {
        let Incoming { subject, key, .. } = asked.incoming;
        let operation = &record.key.operation;
        // Only under a key across operations is there a record of another one.
        let is_renamed = *operation != key.operation;
        if is_renamed && !subject.former_operations().contains(operation) {
            return Ok(Match::OtherOperation);
        }
        let make = |recipe: &Recipe| match is_renamed {
            true => subject.fingerprint_as(operation, recipe),
            false => subject.fingerprint_under(recipe),
        };
        let fingerprint = if record.recipe == asked.recipe && !is_renamed {
            Some(asked.fingerprint)
        } else {
            match self.shared.recipe(record.recipe).await? {
                None => None,
                Some(recipe) => match make(&recipe) {
                    // It may be one of the store's.
                    Err(RecipeUnavailable::OtherSecret) => {
                        let keyed = Box::pin(self.shared.keyed_as_stored(&recipe)).await?;
                        keyed.and_then(|recipe| make(&recipe).ok())
                    }
                    made => made.ok(),
                },
            }
        };
        Ok(match fingerprint {
            Some(fingerprint) if fingerprint == record.fingerprint => Match::Same,
            Some(_) => Match::Different,
            None => Match::CannotTell,
        })
    }

    /// The store's answer to a write that would have made us the owner was lost. If our token is there, it was written; if
    /// not, it may yet be: then nothing is executed, and what may turn up is given back.
    async fn read_back(
        &self,
        asked: &Fingerprinted<'_>,
        claim: Claim,
        error: StoreError,
        begun: Duration,
    ) -> Result<Next, BeginError> {
        match self.shared.store.read(&asked.key).await {
            // Not if its lease ran out meanwhile: evidence may be about to settle it as never executed.
            Ok((_, Some(record))) if claim.holds(&record) && record.state == State::InProgress => {
                match self.formerly_begun(asked, &record).await? {
                    Some(decision) => Ok(Next::Decided(decision)),
                    None => Ok(self.execute(asked, record, begun)),
                }
            }
            _ => {
                self.abandon_lost_reservation(
                    RecordKey::clone(&asked.key),
                    claim,
                    Arc::clone(&asked.incoming.policy),
                );
                Err(error.into())
            }
        }
    }

    /// The ticket of a request whose lease was requested at `begun`.
    fn execute(&self, asked: &Fingerprinted<'_>, record: Record, begun: Duration) -> Next {
        let (event, decision) = match record.origin {
            Origin::First => (Event::ReserveCreated, "created"),
            Origin::Retry => (Event::ReserveFailedRetry, "failed_retry"),
            Origin::Doubt => (Event::ZombieKey, "taken_over"),
        };
        self.shared.count(&record.key.operation, event);
        note(|noted| (noted.decision, noted.attempt) = (Some(decision), Some(record.attempt)));
        Next::Decided(Decision::Execute(self.ticket(record, &asked.incoming.policy, begun)))
    }

    /// The decision for a waiter, which never becomes an owner; `None` while the owner is at work.
    pub(super) async fn look(
        &self,
        asked: &Fingerprinted<'_>,
        record: Record,
        now: Now,
    ) -> Result<Option<Decision>, StoreError> {
        let matches = self.compare(asked, &record).await?;
        let arrival = Arrival { matches, owner: asked.owner, policy: &asked.incoming.policy };
        Ok(match arrive(&record, &arrival, now) {
            Arrived::InProgress { .. } => None,
            // It may be executed, by a new request.
            Arrived::Take(_) => Some(in_progress(Some(record.operation_id))),
            // So may the key, and what it stood for may have been another request.
            Arrived::Forgotten => Some(in_progress(None)),
            // As above: the window is over any moment, and the key is new then.
            Arrived::Expired if asked.incoming.policy.expired == Expired::New => {
                Some(in_progress(Some(record.operation_id)))
            }
            Arrived::Doubt(_) => Some(unknown(&record, now)),
            answer => Some(self.answered(answer, record, now)?),
        })
    }

    pub(super) fn answered(&self, answer: Arrived, record: Record, now: Now) -> Result<Decision, StoreError> {
        let operation_id = record.operation_id;
        Ok(match answer {
            Arrived::KeyReused => {
                // A bug of the client, or an attempt to guess keys: worth a look either way.
                tracing::warn!(%operation_id, "key reused with a different request");
                Decision::KeyReused { operation_id, state: record.state, expires: record.times.expires }
            }
            Arrived::CannotTell => Decision::CannotTell { operation_id },
            Arrived::Expired => Decision::Expired { operation_id, expires: record.times.expires },
            Arrived::Replay => Decision::Replay(Box::new(self.shared.opened(record)?)),
            Arrived::NotStored => Decision::NotStored(Box::new(record)),
            Arrived::Unknown => unknown(&record, now),
            Arrived::InProgress { .. } | Arrived::Doubt(_) | Arrived::Take(_) | Arrived::Forgotten => {
                in_progress(Some(operation_id))
            }
        })
    }
}

/// The event of a request that does not execute; one that executes was counted when it became the owner.
fn told(begun: &Result<Decision, BeginError>) -> Option<Event> {
    match begun {
        Ok(Decision::Execute(_)) | Err(BeginError::Recipe | BeginError::Tenant(_)) => None,
        Ok(Decision::Replay(_) | Decision::NotStored(_)) => Some(Event::ReserveReplay),
        Ok(Decision::InProgress { .. }) => Some(Event::ReserveInProgress),
        Ok(Decision::Unknown { .. } | Decision::CannotTell { .. }) => Some(Event::ReserveUnknown),
        Ok(Decision::KeyReused { .. }) => Some(Event::ReserveKeyMisuse),
        Ok(Decision::QuotaExceeded { .. }) => Some(Event::QuotaRefused),
        Ok(Decision::Expired { .. }) => Some(Event::ExpiredRetry),
        Err(BeginError::Store(_)) => Some(Event::StoreError),
    }
}

/// What was decided about a request that does not execute, as traces spell it.
fn decision(begun: &Result<Decision, BeginError>) -> Option<&'static str> {
    Some(match begun {
        Ok(Decision::Execute(_)) => return None,
        Ok(Decision::Replay(_)) => "replay",
        Ok(Decision::NotStored(_)) => "not_stored",
        Ok(Decision::InProgress { .. }) => "in_progress",
        Ok(Decision::Unknown { .. }) => "unknown",
        Ok(Decision::CannotTell { .. }) => "cannot_tell",
        Ok(Decision::KeyReused { .. }) => "key_misuse",
        Ok(Decision::QuotaExceeded { .. }) => "quota_exceeded",
        Ok(Decision::Expired { .. }) => "expired",
        Err(BeginError::Store(_)) => "store_error",
        Err(BeginError::Recipe) => "recipe_error",
        Err(BeginError::Tenant(_)) => "tenant_error",
    })
}

fn operation_id(begun: &Result<Decision, BeginError>) -> Option<OperationId> {
    match begun.as_ref().ok()? {
        Decision::Execute(ticket) => Some(ticket.operation_id()),
        Decision::Replay(record) | Decision::NotStored(record) => Some(record.operation_id),
        Decision::InProgress { operation_id, .. } => *operation_id,
        Decision::QuotaExceeded { .. } => None,
        Decision::Unknown { operation_id, .. }
        | Decision::KeyReused { operation_id, .. }
        | Decision::Expired { operation_id, .. }
        | Decision::CannotTell { operation_id } => Some(*operation_id),
    }
}

/// A conditional write did not find what it expected.
fn lost((now, swapped): (Now, Swapped)) -> Result<Next, BeginError> {
    Ok(match swapped {
        Swapped::Changed(record) => Next::Again(record, now),
        Swapped::Missing => Next::Reserve,
        Swapped::Locked | Swapped::Done => Next::Decided(in_progress(None)),
        Swapped::Damaged(why) => return Err(StoreError::Damaged(why).into()),
    })
}

fn in_progress(operation_id: Option<OperationId>) -> Decision {
    Decision::InProgress { operation_id, retry_after: RETRY_SOON }
}

/// A client that waits as long again as it has waited already retries a handful of times in an hour of doubt, and learns an early outcome
/// early. The age counts from the end of the lease: until then the owner may be at work, and its late outcome comes at any moment. What
/// is known of the next poll makes it longer: before that there is little to learn.
pub(super) fn unknown(record: &Record, now: Now) -> Decision {
    let now = now.earliest;
    let age = now.after(record.times.lease);
    let next_poll = record.times.reconcile.filter(|_| !record.dead_letter).map(|at| at.after(now));
    let retry_after = age.max(next_poll.unwrap_or_default()).clamp(RETRY_UNKNOWN.0, RETRY_UNKNOWN.1);
    Decision::Unknown { operation_id: record.operation_id, retry_after }
}
