//! A client of a store that does what the engine does, step by step: ask, decide with `transition`, write on condition, and
//! decide again on what came back. The rules use it.

use semel::clock::{ClockReport, ClockRequest};
use semel::transition::{
    self, About, Act, Arrival, Arrived, Change, Claim, Match, Polling, Refusal, Reservation, Settlement,
};
use semel::{
    Actor, Answer, Created, Cursor, Draft, DueKind, DueQuery, Expected, Filter, Fingerprint, HistoryEntry,
    HistoryLine, Now, OperationId, Owner, Policy, Purged, RecipeId, Record, RecordKey, State, Store,
    StoreError, Swap, Swapped, Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

/// A client of a store.
#[derive(Clone)]
pub struct Client {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The rules of the operation that it asks for.
    pub policy: Policy,
}

/// A request with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its key, in its scope.
    pub key: RecordKey,
    /// What it asks for.
    pub fingerprint: Fingerprint,
}

/// The right to act as the owner of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The record's key.
    pub key: RecordKey,
    /// What the owner names itself by.
    pub claim: Claim,
}

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Came {
    /// It executes, as the owner.
    Executes(Ticket),
    /// It does not execute: the decision, and the record behind it.
    Told(Arrived, Box<Record>),
}

impl Came {
    /// The ticket of a request that has to execute.
    ///
    /// # Panics
    /// If it does not.
    pub fn executes(self) -> Ticket {
        match self {
            Self::Executes(ticket) => ticket,
            Self::Told(arrived, record) => panic!("told {arrived:?} instead of executing: {record:?}"),
        }
    }

    /// The answer to a request that must not execute.
    ///
    /// # Panics
    /// If it executes.
    #[must_use]
    pub fn told(self) -> (Arrived, Record) {
        match self {
            Self::Told(arrived, record) => (arrived, *record),
            Self::Executes(ticket) => panic!("executes, and must not: {ticket:?}"),
        }
    }
}

/// What a conditional write came to.
enum Written {
    Done,
    Otherwise(Now, Option<Box<Record>>),
    /// Nobody knows.
    Lost,
}

impl Client {
    /// A client with the default policy.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, policy: Policy::default() }
    }

    /// The same client under other rules.
    #[must_use]
    pub fn with_policy(&self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut client = self.clone();
        change(&mut client.policy);
        client
    }

    /// A request comes, with an owner token of its own.
    pub async fn arrive(&self, request: &Request) -> Came {
        let owner = Owner::random();
        let draft = transition::reserve(
            Reservation {
                key: request.key.clone(),
                operation_id: OperationId::random(),
                fingerprint: request.fingerprint,
                recipe: RecipeId(*b"the only recipe."),
                owner,
            },
            &self.policy,
        );
        let executes = |claim| Came::Executes(Ticket { key: request.key.clone(), claim });
        let mut found = self.reserve(&draft).await;
        loop {
            let Some((now, record)) = found else {
                return executes(Claim::of(&draft));
            };
            // A write of ours whose answer was lost.
            if record.owner == owner {
                return executes(Claim::of(&record));
            }
            let matches = match record.fingerprint == request.fingerprint {
                _ if record.key.operation != request.key.operation => Match::OtherOperation,
                true => Match::Same,
                false => Match::Different,
            };
            let arrival = Arrival { matches, owner, policy: &self.policy };
            let (change, claim) = match transition::arrive(&record, &arrival, now) {
                Arrived::Doubt(change) => (change, None),
                Arrived::Take(change) => {
                    let attempt = record.attempt + 1;
                    (change, Some(Claim { operation_id: record.operation_id, attempt, owner }))
                }
                Arrived::Forgotten => (Change::Remove, None),
                told => return Came::Told(told, Box::new(record)),
            };
            let otherwise = match (self.write(&record, change).await, claim) {
                (Written::Done, Some(claim)) => return executes(claim),
                (Written::Done | Written::Lost, _) => self.seen(&request.key).await,
                (Written::Otherwise(now, record), _) => (now, record.map(|record| *record)),
            };
            found = match otherwise {
                (now, Some(record)) => Some((now, record)),
                (_, None) => self.reserve(&draft).await,
            };
        }
    }

    /// `None`: it is ours. Else what is there.
    async fn reserve(&self, draft: &Draft) -> Option<(Now, Record)> {
        loop {
            match self.store.create(vec![draft.clone()]).await {
                Ok(answer) => match at_once(answer) {
                    (_, Created::Inserted) => return None,
                    (now, Created::Exists(record)) => return Some((now, *record)),
                    (_, Created::Locked) => pause().await,
                    (_, other) => panic!("the store cannot create: {other:?}"),
                },
                // Read back; what is not there is created again, under the same owner.
                Err(StoreError::Lost(_)) => {
                    if let (now, Some(record)) = self.seen(&draft.key).await {
                        return Some((now, record));
                    }
                }
                Err(error) => panic!("the store does not answer: {error}"),
            }
        }
    }

    async fn write(&self, record: &Record, change: Change) -> Written {
        loop {
            let expected = record.expected();
            let answer = match change.clone() {
                Change::Put { next, history } => {
                    self.store.swap(vec![Swap { expected, next, history }]).await
                }
                Change::Remove => self.store.remove(vec![expected]).await,
            };
            match answer {
                Ok(answer) => match at_once(answer) {
                    (_, Swapped::Done) => return Written::Done,
                    (now, Swapped::Changed(record)) => return Written::Otherwise(now, Some(record)),
                    (now, Swapped::Missing) => return Written::Otherwise(now, None),
                    (_, Swapped::Locked) => pause().await,
                    (_, other) => panic!("the store cannot write: {other:?}"),
                },
                Err(StoreError::Lost(_)) => return Written::Lost,
                Err(error) => panic!("the store does not answer: {error}"),
            }
        }
    }

    /// Decides, writes, and decides again for as long as the write loses. After a lost answer `ours` looks at what is there and
    /// says whether the write was done.
    async fn change(
        &self,
        key: &RecordKey,
        decide: impl Fn(&Record, Now) -> Result<Change, Refusal>,
        ours: impl Fn(Option<&Record>) -> bool,
    ) -> Result<(), Refusal> {
        let mut lost = false;
        let (mut now, mut found) = self.seen(key).await;
        loop {
            if lost && ours(found.as_ref()) {
                return Ok(());
            }
            let Some(record) = found else {
                return Err(Refusal::Fenced);
            };
            (now, found) = match self.write(&record, decide(&record, now)?).await {
                Written::Done => return Ok(()),
                Written::Otherwise(now, found) => (now, found.map(|record| *record)),
                Written::Lost => {
                    lost = true;
                    self.seen(key).await
                }
            };
        }
    }

    /// The owner acts.
    ///
    /// # Errors
    /// Why that changes nothing.
    pub async fn act(&self, ticket: &Ticket, act: Act) -> Result<(), Refusal> {
        let ours = |found: Option<&Record>| match (found, &act) {
            (None, act) => matches!(act, Act::Release { .. }),
            (Some(record), _) if !ticket.claim.holds(record) => false,
            (Some(record), Act::Complete { .. }) => record.state == State::Completed,
            (Some(record), Act::Fail { .. }) => record.state == State::FailedReplayable,
            (Some(record), Act::Retryable { .. } | Act::Release { .. }) => {
                record.state == State::FailedRetryable
            }
            (Some(record), Act::Doubt { .. }) => record.state == State::Unknown,
            (Some(record), Act::Advance { point, .. }) => record.recovery_point.as_ref() == Some(point),
            // Done twice, it does the same.
            (Some(_), Act::Extend { .. }) => false,
        };
        self.change(&ticket.key, |record, _| transition::act(record, &ticket.claim, &act), ours).await
    }

    /// The lease watch looks at the record.
    ///
    /// # Errors
    /// Why that changes nothing.
    pub async fn watch(&self, key: &RecordKey) -> Result<(), Refusal> {
        let ours = |found: Option<&Record>| found.is_some_and(|record| record.state == State::Unknown);
        self.change(key, |record, now| transition::watch(record, &self.policy, now), ours).await
    }

    /// The reconciler takes it upon itself to ask.
    ///
    /// # Errors
    /// Why it is not to ask.
    pub async fn poll(&self, key: &RecordKey, polling: &Polling) -> Result<(), Refusal> {
        // A poll whose answer was lost counts as asked: decided again, it is not due.
        self.change(key, |record, now| transition::poll(record, polling, now.earliest), |_| false).await
    }

    /// Evidence comes about the attempt of this ticket.
    ///
    /// # Errors
    /// Why that changes nothing.
    pub async fn settle(&self, about: &Ticket, settlement: &Settlement) -> Result<(), Refusal> {
        let Claim { operation_id, attempt, .. } = about.claim;
        let looked_into = About { operation_id, attempt: Some(attempt) };
        self.settle_about(&about.key, &looked_into, settlement).await
    }

    /// Evidence comes that names this much of what it is about.
    ///
    /// # Errors
    /// Why that changes nothing.
    pub async fn settle_about(
        &self,
        key: &RecordKey,
        about: &About,
        settlement: &Settlement,
    ) -> Result<(), Refusal> {
        let ours = |found: Option<&Record>| found.is_some_and(|record| record.owner == settlement.settler);
        let decide = |record: &Record, now: Now| transition::settle(record, about, settlement, now.earliest);
        self.change(key, decide, ours).await
    }

    /// Evidence that changes nothing is kept in the history.
    ///
    /// # Errors
    /// There is no such record.
    pub async fn remark(&self, key: &RecordKey, actor: &Actor, note: &str) -> Result<(), Refusal> {
        let decide =
            |record: &Record, _: Now| Ok(transition::remark(record, actor.clone(), Some(note.into())));
        self.change(key, decide, |_| false).await
    }

    /// The reaper looks at the record.
    ///
    /// # Errors
    /// There is nothing to drop.
    pub async fn reap(&self, key: &RecordKey) -> Result<(), Refusal> {
        let decide = |record: &Record, now: Now| transition::reap(record, now.earliest);
        self.change(key, decide, |found| found.is_none()).await
    }
}

/// One call, one item. All of these panic where the store does not answer.
impl Client {
    /// Creates one record.
    pub async fn create(&self, draft: Draft) -> (Timestamp, Created) {
        one(self.store.create(vec![draft]).await.expect("the store creates"))
    }

    /// Creates one record that is not there yet, and returns it.
    pub async fn insert(&self, draft: Draft) -> Record {
        let (now, created) =
            at_once(self.store.create(vec![draft.clone()]).await.expect("the store creates"));
        assert_eq!(created, Created::Inserted, "there was no record of that key");
        draft.at(now)
    }

    /// Swaps one record.
    pub async fn swap(
        &self,
        expected: Expected,
        next: Draft,
        history: Option<HistoryEntry>,
    ) -> (Timestamp, Swapped) {
        let swap = Swap { expected, next: Box::new(next), history };
        one(self.store.swap(vec![swap]).await.expect("the store swaps"))
    }

    /// Removes one record.
    pub async fn remove(&self, expected: Expected) -> (Timestamp, Swapped) {
        one(self.store.remove(vec![expected]).await.expect("the store removes"))
    }

    /// The record of a key, and the store's now.
    pub async fn look(&self, key: &RecordKey) -> (Timestamp, Option<Record>) {
        one(self.store.read(vec![key.clone()]).await.expect("the store reads"))
    }

    async fn seen(&self, key: &RecordKey) -> (Now, Option<Record>) {
        at_once(self.store.read(vec![key.clone()]).await.expect("the store reads"))
    }

    /// The record of a key.
    pub async fn read(&self, key: &RecordKey) -> Option<Record> {
        self.look(key).await.1
    }

    /// The record of a key that has to be there.
    pub async fn record(&self, key: &RecordKey) -> Record {
        self.read(key).await.expect("the record is there")
    }

    /// The record of an operation id.
    pub async fn find(&self, id: OperationId) -> Option<Record> {
        one(self.store.find(vec![id]).await.expect("the store finds")).1
    }

    /// The store's now.
    pub async fn now(&self) -> Timestamp {
        self.store.read(vec![]).await.expect("the store tells the time").now
    }

    /// What time it may be by the store.
    pub async fn moment(&self) -> Now {
        self.store.read(vec![]).await.expect("the store tells the time").moment()
    }

    /// What the store says of its clock.
    pub async fn clock(&self, request: ClockRequest) -> ClockReport {
        self.store.clock(request).await.expect("the store tells of its clock")
    }

    /// The history of an operation.
    pub async fn history(&self, id: OperationId) -> Vec<HistoryLine> {
        self.store.history(id).await.expect("the store tells the history")
    }

    /// All that a filter lets through, page by page.
    pub async fn list(&self, filter: &Filter, per_page: usize) -> Vec<Record> {
        let mut records = Vec::new();
        let mut from: Option<Cursor> = None;
        loop {
            let page = self.store.list(filter.clone(), from, per_page).await.expect("the store lists");
            assert!(page.records.len() <= per_page, "a page is bounded");
            assert!(page.next.is_none() || !page.records.is_empty(), "a page that leads on gets somewhere");
            records.extend(page.records);
            from = page.next;
            if from.is_none() {
                return records;
            }
        }
    }

    /// Drops answers that are over; when each of them ended.
    pub async fn drop_answers(&self, at_most: usize) -> Vec<Timestamp> {
        self.store.drop_answers(at_most).await.expect("the store drops answers").items
    }

    /// Purges at most `at_most` records.
    pub async fn purge(&self, at_most: usize) -> Vec<Purged> {
        self.store.purge(at_most).await.expect("the store purges").items
    }

    /// What is due, and the store's now.
    pub async fn due(&self, kind: DueKind) -> Answer<Record> {
        self.store
            .due(DueQuery { kind, after: None, limit: 10_000 })
            .await
            .expect("the store tells what is due")
    }
}

fn one<T>(answer: Answer<T>) -> (Timestamp, T) {
    let (now, item) = at_once(answer);
    (now.earliest, item)
}

fn at_once<T>(mut answer: Answer<T>) -> (Now, T) {
    assert_eq!(answer.items.len(), 1, "one item asked for, one answered");
    (answer.moment(), answer.items.remove(0))
}

/// An open transaction holds it: ask again in a moment.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
