//! What clients were told by a service that is killed over and over, held against what each kill left in its file.
//!
//! Nothing here touches a process, a socket or a file: the same rules are given doctored logs below, and have to object.

use hyper::body::Bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Between our clock and the service's: it counts in milliseconds, and a heartbeat may be on its way.
const SLACK: Duration = Duration::from_millis(50);

pub const ACCOUNT: &str = "acct_anna";
const KEY: &str = "key-of-the-payment-";
const REFERENCE: &str = "invoice-";

pub fn key(number: u32) -> String {
    format!("{KEY}{number}")
}

/// What is asked for under this number. Always the same, so that every request of a number is a retry of the first.
pub fn command(number: u32) -> Value {
    let amount = format!("{}.{:02}", (number + 1) / 100, (number + 1) % 100);
    json!({ "amount": amount, "currency": "EUR", "merchant_reference": format!("{REFERENCE}{number}") })
}

pub fn number_of_key(key: &str) -> Option<u32> {
    key.strip_prefix(KEY)?.parse().ok()
}

pub fn number_of_reference(reference: &str) -> Option<u32> {
    reference.strip_prefix(REFERENCE)?.parse().ok()
}

/// An answer, as far as a client can see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    pub replayed: bool,
    /// All fields but those that tell one exchange from another: the date, and whether it is a replay.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn operation_id(&self) -> Option<&str> {
        self.header("semel-operation-id")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn meaning(&self) -> Meaning {
        let document = self.json();
        match (self.status, document["code"].as_str()) {
            (201, None) => Meaning::Paid,
            (409, Some("idempotency_key_in_progress")) => Meaning::InProgress,
            (409, Some("idempotency_outcome_unknown")) => Meaning::Unknown,
            (504, Some("idempotency_outcome_unknown")) => Meaning::UnknownToFirst,
            (503, Some("idempotency_store_unavailable")) => Meaning::NoStore,
            _ => Meaning::Undocumented,
        }
    }
}

/// The answers that a well-formed payment of its own key and reference may get.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Meaning {
    Paid,
    InProgress,
    Unknown,
    UnknownToFirst,
    NoStore,
    Undocumented,
}

/// One request, and what came of it.
#[derive(Clone, Debug)]
pub struct Told {
    pub number: u32,
    pub sent: Duration,
    /// When the answer was there, or the connection broke.
    pub heard: Duration,
    /// `None`: the connection broke, or there was none.
    pub answer: Option<Answer>,
}

/// Everything that one process said. All times are those of one clock, the clients'.
#[derive(Default, Debug)]
pub struct Life {
    pub told: Vec<Told>,
    /// From here on it was listening. Before it has seen one whole lease pass, it judges none to be over.
    pub listening: Duration,
    /// Up to here it was alive.
    pub killed: Duration,
    /// From here on it was dead.
    pub dead: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    InProgress,
    Completed,
    Unknown,
    Other(String),
}

impl From<String> for State {
    fn from(name: String) -> Self {
        match name.as_str() {
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "unknown" => Self::Unknown,
            _ => Self::Other(name),
        }
    }
}

/// What the file holds of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub operation_id: String,
    pub state: State,
}

impl Record {
    fn payment_id(&self) -> String {
        format!("pay_{}", self.operation_id.replace('-', ""))
    }
}

/// A row of the service's own table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payment {
    pub id: String,
    pub account: String,
    pub hundredths: i64,
    pub currency: String,
}

/// What a dead process left in its file: the records by the number in their key, the payments by the number in their reference.
#[derive(Clone, Default, Debug)]
pub struct Left {
    pub records: BTreeMap<u32, Vec<Record>>,
    pub payments: BTreeMap<u32, Vec<Payment>>,
}

impl Left {
    fn record(&self, number: u32) -> Option<&Record> {
        self.records.get(&number)?.first()
    }

    pub fn count(&self, state: &State) -> usize {
        self.records.values().flatten().filter(|record| record.state == *state).count()
    }

    /// The completion and the payment share a commit: wherever a kill fell, there are both or neither.
    fn contradictions(&self) -> Vec<String> {
        let numbers: BTreeSet<u32> = self.records.keys().chain(self.payments.keys()).copied().collect();
        numbers.into_iter().filter_map(|number| self.contradiction(number)).collect()
    }

    fn contradiction(&self, number: u32) -> Option<String> {
        let records = self.records.get(&number).map_or(&[][..], Vec::as_slice);
        let payments = self.payments.get(&number).map_or(&[][..], Vec::as_slice);
        match (records, payments) {
            ([Record { state: State::InProgress | State::Unknown, .. }], []) => None,
            ([record @ Record { state: State::Completed, .. }], [payment]) => {
                let right = payment.id == record.payment_id()
                    && payment.account == ACCOUNT
                    && payment.hundredths == i64::from(number) + 1
                    && payment.currency == "EUR";
                (!right).then(|| format!("{number}: {payment:?} is not what {record:?} is about"))
            }
            _ => Some(format!(
                "{number}: the file holds the records {records:?} and the payments {payments:?}"
            )),
        }
    }
}

/// What happened in numbers.
#[derive(Default, Debug)]
pub struct Tally {
    pub kills: u32,
    pub requests: u32,
    pub cut_off: u32,
    pub replayed: u32,
    pub in_progress: u32,
    pub unknown: u32,
    /// Done, but the words were lost with the process: a later one told it.
    pub told_by_another: u32,
    /// Doubt, or no store, though the process lived. Documented, and on an idle machine it does not happen.
    pub strained: u32,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, requests, cut_off, replayed, in_progress, unknown, told_by_another, strained } =
            self;
        write!(
            f,
            "{kills} kills, {requests} requests: {cut_off} cut off, {replayed} replayed, {in_progress} in progress, \
             {unknown} unknown, {strained} strained; {told_by_another} payments done by a process that could not say so"
        )
    }
}

/// What has been promised so far, and what the last kill left.
pub struct Ledger {
    lease: Duration,
    left: Left,
    /// The first acknowledgement of each payment: every later one is the same.
    acknowledged: BTreeMap<u32, Answer>,
    executed: BTreeSet<u32>,
    first_sent: BTreeMap<u32, Duration>,
    /// When the owner of what was in progress had died for certain.
    orphaned: BTreeMap<u32, Duration>,
    tally: Tally,
}

impl Ledger {
    pub fn new(lease: Duration) -> Self {
        Self {
            lease,
            left: Left::default(),
            acknowledged: BTreeMap::new(),
            executed: BTreeSet::new(),
            first_sent: BTreeMap::new(),
            orphaned: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    pub fn left(&self) -> &Left {
        &self.left
    }

    pub fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    /// Takes down what a process said and what it left, and tells which promises that breaks.
    pub fn settle(&mut self, life: &Life, left: Left) -> Vec<String> {
        self.tally.kills += 1;
        let mut broken = left.contradictions();
        for told in &life.told {
            let first = self.first_sent.entry(told.number).or_insert(told.sent);
            *first = told.sent.min(*first);
        }
        for told in &life.told {
            self.tally.requests += 1;
            match &told.answer {
                Some(answer) => {
                    let complaints = self.judge(told, answer, life.listening, &left);
                    broken.extend(
                        complaints.into_iter().map(|what| format!("{}: {what}: {answer:?}", told.number)),
                    );
                }
                None if told.heard < life.killed => {
                    broken.push(format!("{}: a living process broke the connection", told.number));
                }
                None => self.tally.cut_off += 1,
            }
        }
        broken.extend(out_of_order(life));
        broken.extend(self.changes(&left));
        for (number, records) in &left.records {
            if records.iter().any(|record| record.state == State::InProgress) {
                self.orphaned.entry(*number).or_insert(life.dead);
            }
        }
        self.left = left;
        broken
    }

    /// What is wrong with an answer, by what the process before had left and by what this one leaves.
    fn judge(
        &mut self,
        told: &Told,
        answer: &Answer,
        listening: Duration,
        after: &Left,
    ) -> Vec<&'static str> {
        let mut wrong = Vec::new();
        let mut expect = |holds: bool, what| {
            if !holds {
                wrong.push(what);
            }
        };
        let (number, meaning) = (told.number, answer.meaning());
        match meaning {
            Meaning::Undocumented => return vec!["no such answer is documented"],
            Meaning::NoStore => {
                self.tally.strained += 1;
                return wrong;
            }
            Meaning::InProgress => self.tally.in_progress += 1,
            Meaning::Unknown => self.tally.unknown += 1,
            Meaning::UnknownToFirst => self.tally.strained += 1,
            Meaning::Paid => self.tally.replayed += u32::from(answer.replayed),
        }
        let before = self.left.record(number).map(|record| &record.state);
        // Whoever owned it is dead, and took with it all that could still change the outcome.
        let allowed = match before {
            None => true,
            Some(State::Completed) => meaning == Meaning::Paid && answer.replayed,
            Some(State::InProgress) => matches!(meaning, Meaning::InProgress | Meaning::Unknown),
            Some(State::Unknown) => meaning == Meaning::Unknown,
            Some(State::Other(_)) => false,
        };
        expect(allowed, "not after what the process before had left");
        if before == Some(&State::InProgress) {
            let orphaned = self.orphaned.get(&number);
            let lease_over = orphaned.map(|dead| listening.max(*dead) + self.lease + SLACK);
            let in_time = meaning != Meaning::InProgress || lease_over.is_none_or(|over| told.sent <= over);
            expect(in_time, "in progress, though its owner's lease is over");
            // The lease began with the first request at the earliest.
            let earliest = self.first_sent.get(&number).map(|sent| *sent + self.lease);
            let due = meaning != Meaning::Unknown || earliest.is_none_or(|over| told.heard + SLACK >= over);
            expect(due, "unknown, though its owner's lease cannot be over");
        }
        if before.is_none() && meaning == Meaning::Unknown {
            self.tally.strained += 1;
        }

        let record = after.record(number);
        let known = record.is_some_and(|record| Some(record.operation_id.as_str()) == answer.operation_id());
        expect(known, "the file does not know this operation");
        if meaning != Meaning::Paid {
            expect(
                meaning == Meaning::UnknownToFirst || answer.headers.contains_key("retry-after"),
                "no Retry-After",
            );
            return wrong;
        }
        expect(
            record.is_some_and(|record| record.state == State::Completed),
            "acknowledged, and not in the file",
        );
        if let Some(record) = record {
            let mut payment = command(number);
            payment["id"] = record.payment_id().into();
            payment["status"] = "completed".into();
            expect(answer.json() == payment, "not the payment that was asked for");
            let location = format!("/payments/{}", record.payment_id());
            expect(answer.header("location") == Some(location.as_str()), "not the payment's location");
        }
        if !answer.replayed {
            expect(self.executed.insert(number), "executed twice");
        }
        if before == Some(&State::Completed) && !self.acknowledged.contains_key(&number) {
            self.tally.told_by_another += 1;
        }
        let first =
            self.acknowledged.entry(number).or_insert_with(|| Answer { replayed: false, ..answer.clone() });
        let same = Answer { replayed: false, ..answer.clone() } == *first;
        expect(same, "acknowledged before in other words");
        wrong
    }

    /// A dead process's file changes in one way only: what nobody works at any more becomes unknown.
    fn changes(&self, after: &Left) -> Vec<String> {
        let mut broken = Vec::new();
        for (number, before) in &self.left.records {
            let (before, now) = (before.first(), after.record(*number));
            let may_be = before.zip(now).is_some_and(|(before, now)| {
                let turned = before.state == State::InProgress && now.state == State::Unknown;
                now.operation_id == before.operation_id && (now.state == before.state || turned)
            });
            if !may_be {
                broken.push(format!("{number}: was {before:?}, and is now {now:?}"));
            }
        }
        for (number, before) in &self.left.payments {
            if after.payments.get(number) != Some(before) {
                let now = after.payments.get(number);
                broken.push(format!("{number}: the payment {before:?} has become {now:?}"));
            }
        }
        broken
    }
}

/// Requests that were sent after the payment was acknowledged, and got something else.
fn out_of_order(life: &Life) -> Vec<String> {
    let mut paid: BTreeMap<u32, Duration> = BTreeMap::new();
    for told in &life.told {
        if told.answer.as_ref().is_some_and(|answer| answer.meaning() == Meaning::Paid) {
            let first = paid.entry(told.number).or_insert(told.heard);
            *first = told.heard.min(*first);
        }
    }
    let late = life.told.iter().filter(|told| paid.get(&told.number).is_some_and(|heard| *heard < told.sent));
    late.filter_map(|told| {
        let answer = told.answer.as_ref()?;
        let replay = answer.replayed && answer.meaning() == Meaning::Paid;
        let excused = answer.meaning() == Meaning::NoStore;
        (!replay && !excused).then(|| format!("{}: acknowledged, and then answered {answer:?}", told.number))
    })
    .collect()
}

#[cfg(test)]
mod tests;
