//! An operation with effects outside: a row of its own, a charge at the bank, a letter by post. Where it stops is up to the test.

use crate::support::{Shop, answer};
use semel::transition::{Act, Change, Claim, Refusal, act};
use semel::{
    AtMostOnce, Deduplicated, Entered, Finish, Found, Identity, Inquiry, Interruption, MemoryStore, Outcome,
    PhaseError, Phases, Policy, Record, Stale, State, Store as _, Swap, Swapped, Ticket, queryable,
};
use semel_testing::store::Gate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What is promised of the bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Deduplicated,
    Queryable,
    AtMostOnce,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Deduplicated, Self::Queryable, Self::AtMostOnce];
}

/// The other side did not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Silence;

/// What a call comes to: of a shape that would not survive a careless way of keeping it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Receipt {
    id: String,
    amount: u64,
    balance: i64,
    lines: Vec<(Option<u8>, String)>,
}

/// Somebody outside, who remembers what was asked of it.
#[derive(Clone)]
pub(super) struct Provider {
    name: &'static str,
    deduplicates: bool,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Default)]
struct Ledger {
    /// The identity and the attempt of each call, as it came in.
    calls: Vec<(String, u32)>,
    /// What was carried out, by identity, each as often as it was.
    effects: BTreeMap<String, Vec<Receipt>>,
    /// The attempts up to which each question was.
    asked: Vec<u32>,
    /// Attempts of an identity up to this one are refused.
    refused_up_to: BTreeMap<String, u32>,
    silent: Option<bool>,
    mute: bool,
    stops: BTreeMap<Stop, Arc<Gate>>,
}

/// Where somebody stops in the course of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stop {
    Before,
    After,
}

impl Provider {
    fn new(name: &'static str, deduplicates: bool) -> Self {
        Self { name, deduplicates, ledger: Arc::default() }
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    /// Which attempts have called, in the order in which their calls came in.
    pub(super) fn called_by(&self) -> Vec<u32> {
        self.ledger().calls.iter().map(|(_, attempt)| *attempt).collect()
    }

    /// The one identity that all calls had.
    pub(super) fn identity(&self) -> Option<String> {
        let ledger = self.ledger();
        let first = ledger.calls.first()?.0.clone();
        assert!(ledger.calls.iter().all(|(key, _)| *key == first), "one effect, one identity");
        Some(first)
    }

    pub(super) fn effects(&self) -> u32 {
        self.ledger().effects.values().map(|receipts| u32::try_from(receipts.len()).unwrap()).sum()
    }

    pub(super) fn asked(&self) -> Vec<u32> {
        self.ledger().asked.clone()
    }

    pub(super) fn only_receipt(&self) -> Receipt {
        let ledger = self.ledger();
        let mut receipts = ledger.effects.values().flatten();
        let receipt = receipts.next().unwrap().clone();
        assert!(receipts.next().is_none(), "it was carried out once");
        receipt
    }

    /// The next call gets no answer, whether it is carried out or not.
    pub(super) fn falls_silent(&self, carried_out: bool) {
        self.ledger().silent = Some(carried_out);
    }

    pub(super) fn cannot_be_asked(&self) {
        self.ledger().mute = true;
    }

    /// The next call waits at the gate before or after it is carried out.
    pub(super) fn stops(&self, stop: Stop, gate: &Arc<Gate>) {
        self.ledger().stops.insert(stop, Arc::clone(gate));
    }

    async fn stop(&self, stop: Stop) {
        let gate = self.ledger().stops.remove(&stop);
        if let Some(gate) = gate {
            gate.pass().await;
        }
    }

    pub(super) async fn call(&self, identity: Identity) -> Result<Receipt, Silence> {
        let attempt = identity.attempt();
        let key = identity.into_key();
        self.ledger().calls.push((key.clone(), attempt));
        self.stop(Stop::Before).await;
        let receipt = self.carry_out(&key, attempt)?;
        self.stop(Stop::After).await;
        Ok(receipt)
    }

    fn carry_out(&self, key: &str, attempt: u32) -> Result<Receipt, Silence> {
        let mut ledger = self.ledger();
        let silent = ledger.silent.take();
        if silent == Some(false) || ledger.refused_up_to.get(key).is_some_and(|refused| attempt <= *refused) {
            return Err(Silence);
        }
        let number = ledger.effects.values().map(Vec::len).sum::<usize>() + 1;
        let receipts = ledger.effects.entry(key.to_owned()).or_default();
        if !self.deduplicates || receipts.is_empty() {
            receipts.push(Receipt {
                id: format!("{}_{number}", self.name),
                amount: u64::MAX,
                balance: i64::MIN,
                lines: vec![(None, "\u{0}\"é\u{1f4b6}".into()), (Some(7), String::new())],
            });
        }
        let receipt = receipts[0].clone();
        if silent == Some(true) { Err(Silence) } else { Ok(receipt) }
    }

    /// Says what became of a call, and lets no late one through where it says that there will be none.
    pub(super) fn ask(&self, inquiry: &Inquiry) -> Result<Found<Receipt>, Silence> {
        let mut ledger = self.ledger();
        ledger.asked.push(inquiry.up_to_attempt);
        if ledger.mute {
            return Err(Silence);
        }
        if let Some(receipt) = ledger.effects.get(&inquiry.key).and_then(|receipts| receipts.first()) {
            return Ok(Found::Happened(receipt.clone()));
        }
        ledger.refused_up_to.insert(inquiry.key.clone(), inquiry.up_to_attempt);
        Ok(Found::NeverWill)
    }
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) attempt: u32,
    pub(super) receipt: Option<Receipt>,
    pub(super) error: Option<PhaseError<Silence>>,
    pub(super) interruption: Option<Interruption>,
    /// The state of the record after it.
    pub(super) state: State,
    pub(super) fenced: bool,
}

/// Where an attempt stops in its own code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    BeforeTheRow,
    AfterTheRow,
    BetweenTheCalls,
    BeforeTheEnd,
}

/// One process that serves the operation.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) shop: Shop,
    pub(super) bank: Provider,
    pub(super) post: Provider,
    kind: Kind,
    domain: Arc<Mutex<Domain>>,
    stops: Arc<Mutex<BTreeMap<Place, Arc<Gate>>>>,
}

#[derive(Default)]
struct Domain {
    runs: u32,
    rows: u32,
}

impl Desk {
    pub(super) fn open(kind: Kind) -> Self {
        Self {
            shop: Shop::with(Policy { stale: Stale::Resume, ..Policy::default() }),
            bank: Provider::new("ch", kind == Kind::Deduplicated),
            post: Provider::new("letter", true),
            kind,
            domain: Arc::default(),
            stops: Arc::default(),
        }
    }

    /// The same desk in another process.
    pub(super) fn elsewhere(&self) -> Self {
        Self { shop: self.shop.elsewhere(), stops: Arc::default(), ..self.clone() }
    }

    /// How often the local phase was worked on, and how many rows it has left.
    pub(super) fn runs(&self) -> u32 {
        self.domain.lock().unwrap().runs
    }

    pub(super) fn rows(&self) -> u32 {
        self.domain.lock().unwrap().rows
    }

    pub(super) fn stops(&self, place: Place, gate: &Arc<Gate>) {
        self.stops.lock().unwrap().insert(place, Arc::clone(gate));
    }

    async fn at(&self, place: Place) {
        let gate = self.stops.lock().unwrap().remove(&place);
        if let Some(gate) = gate {
            gate.pass().await;
        }
    }

    /// A request that has to execute, and does.
    pub(super) async fn serve(&self) -> End {
        let ticket = self.shop.execute().await;
        self.attempt(ticket).await
    }

    /// Goes through the phases, and says how it ended as whoever has nothing better to go by does.
    pub(super) async fn attempt(&self, ticket: Ticket) -> End {
        let worked = self.work(&ticket).await;
        let (attempt, interruption) = (ticket.attempt(), ticket.interruption());
        self.at(Place::BeforeTheEnd).await;
        let outcome = match (&worked, interruption) {
            (Ok(_), None) => Outcome::Completed { response: Some(answer("charged")), resource: None },
            (_, Some(Interruption::Resumable)) => Outcome::Retryable { error: "resumable".into() },
            _ => Outcome::Unknown { error: "in_doubt".into() },
        };
        let fenced = matches!(ticket.finish(outcome).await, Ok(Finish::Fenced(_)));
        let state = self.shop.state().await.unwrap();
        let (receipt, error) = match worked {
            Ok(receipt) => (Some(receipt), None),
            Err(error) => (None, Some(error)),
        };
        End { attempt, receipt, error, interruption, state, fenced }
    }

    async fn work(&self, ticket: &Ticket) -> Result<Receipt, PhaseError<Silence>> {
        let mut phases = ticket.phases()?;
        let row: String = self.created(&mut phases).await?;
        assert_eq!(row, "pay_1");
        let receipt = self.charged(&mut phases).await?;
        self.at(Place::BetweenTheCalls).await;
        let posted =
            phases.foreign("mailed", Deduplicated, async |identity| self.post.call(identity).await).await?;
        assert_eq!(posted, self.post.only_receipt());
        Ok(receipt)
    }

    pub(super) async fn charged(&self, phases: &mut Phases) -> Result<Receipt, PhaseError<Silence>> {
        let call = async |identity: Identity| self.bank.call(identity).await;
        match self.kind {
            Kind::Deduplicated => phases.foreign("charged", Deduplicated, call).await,
            Kind::AtMostOnce => phases.foreign("charged", AtMostOnce, call).await,
            Kind::Queryable => {
                let ask = queryable(async |inquiry| self.bank.ask(&inquiry));
                phases.foreign("charged", ask, call).await
            }
        }
    }

    /// A local phase, as a store does it that shares its transactions: the row and the recovery point are there together.
    pub(super) async fn created(&self, phases: &mut Phases) -> Result<String, PhaseError<Silence>> {
        let step = match phases.local("created")? {
            Entered::Done(row) => return Ok(row),
            Entered::Now(step) => step,
        };
        self.at(Place::BeforeTheRow).await;
        self.domain.lock().unwrap().runs += 1;
        let row = "pay_1".to_owned();
        let act = step.act(&row).map_err(PhaseError::Kept)?;
        match commit(&self.shop.memory, &step.claim(), &act).await {
            Ok(record) => {
                self.domain.lock().unwrap().rows += 1;
                self.at(Place::AfterTheRow).await;
                phases.committed(Some(&record));
                Ok(row)
            }
            Err(refusal) => {
                phases.refused();
                Err(PhaseError::Refused(refusal))
            }
        }
    }
}

/// What the transaction of a local phase does to the record.
pub(super) async fn commit(memory: &MemoryStore, claim: &Claim, owner_act: &Act) -> Result<Record, Refusal> {
    let record = memory.find(vec![claim.operation_id]).await.unwrap().items.remove(0).unwrap();
    let Change::Put { next, history } = act(&record, claim, owner_act)? else { panic!("it is written") };
    let swap = Swap { expected: record.expected(), next: next.clone(), history };
    let answer = memory.swap(vec![swap]).await.unwrap();
    assert_eq!(answer.items, [Swapped::Done]);
    Ok(next.at(answer.now))
}
