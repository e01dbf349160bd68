//! A history of one operation, written by hand: everything in it is as it should be until it is doctored.

use crate::audit::Auditor;
use crate::book::{Book, Order};
use crate::check;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::faults::Faults;
use crate::log::{Answer, Meaning, Told, Variant, kept};
use crate::machine::Machine;
use crate::plan::Operation;
use crate::provider::{declined, paid};
use crate::rules::{Rule, Work};
use crate::service;
use crate::setup::Setup;
use crate::store::{Disk, SimulatedStore};
use crate::trace::Trace;
use crate::world::{Parts, World};
use http::header::SET_COOKIE;
use semel::clock::Terms;
use semel::transition::{Act, Change, Claim, Reservation, Windows, act, reserve};
use semel::{
    Draft, Expired, Fingerprint, OperationId, Owner, Quotas, RecipeId, Record, RecordKey, Store as _,
    StoreResponse, StoredResponse, Swap,
};
use std::sync::Arc;
use std::time::Duration;

/// The operation of the plan: one that the provider does not decline.
pub(crate) const NUMBER: u32 = 5;
/// The one that it declines.
pub(crate) const DECLINED: u32 = 17;

const TENANT: u32 = 1;

pub(crate) const ID: OperationId = OperationId::from_u128(7);

pub(crate) struct Scene {
    pub(crate) world: Arc<World>,
    pub(crate) store: SimulatedStore,
    number: u32,
}

/// Rules as a run draws them, for work by a service that keeps whole answers, for seconds.
pub(crate) fn by_service(expired: Expired) -> Rule {
    Rule::drawn(|rule| {
        let policy = rule.policy();
        let is_plain = policy.retention < Duration::from_secs(60) && policy.expired == expired;
        let keeps = |policy: &semel::Policy| {
            policy.store_response == StoreResponse::Full && policy.body_retention >= policy.retention
        };
        rule.work == Work::Service && !rule.takes_over() && is_plain && rule.policies().into_iter().all(keeps)
    })
}

impl Scene {
    /// A world in which nobody wants anything.
    pub(crate) fn forgotten(rule: Rule, number: u32) -> Self {
        let mut scene = Self::of(rule, number, false);
        let world = Arc::get_mut(&mut scene.world).expect("nobody else has it");
        world.plan.clear();
        scene
    }

    /// A world without faults and gateways, in which one operation is wanted: by another body and another tenant too, if `others`.
    pub(crate) fn of(rule: Rule, number: u32, others: bool) -> Self {
        Self::with(
            rule,
            number,
            others,
            &Setup { only: vec![Fault::Failover], density: Some(0.0), ..Setup::of(1) },
        )
    }

    pub(crate) fn with(rule: Rule, number: u32, others: bool, setup: &Setup) -> Self {
        let (trace, book) = (Arc::new(Trace::begin(true)), Arc::new(Book::default()));
        let (rules, machine) = (Arc::new(vec![rule]), Machine::new());
        let mut variants = vec![Variant::Plain];
        if others {
            variants.extend([Variant::Altered, Variant::Neighbour, Variant::Malformed]);
        }
        let operation = Operation {
            number,
            tenant: TENANT,
            rule: 0,
            key: "key".into(),
            begins: Duration::ZERO,
            sends: variants.into_iter().map(|variant| (Duration::ZERO, variant)).collect(),
            is_abandoned: false,
            late: None,
        };
        let auditor = Arc::new(Auditor::new(Arc::clone(&trace), Arc::clone(&book), Arc::clone(&rules)));
        let disk = Disk::audited(machine.clone(), Terms::default(), auditor.clone());
        let world = World::of(Parts {
            seed: setup.seed,
            trace,
            faults: Arc::new(Faults::draw(setup)),
            machine: machine.clone(),
            hosts: vec![machine],
            disk,
            book,
            auditor,
            rules,
            plan: vec![operation],
            quotas: Quotas::default(),
            max_concurrent_batches: 1,
            sealed: false,
        });
        let store = SimulatedStore::open(&world.disk, 1);
        Self { world, store, number }
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.world.rules[0]
    }

    pub(crate) fn windows(&self) -> Windows {
        Windows::from(self.rule().policy())
    }

    pub(crate) fn draft(&self, id: OperationId, owner: u128) -> Draft {
        let reservation = Reservation {
            key: RecordKey::new(format!("tenant-{TENANT}"), self.rule().name.clone(), "key"),
            operation_id: id,
            fingerprint: Fingerprint([1; 32]),
            recipe: RecipeId([2; 16]),
            owner: Owner::from_u128(owner),
        };
        reserve(reservation, self.rule().policy())
    }

    /// The key's record.
    pub(crate) fn record(&self) -> Option<Record> {
        self.world.disk.contents().record(&self.draft(ID, 1).key).cloned()
    }

    /// A request is the first of its key.
    pub(crate) async fn reserve(&self, id: OperationId) -> Record {
        let draft = self.draft(id, 1);
        let created = self.store.create(vec![draft.clone()]).await.expect("a store without faults");
        draft.at(created.now)
    }

    /// What is written of a record.
    pub(crate) async fn put(&self, record: &Record, change: Change) -> Record {
        let Change::Put { next, history } = change else { panic!("nothing is removed here") };
        let swap = Swap { expected: record.expected(), next, history };
        let swapped = self.store.swap(vec![swap.clone()]).await.expect("a store without faults");
        swap.next.at(swapped.now)
    }

    /// The owner writes.
    pub(crate) async fn act(&self, record: &Record, does: &Act) -> Record {
        let change = act(record, &Claim::of(record), does).expect("an owner that may");
        self.put(record, change).await
    }

    pub(crate) fn order(&self, record: &Record) -> Order {
        Order {
            number: self.number,
            tenant: TENANT,
            altered: false,
            id: record.operation_id,
            attempt: record.attempt,
        }
    }

    pub(crate) fn start(&self, record: &Record) {
        self.world.note_start(&self.order(record));
    }

    pub(crate) fn charge(&self, record: &Record) {
        let (at, order) = (self.world.trace.now(), self.order(record));
        self.world.book.pages().charge(at, &order, self.rule());
    }

    /// What the service says once the provider has done, or declined, what it was asked for.
    pub(crate) fn outcome(&self, id: OperationId) -> StoredResponse {
        let of = if self.number == DECLINED { declined } else { paid };
        of(id, TENANT, "service")
    }

    pub(crate) async fn end(&self, record: &Record) -> Record {
        let (response, windows) = (Some(self.outcome(record.operation_id)), self.windows());
        let resource = None;
        let ends = match self.number {
            DECLINED => Act::Fail { response, resource, windows },
            _ => Act::Complete { response, resource, windows },
        };
        self.act(record, &ends).await
    }

    /// The answer with the outcome.
    pub(crate) fn answer(&self, id: OperationId, replayed: bool) -> Answer {
        let response = service::answer(self.outcome(id));
        let (parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        Answer {
            status,
            replayed,
            operation_id: Some(id.to_string()),
            kept: kept(&parts.headers),
            sets_cookie: parts.headers.contains_key(SET_COOKIE) && !replayed,
            meaning: Meaning::of(status, false, &body),
            body,
        }
    }

    /// A client is told now.
    pub(crate) fn tell(&self, variant: Variant, answer: Answer) {
        let now = self.world.trace.now();
        self.world.tell(Told { number: self.number, variant, sent: now, heard: now, answer: Some(answer) });
    }

    pub(crate) async fn pass(&self, span: Duration) {
        tokio::time::advance(span).await;
        // Somebody asks the store, and so goes by its time.
        self.store.read(Vec::new()).await.expect("a store without faults");
    }

    /// One operation from its request to its replay.
    pub(crate) async fn done(rule: Rule, number: u32) -> (Self, Record) {
        let scene = Self::of(rule, number, true);
        let ended = scene.happens(ID).await;
        (scene, ended)
    }

    pub(crate) async fn happens(&self, id: OperationId) -> Record {
        let record = self.reserve(id).await;
        self.start(&record);
        self.charge(&record);
        self.pass(Duration::from_millis(20)).await;
        let ended = self.end(&record).await;
        self.tell(Variant::Plain, self.answer(id, false));
        self.pass(Duration::from_millis(20)).await;
        self.tell(Variant::Plain, self.answer(id, true));
        ended
    }

    pub(crate) fn verdict(&self) -> Vec<String> {
        check::judge(&self.world)
    }

    /// Right as it is, and wrong once it is doctored, in these words.
    pub(crate) fn breaks(&self, doctor: impl FnOnce(&Self), promise: &str, words: &str) {
        assert_eq!(self.verdict(), Vec::<String>::new(), "before it is doctored, for {words:?}");
        doctor(self);
        let said = self.verdict();
        let is_it = |violation: &String| violation.starts_with(promise) && violation.contains(words);
        assert!(said.iter().any(is_it), "{said:#?} instead of {promise} {words:?}");
    }

    /// Changes what a client was told, the how-manieth of all.
    pub(crate) fn retell(&self, number: usize, doctor: impl FnOnce(&mut Answer)) {
        let mut told = self.world.told();
        let answer = told.get_mut(number).and_then(|told| told.answer.as_mut());
        doctor(answer.expect("that many answers"));
    }
}

/// Rules that a run draws.
impl Rule {
    pub(crate) fn drawn(wanted: impl Fn(&Self) -> bool) -> Self {
        let drawn = (0..10_000).flat_map(|seed| Self::draw(&Dice::of(seed, "rules")));
        let mut wanted = drawn.filter(|rule| wanted(rule));
        wanted.next().expect("one of thousands is of that kind")
    }
}
