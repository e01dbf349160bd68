//! Asks about unknown outcomes, and settles them by what it hears.

use crate::count;
use crate::due::{LOOK_AGAIN, Walk};
use crate::evidence::{Submitted, keep_about, submit};
use crate::reconcile::{Finding, Question};
use crate::rules::{Asking, OperationRules, Rules};
use crate::write::{Judged, write};
use semel::background::exponential;
use semel::transition::{About, Evidence, Polling, Settlement, Windows, ask_as_well, poll};
use semel::{Actor, DueKind, Engine, Filter, Policy, Record, Settling, State, StoreError, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often evidence is submitted to a store that does not take it; after that, the next poll has to find it again.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How many records are listed at a time.
const PAGE: usize = 256;

/// The longest code that goes into a history.
const LONGEST_CODE: usize = 200;

/// Polls about unknown outcomes. Each poll is claimed in the store first: of any number of
/// reconcilers, one polls each time.
pub struct Reconciler {
    engine: Engine,
    rules: Rules,
    concurrent: usize,
    walk: Walk,
    asking: JoinSet<()>,
    /// When doubt without polls was last looked through.
    caught_up: Option<Instant>,
}

impl Reconciler {
    /// A reconciler with at most `concurrent` questions out at a time.
    #[must_use]
    pub fn new(engine: Engine, rules: Rules, concurrent: usize) -> Self {
        let walk = Walk::new(DueKind::Reconcile);
        Self { engine, rules, concurrent: concurrent.max(1), walk, asking: JoinSet::new(), caught_up: None }
    }

    /// Claims and asks what is due by now, as far as there is room. It does not wait for the answers. Whether something is left
    /// that there was no room for.
    ///
    /// Questions are out in tasks of their own, and called off if the reconciler is dropped. One that is called off counts as
    /// asked: it is one question fewer, never one too many.
    ///
    /// # Errors
    /// The store did not answer. What is out stays out; the rest is found the next time.
    pub async fn turn(&mut self) -> Result<bool, StoreError> {
        if self.caught_up.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            let begun = Instant::now();
            self.caught_up = catch_up(&self.engine, &self.rules).await?.then_some(begun);
        }
        let turn = self.ask_what_is_due().await;
        if !matches!(turn, Ok((_, 0))) {
            self.walk.look_at_everything();
        }
        turn.map(|(more, _)| more)
    }

    /// Waits until a poll is answered and its evidence is written. Returns at once if no poll is in flight.
    pub async fn one_answered(&mut self) {
        // A question that panicked has said so already, and counts as asked.
        let _ = self.asking.join_next().await;
    }

    /// Waits until no question is out.
    pub async fn all_answered(&mut self) {
        while !self.asking.is_empty() {
            self.one_answered().await;
        }
    }

    /// How many questions are out.
    #[must_use]
    pub fn questions_out(&self) -> usize {
        self.asking.len()
    }

    /// Whether there is more, and how many could not be claimed because an open transaction holds them.
    async fn ask_what_is_due(&mut self) -> Result<(bool, usize), StoreError> {
        self.walk.begin();
        let mut locked = 0;
        loop {
            while self.asking.try_join_next().is_some() {}
            let room = self.concurrent.saturating_sub(self.asking.len());
            if room == 0 {
                return Ok((true, locked));
            }
            let page = self.walk.next(&self.engine, room).await?;
            let full = page.items.len() == room;
            let mut batch = Vec::new();
            for record in page.items {
                let polling = (self.rules)(&record.key.operation)
                    .and_then(|rules| polling(&self.engine, &record, &rules));
                match polling.map(|polling| poll(&record, &polling, page.now)) {
                    Some(Ok(change)) => batch.push(Judged { record, change }),
                    Some(Err(_)) | None => self.walk.leave(&record),
                }
            }
            let written = write(&self.engine, batch).await?;
            locked += written.locked;
            for record in written.put {
                self.claimed(record, page.now);
            }
            if !full {
                return Ok((false, locked));
            }
        }
    }

    /// The question is ours to ask, or was one too many.
    fn claimed(&mut self, record: Record, now: Timestamp) {
        if record.dead_letter {
            tracing::warn!(operation_id = %record.operation_id, "dead letter: polls have not settled it");
            count::written(&self.engine, &record);
            return;
        }
        let rules = (self.rules)(&record.key.operation);
        let Some(OperationRules { policy, asking: Some(asking) }) = rules else { return };
        let inquiry = Inquiry { engine: self.engine.clone(), policy, asking, record, now };
        self.asking.spawn(inquiry.run());
    }
}

/// Doubt that a webhook alone was to end is not due for anything. Where the rules have another way by now, it becomes so; whether all of it did.
///
/// Rules may change while a reconciler lives, and operations that are under way then end in doubt by the old ones. So it is done again
/// and again; few records are in doubt.
async fn catch_up(engine: &Engine, rules: &Rules) -> Result<bool, StoreError> {
    let in_doubt = Filter { state: Some(State::Unknown), dead_letter: Some(false), ..Filter::default() };
    let is_left = |record: &Record| {
        let rules = rules(&record.key.operation);
        record.times.reconcile.is_none()
            && rules.is_some_and(|rules| polling(engine, record, &rules).is_some())
    };
    let (mut from, mut locked) = (None, 0);
    loop {
        let page = engine.store().list(in_doubt.clone(), from, PAGE).await?;
        let left = page.records.iter().filter(|record| is_left(record));
        let left: Vec<_> = left.map(|record| record.operation_id).collect();
        if !left.is_empty() {
            // Listings leave something out, and what is written is whole.
            let found = engine.store().find(left).await?;
            let asked = found.items.into_iter().flatten().filter_map(|record| {
                let change = ask_as_well(&record).ok()?;
                Some(Judged { record, change })
            });
            locked += write(engine, asked.collect()).await?.locked;
        }
        from = page.next;
        if from.is_none() {
            return Ok(locked == 0);
        }
    }
}

/// How often, and when next, a record is asked about; `None`: not by us.
fn polling(engine: &Engine, record: &Record, rules: &OperationRules) -> Option<Polling> {
    let Some(asking) = &rules.asking else {
        // Somebody else may ask, or a webhook may tell. If the rules know of neither any more, a person has to.
        return (rules.policy.settling == Settling::Operator)
            .then_some(Polling { attempts: 0, next: Duration::ZERO });
    };
    let last = record.reconcile_attempts.saturating_add(1) >= asking.attempts;
    // After the last one there is nothing to wait for but its answer.
    let wait = if last {
        asking.every
    } else {
        exponential(asking.every, record.reconcile_attempts, engine.environment())
    };
    // Nobody else asks while a question is out.
    Some(Polling { attempts: asking.attempts, next: wait.max(asking.deadline) })
}

/// One question, and what comes of it.
struct Inquiry {
    engine: Engine,
    policy: Arc<Policy>,
    asking: Asking,
    /// As it was claimed.
    record: Record,
    now: Timestamp,
}

impl Inquiry {
    async fn run(self) {
        let operation_id = self.record.operation_id;
        let number = self.record.reconcile_attempts;
        let evidence = match self.ask().await {
            Finding::Completed { response, resource } => {
                Evidence::Completed { response: response.map(|given| self.kept(given)), resource }
            }
            Finding::Failed { response, resource } => {
                Evidence::Failed { response: response.map(|given| self.kept(given)), resource }
            }
            Finding::Absent => Evidence::Absent,
            Finding::Unclear(code) => {
                tracing::info!(%operation_id, number, code, "polled: the outcome is still unknown");
                return self.note_the_last(&code).await;
            }
        };
        let settlement = Settlement {
            settler: self.engine.environment().owner(),
            actor: Actor::Reconciler,
            evidence,
            note: Some(format!("poll {number} about attempt {}", self.record.attempt)),
            windows: Windows::from(&*self.policy),
        };
        self.bring(&settlement).await;
    }

    async fn ask(&self) -> Finding {
        let checkpoint = match self.engine.checkpoint_of(&self.record) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                tracing::error!(%error, "not polled: its checkpoint cannot be read");
                return Finding::Unclear("checkpoint_damaged".into());
            }
        };
        // With the wrong key the service would truthfully report that it knows no such operation, and that would pass for proof of absence.
        let key = match self.engine.client_key(&self.record).await {
            Ok(key) => key,
            Err(error) => {
                tracing::error!(%error, "not polled: the client's key cannot be read");
                return Finding::Unclear("key_damaged".into());
            }
        };
        let asked = self.asking.whom.ask(Question::about(&self.record, key, checkpoint));
        let finding = tokio::time::timeout(self.asking.deadline, asked).await;
        finding.unwrap_or_else(|_| Finding::Unclear("deadline".into()))
    }

    fn kept(&self, response: semel::StoredResponse) -> semel::StoredResponse {
        self.policy.store_response.kept(response)
    }

    async fn bring(&self, settlement: &Settlement) {
        let about = About::of(&self.record);
        let operation_id = about.operation_id;
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            match submit(&self.engine, &about, settlement, self.now).await {
                Ok(Submitted::Settled(record)) => {
                    return tracing::info!(%operation_id, state = record.state.as_str(), "settled by a poll");
                }
                Ok(Submitted::TooEarly(_)) => {
                    return tracing::info!(%operation_id, "a poll found nothing, but the lease has not expired");
                }
                // Somebody was quicker; what contradicts is logged and kept.
                Ok(Submitted::Known | Submitted::Kept(..) | Submitted::Missing) => return,
                Err(error) => {
                    tracing::warn!(%operation_id, %error, "evidence not stored, retrying");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
        }
        tracing::warn!(%operation_id, "evidence not stored, polling again later");
    }

    /// An operator who finds the dead letter needs to know the last answer.
    async fn note_the_last(&self, code: &str) {
        if self.record.reconcile_attempts < self.asking.attempts {
            return;
        }
        let code: String = code.chars().filter(|char| !char.is_control()).take(LONGEST_CODE).collect();
        let note = format!("the last poll failed: {code}");
        if let Err(error) =
            keep_about(&self.engine, self.record.operation_id, &Actor::Reconciler, &note).await
        {
            tracing::warn!(operation_id = %self.record.operation_id, %error, "the last poll's answer is missing from the \
                                                                              history");
        }
    }
}
