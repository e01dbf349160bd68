//! Operations with effects outside: built of phases, each of which commits a recovery point.
//!
//! A **local** phase is one transaction of a store that can share it (`SqliteStore::phase`, `PgStore::phase`): the domain rows and
//! the recovery point. A **foreign** phase ([`Phases::foreign`]) commits that the call is *sent*, makes exactly one outside call
//! with no transaction open, and commits its result. The next owner resumes after the last recovery point.
//!
//! What a crash leaves:
//!
//! | the process dies | the record has | the next owner |
//! |---|---|---|
//! | before a local phase commits | the phase before | runs it: nothing of it is there |
//! | after it | the phase, with what it came to | does not run it |
//! | before *sent* commits | the phase before | makes the call: it was not made before |
//! | after *sent*, before, in or after the call | *sent* | does as the [`Promise`] says: repeats, asks, or calls it unknown |
//! | after the result commits | the phase, with its result | does not make the call |
//!
//! An owner that lost the operation is refused each of these commits, and so begins no further effect.

mod journal;
mod promise;

pub use promise::{
    AtMostOnce, Deduplicated, Found, Identity, Inquiry, Promise, Queryable, Takeover, queryable,
};

use super::Shared;
use super::finish::FIRST_PAUSE;
use super::interruption::{Interrupted, Interruption, course, interrupt};
use super::outcome_writes::OutcomeWrites;
use super::owner_write::{Written, see, write};
use super::right::Seen;
use super::ticket::{Held, Ticket, downstream_key};
use crate::record::Record;
use crate::store::StoreError;
use crate::transition::{Act, Claim, Refusal};
use journal::{Journal, Standing};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tokio::time::Instant;

/// The result of a phase. It is stored as JSON for attempts that resume after it.
pub trait Checkpoint: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Checkpoint for T {}

/// Why a phase was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PhaseError<E> {
    /// A local phase's own work failed. What it wrote is rolled back.
    #[error("the phase failed and was rolled back")]
    Application(E),
    /// The call, or asking what became of it, failed. Unless asking showed that it never happened, the outcome is unknown.
    #[error("the outside call of the phase failed or was not answered")]
    Call(E),
    /// An earlier attempt may have made the call. The outcome is unknown.
    #[error("an earlier attempt may have made the call, and its outcome is unknown")]
    Unknown,
    /// This attempt may not go on: it is not the owner any more, or the outcome is in doubt. Nothing was written.
    #[error("this attempt must stop: {0:?}")]
    Refused(Refusal),
    /// The store failed. The next attempt goes on after the last recovery point.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The phases of the program are not those that the operation went through.
    #[error(transparent)]
    OutOfStep(#[from] OutOfStep),
    /// What the phase came to cannot be kept.
    #[error("the result of the phase cannot be serialised as JSON")]
    Kept(#[source] serde_json::Error),
}

/// How the phases of the program differ from those that the operation went through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfStep {
    /// One name stands for two phases.
    #[error("the phase {0:?} was entered twice: give every phase its own name")]
    Twice(String),
    /// Two journals of one attempt would overwrite each other's recovery points.
    #[error("the phases of this attempt were already taken: pass on the existing value")]
    TakenBefore,
    /// A name is not fit for a phase.
    #[error("{0:?} is not a valid phase name: it is empty or contains a colon")]
    Name(String),
    /// A call of another phase has no answer yet.
    #[error(
        "the phase {entered:?} was entered while the call of {sent:?} is unanswered: was a phase renamed or moved while operations were in flight?"
    )]
    AnotherIsSent {
        /// The phase that was entered.
        entered: String,
        /// The phase whose call has no answer.
        sent: String,
    },
    /// Another local phase was begun and has not ended yet.
    #[error(
        "the phase {entered:?} was entered while {open:?} may still commit: was its future dropped, or its error ignored?"
    )]
    AnotherIsOpen {
        /// The phase that was entered.
        entered: String,
        /// The phase that was begun before it.
        open: String,
    },
    /// The checkpoint is sealed, and does not open.
    #[error(transparent)]
    Damaged(StoreError),
    /// The checkpoint was not written by phases, or by other ones.
    #[error("the operation's checkpoint cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

/// The phases of one operation. What earlier attempts have done is not done again.
///
/// ```
/// # use semel::{Deduplicated, Identity, PhaseError, Ticket};
/// # struct Provider;
/// # impl Provider { async fn charge(&self, _identity: Identity) -> Result<String, std::io::Error> { Ok("ch_1".into()) } }
/// # async fn run(ticket: &Ticket, provider: &Provider) -> Result<(), PhaseError<std::io::Error>> {
/// let mut phases = ticket.phases()?;
/// let charge: String =
///     phases.foreign("charged", Deduplicated, async |identity| provider.charge(identity).await).await?;
/// # Ok(()) }
/// ```
///
/// Names are kept with the operations: do not rename or move a phase while operations are in flight.
pub struct Phases {
    shared: Arc<Shared>,
    claim: Claim,
    writes: OutcomeWrites,
    seen: Arc<Seen>,
    interrupted: Interrupted,
    journal: Journal,
    entered: BTreeSet<String>,
    /// The local phase that was begun last, as long as it is not known what became of it.
    open: Option<String>,
}

/// Where a local phase stands.
pub enum Entered<T> {
    /// It is done, and came to this.
    Done(T),
    /// It is to be done now, in one transaction.
    Now(Step),
}

/// A local phase that is to be done: for stores that share their transactions.
#[derive(Clone)]
pub struct Step {
    claim: Claim,
    name: String,
    journal: Journal,
    writes: OutcomeWrites,
}

impl Step {
    /// On whose behalf.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// The act that commits the phase, together with its domain rows, once it has come to `value`.
    ///
    /// # Errors
    /// The value cannot be kept as JSON.
    pub fn act(&self, value: &impl Serialize) -> Result<Act, serde_json::Error> {
        advance(&self.journal.done(&self.name, serde_json::to_value(value)?), &self.writes)
    }
}

impl Ticket {
    /// The phases of the operation, for work that is built of recovery points. There is one of them per attempt.
    ///
    /// # Errors
    /// They were taken before, or the checkpoint of an earlier attempt cannot be read.
    pub fn phases(&self) -> Result<Phases, OutOfStep> {
        let Held { shared, claim, writes, seen, interrupted, .. } = self.held();
        if std::mem::replace(&mut course(interrupted).taken, true) {
            interrupt(interrupted, Some(Interruption::InDoubt));
            return Err(OutOfStep::TakenBefore);
        }
        let journal = Journal::of(&seen.lock().unwrap_or_else(PoisonError::into_inner), writes);
        Ok(Phases {
            shared: Arc::clone(shared),
            claim: *claim,
            writes: writes.clone(),
            seen: Arc::clone(seen),
            interrupted: Arc::clone(interrupted),
            journal: journal.inspect_err(|_| interrupt(interrupted, Some(Interruption::InDoubt)))?,
            entered: BTreeSet::new(),
            open: None,
        })
    }

    /// What kept the attempt from going through its phases, if anything did. Whoever has nothing better to go by ends a
    /// [`Resumable`](Interruption::Resumable) one as [`Retryable`](super::Outcome::Retryable), and one
    /// [`InDoubt`](Interruption::InDoubt) as [`Unknown`](super::Outcome::Unknown).
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        course(&self.held().interrupted).interruption
    }
}

impl Phases {
    /// Makes one outside call, once.
    ///
    /// `call` gets the identity that the other side is to know the call by: derived from the operation and `name`, the same on every
    /// attempt. It returns `Ok` with whatever the other side said for certain, a refusal included, and `Err` where it said nothing
    /// that can be relied on. No transaction may be open meanwhile.
    ///
    /// # Errors
    /// See [`PhaseError`]. The handler's work ends there; [`Ticket::interruption`] says what became of the operation.
    pub async fn foreign<T: Checkpoint, E>(
        &mut self,
        name: &str,
        promise: impl Promise<T, E>,
        call: impl AsyncFnOnce(Identity) -> Result<T, E>,
    ) -> Result<T, PhaseError<E>> {
        let key = downstream_key(self.claim.operation_id, name);
        let attempt = self.claim.attempt;
        match self.enter(name)? {
            Standing::Done(value) => return self.decode(value).map_err(PhaseError::from),
            Standing::New => self.commit(self.journal.sending(name)).await?,
            Standing::Sent => {
                let earlier = Inquiry { key: key.clone(), up_to_attempt: attempt.saturating_sub(1) };
                self.interrupt(Interruption::InDoubt);
                match promise.after_takeover(earlier).await.map_err(PhaseError::Call)? {
                    Takeover::Happened(value) => return self.answered(name, value).await,
                    Takeover::Unclear => return Err(PhaseError::Unknown),
                    // The way to the call is as after a fresh commit of "sent": only who still owns the operation gets there.
                    Takeover::Repeat => self.write(&Act::Extend { lease: self.writes.policy.lease }).await?,
                }
            }
        }
        self.interrupt(Interruption::InDoubt);
        match call(Identity { key: key.clone(), attempt }).await {
            Ok(value) => self.answered(name, value).await,
            Err(error) => match promise.after_silence(Inquiry { key, up_to_attempt: attempt }).await {
                Found::Happened(value) => self.answered(name, value).await,
                Found::NeverWill => {
                    self.interrupt(Interruption::Resumable);
                    Err(PhaseError::Call(error))
                }
                Found::Unclear => Err(PhaseError::Call(error)),
            },
        }
    }

    /// Commits what a call came to.
    async fn answered<T: Checkpoint, E>(&mut self, name: &str, value: T) -> Result<T, PhaseError<E>> {
        let kept = serde_json::to_value(&value).map_err(PhaseError::Kept)?;
        let journal = self.journal.done(name, kept);
        match self.commit_for_certain(&journal).await {
            Ok(()) => {
                interrupt(&self.interrupted, None);
                Ok(value)
            }
            // The client was answered that it took too long. The owner may still complete, and knows the result; no other effect
            // begins, for its commit is refused like this one.
            Err(PhaseError::Refused(Refusal::InDoubt)) => {
                self.journal = journal;
                interrupt(&self.interrupted, None);
                Ok(value)
            }
            Err(error) => {
                self.interrupt(Interruption::InDoubt);
                Err(error)
            }
        }
    }

    /// Commits a recovery point that cannot be had again: tries on for as long as a call to the store may take. It may be as little
    /// as the attempt's own heartbeat, running at the same moment, that holds the record.
    async fn commit_for_certain<E>(&mut self, journal: &Journal) -> Result<(), PhaseError<E>> {
        let deadline = Instant::now() + self.shared.store.timeout();
        let mut pause = FIRST_PAUSE;
        loop {
            match self.commit(journal.clone()).await {
                Err(PhaseError::Store(error)) if Instant::now() + pause < deadline => {
                    tracing::warn!(operation_id = %self.claim.operation_id, %error, "the result of an outside call is not stored yet; retrying");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                ended => return ended,
            }
        }
    }

    /// Commits a recovery point of this journal.
    async fn commit<E>(&mut self, journal: Journal) -> Result<(), PhaseError<E>> {
        let act = advance(&journal, &self.writes).map_err(PhaseError::Kept)?;
        self.write(&act).await?;
        self.journal = journal;
        Ok(())
    }

    async fn write<E>(&self, act: &Act) -> Result<(), PhaseError<E>> {
        let mut written = write(&self.shared, &self.claim, &self.seen, act).await;
        if matches!(written, Err(StoreError::Lost(_))) {
            // What the store has is what it says when asked again.
            written = write(&self.shared, &self.claim, &self.seen, act).await;
        }
        match written {
            Ok(Written::Done | Written::Refused(Refusal::AlreadyAdvanced, _)) => Ok(()),
            Ok(Written::Refused(refusal, _)) => {
                self.interrupt(Interruption::InDoubt);
                Err(PhaseError::Refused(refusal))
            }
            Err(error) => {
                self.interrupt(Interruption::Resumable);
                Err(error.into())
            }
        }
    }

    /// Enters a local phase: for stores that share their transactions. What is to be done is done in one transaction together
    /// with [`Step::act`], and then one of [`committed`](Self::committed), [`rolled_back`](Self::rolled_back), [`lost`](Self::lost),
    /// [`refused`](Self::refused) and [`failed`](Self::failed) is called. Until then no other phase is entered: its recovery point would take
    /// the place of one that is being committed.
    ///
    /// # Errors
    /// The phases are out of step.
    pub fn local<T: Checkpoint>(&mut self, name: &str) -> Result<Entered<T>, OutOfStep> {
        match self.enter(name)? {
            Standing::Done(value) => self.decode(value).map(Entered::Done),
            Standing::New => {
                self.open = Some(name.to_owned());
                Ok(Entered::Now(Step {
                    claim: self.claim,
                    name: name.to_owned(),
                    journal: self.journal.clone(),
                    writes: self.writes.clone(),
                }))
            }
            Standing::Sent => Err(self.out_of_step(OutOfStep::AnotherIsSent {
                entered: format!("{name} (local)"),
                sent: format!("{name} (foreign)"),
            })),
        }
    }

    /// The transaction of a local phase has committed: this is the record as it is then.
    pub fn committed(&mut self, record: Option<&Record>) {
        self.open = None;
        if let Some(record) = record
            && let Ok(journal) = Journal::of(record, &self.writes)
        {
            see(&self.seen, record.clone());
            self.journal = journal;
        }
    }

    /// The answer to the commit of the local phase `name` was lost: finds out whether it is there.
    ///
    /// # Errors
    /// It cannot be known, or it is not there. The next attempt continues from what is stored.
    pub async fn lost<T: Checkpoint>(&mut self, name: &str, lost: StoreError) -> Result<T, StoreError> {
        let id = self.claim.operation_id;
        let found = self.shared.store.find(vec![id]).await;
        let record = found.ok().and_then(|answer| answer.items.into_iter().flatten().next());
        if let Some(record) = record.filter(|record| self.claim.holds(record))
            && let Ok(journal) = Journal::of(&record, &self.writes)
            && let Ok(Standing::Done(value)) = journal.standing(name)
            && let Ok(value) = serde_json::from_value(value)
        {
            see(&self.seen, record);
            self.journal = journal;
            self.open = None;
            return Ok(value);
        }
        // It may be there all the same: it stays open.
        self.interrupt(Interruption::Resumable);
        Err(lost)
    }

    /// The work of a local phase failed, and nothing of it is there.
    pub fn rolled_back(&mut self) {
        self.open = None;
    }

    /// The owner may not go on: nothing that this attempt says of the operation as a whole can be relied on.
    pub fn refused(&mut self) {
        self.open = None;
        self.interrupt(Interruption::InDoubt);
    }

    /// The store failed in a local phase, and nothing was written: the next attempt goes on after the last recovery point.
    pub fn failed(&mut self) {
        self.open = None;
        self.interrupt(Interruption::Resumable);
    }

    fn enter(&mut self, name: &str) -> Result<Standing, OutOfStep> {
        if name.is_empty() || name.contains(':') {
            return Err(self.out_of_step(OutOfStep::Name(name.to_owned())));
        }
        if let Some(open) = self.open.clone() {
            return Err(self.out_of_step(OutOfStep::AnotherIsOpen { entered: name.to_owned(), open }));
        }
        if !self.entered.insert(name.to_owned()) {
            return Err(self.out_of_step(OutOfStep::Twice(name.to_owned())));
        }
        match self.journal.standing(name) {
            Ok(standing) => Ok(standing),
            Err(sent) => {
                let (entered, sent) = (name.to_owned(), sent.to_owned());
                Err(self.out_of_step(OutOfStep::AnotherIsSent { entered, sent }))
            }
        }
    }

    fn decode<T: Checkpoint>(&self, value: serde_json::Value) -> Result<T, OutOfStep> {
        serde_json::from_value(value).map_err(|error| self.out_of_step(OutOfStep::Unreadable(error)))
    }

    /// A program that does not know its own phases again cannot say what happened.
    fn out_of_step(&self, why: OutOfStep) -> OutOfStep {
        self.interrupt(Interruption::InDoubt);
        why
    }

    fn interrupt(&self, why: Interruption) {
        interrupt(&self.interrupted, Some(why));
    }
}

fn advance(journal: &Journal, writes: &OutcomeWrites) -> Result<Act, serde_json::Error> {
    Ok(writes.advance(journal.point(), Some(journal.encode()?)))
}
