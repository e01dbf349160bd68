//! Random histories, through the store and through a plain reference that only knows `transition`.
//!
//! Plain proptest and not proptest-state-machine: there the reference runs ahead of the store, while here it cannot. Time is the
//! store's, and every decision depends on it, so the reference takes each `now` from the answer that it then checks.
//!
//! `SEMEL_CONFORMANCE_CASES` asks for more cases, `SEMEL_CONFORMANCE_SEED` for the very ones that failed.

use super::reference::Reference;
use crate::client::{Client, Request, Ticket};
use crate::samples::{LONG, advance, key, next, release, reserved, response, settlement};
use crate::{Bench, Checked};
use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use semel::transition::{
    self, About, Act, Arrival, Arrived, Change, Claim, Evidence, Match, Polling, Refusal, Reservation,
    Settlement, Windows,
};
use semel::{
    Actor, Body, Created, Draft, Expected, Expired, Fingerprint, OperationId, Owner, Policy, RecipeId,
    Record, RecordKey, Settling, Stale, StoredResponse, Swap, Swapped, Timestamp,
};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const KEYS: u32 = 5;

/// Milliseconds, short enough to run out during a case or so long that they never do.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_millis(2)),
        Just(Duration::from_millis(9)),
        Just(LONG)
    ]
}

fn windows() -> impl Strategy<Value = Windows> {
    let tombstones = prop_oneof![durations(), Just(Duration::MAX)];
    (durations(), durations(), tombstones).prop_map(|(retention, body_retention, tombstone)| Windows {
        retention,
        body_retention,
        tombstone,
    })
}

fn settlings() -> impl Strategy<Value = Settling> {
    prop_oneof![
        Just(Settling::Operator),
        Just(Settling::Webhook),
        durations().prop_map(|first| Settling::Poll { first }),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let stale = prop_oneof![Just(Stale::Unknown), Just(Stale::Resume), Just(Stale::Rerun)];
    let expired = prop_oneof![Just(Expired::Refuse), Just(Expired::New)];
    (durations(), stale, expired, settlings()).prop_map(|(lease, stale, expired, settling)| Policy {
        lease,
        stale,
        expired,
        settling,
        ..Policy::default()
    })
}

fn responses() -> impl Strategy<Value = Option<StoredResponse>> {
    let bodies = prop_oneof![
        Just(Body::NotStored),
        Just(Body::Stored(Bytes::new())),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Body::Stored(bytes.into())),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Body::Sealed(bytes.into())),
    ];
    proptest::option::of((any::<u16>(), bodies).prop_map(|(status, body)| StoredResponse {
        status,
        body,
        ..response("")
    }))
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => durations().prop_map(|lease| Act::Extend { lease }),
        1 => Just(advance("charged")),
        4 => (responses(), windows())
            .prop_map(|(response, windows)| Act::Complete { response, resource: None, windows }),
        2 => (responses(), windows())
            .prop_map(|(response, windows)| Act::Fail { response, resource: None, windows }),
        3 => windows().prop_map(|windows| Act::Retryable { error: "unreachable".into(), windows }),
        1 => Just(release()),
        2 => settlings().prop_map(|settling| Act::Doubt { error: "timed_out".into(), settling }),
    ]
}

fn evidence() -> impl Strategy<Value = Evidence> {
    prop_oneof![
        responses().prop_map(|response| Evidence::Completed { response, resource: None }),
        responses().prop_map(|response| Evidence::Failed { response, resource: None }),
        Just(Evidence::NotExecuted),
        Just(Evidence::Absent),
    ]
}

/// One thing that happens, through the first or the second instance.
#[derive(Clone, Debug)]
enum Step {
    Arrive {
        key: u32,
        same: bool,
        policy: Policy,
    },
    /// A ticket of any time: its owner may long have been passed by.
    Act {
        ticket: usize,
        act: Act,
    },
    Watch {
        key: u32,
        policy: Policy,
    },
    Poll {
        key: u32,
        attempts: u32,
        next: Duration,
    },
    Settle {
        key: u32,
        attempt: Option<u32>,
        evidence: Evidence,
        windows: Windows,
    },
    Remark {
        key: u32,
    },
    Reap {
        key: u32,
    },
    DropAnswers,
    Purge,
    /// A batch of creates, of one key several times too.
    CreateMany {
        keys: Vec<u32>,
    },
    /// A batch of swaps of what was seen at any time: fresh, stale, gone, the same one twice.
    SwapMany {
        seen: Vec<usize>,
    },
    RemoveMany {
        seen: Vec<usize>,
    },
    Pass {
        millis: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<(bool, Step)>> {
    let keys = 0..KEYS;
    let many = || proptest::collection::vec(any::<usize>(), 1..5);
    let step = prop_oneof![
        8 => (keys.clone(), proptest::bool::weighted(0.9), policies())
            .prop_map(|(key, same, policy)| Step::Arrive { key, same, policy }),
        8 => (any::<usize>(), acts()).prop_map(|(ticket, act)| Step::Act { ticket, act }),
        2 => (keys.clone(), policies()).prop_map(|(key, policy)| Step::Watch { key, policy }),
        2 => (keys.clone(), 0..3_u32, durations())
            .prop_map(|(key, attempts, next)| Step::Poll { key, attempts, next }),
        3 => (keys.clone(), proptest::option::weighted(0.8, 1..4_u32), evidence(), windows())
            .prop_map(|(key, attempt, evidence, windows)| Step::Settle { key, attempt, evidence, windows }),
        1 => keys.clone().prop_map(|key| Step::Remark { key }),
        3 => keys.clone().prop_map(|key| Step::Reap { key }),
        2 => Just(Step::DropAnswers),
        3 => Just(Step::Purge),
        1 => proptest::collection::vec(keys, 1..5).prop_map(|keys| Step::CreateMany { keys }),
        2 => many().prop_map(|seen| Step::SwapMany { seen }),
        1 => many().prop_map(|seen| Step::RemoveMany { seen }),
        3 => (1..8_u64).prop_map(|millis| Step::Pass { millis }),
    ];
    proptest::collection::vec((any::<bool>(), step), 1..40)
}

/// A running case.
struct Case {
    bench: Bench,
    clients: Vec<Client>,
    reference: Reference,
    tickets: Vec<Ticket>,
    /// Every version that anybody saw.
    seen: Vec<Record>,
    /// Which instance the step goes through.
    through: usize,
}

impl Case {
    fn client(&self) -> &Client {
        &self.clients[self.through]
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Arrive { key: number, same, policy } => {
                let fingerprint = Fingerprint([if same { 7 } else { 8 }; 32]);
                self.arrive(&Request { key: key(number), fingerprint }, &policy).await;
            }
            Step::Act { ticket, act } => {
                if !self.tickets.is_empty() {
                    let ticket = self.tickets[ticket % self.tickets.len()].clone();
                    self.decide(&ticket.key, |record, _| transition::act(record, &ticket.claim, &act)).await;
                }
            }
            Step::Watch { key: number, policy } => {
                self.decide(&key(number), |record, now| transition::watch(record, &policy, now)).await;
            }
            Step::Poll { key: number, attempts, next } => {
                let polling = Polling { attempts, next };
                self.decide(&key(number), |record, now| transition::poll(record, &polling, now)).await;
            }
            Step::Settle { key: number, attempt, evidence, windows } => {
                let settlement = Settlement { windows, ..settlement(evidence) };
                let settle = |record: &Record, now| {
                    let about = About { attempt, ..About::of(record) };
                    transition::settle(record, &about, &settlement, now)
                };
                self.decide(&key(number), settle).await;
            }
            Step::Remark { key: number } => {
                let note = Some("came too late".into());
                let actor = Actor::Webhook("provider".into());
                self.decide(&key(number), |record, _| Ok(transition::remark(record, actor, note))).await;
            }
            Step::Reap { key: number } => self.decide(&key(number), transition::reap).await,
            Step::DropAnswers => {
                let answer = self.client().store.drop_answers(1_000).await.expect("the store drops answers");
                self.reference.dropped(answer.now, &answer.items);
            }
            Step::Purge => {
                let answer = self.client().store.purge(1_000).await.expect("the store purges");
                self.reference.purged(answer.now, &answer.items);
            }
            Step::CreateMany { keys } => {
                self.create(keys.into_iter().map(|number| reserved(key(number))).collect()).await;
            }
            Step::SwapMany { seen } => {
                let swaps = self.seen_before(&seen).map(|record| Swap {
                    expected: record.expected(),
                    next: Box::new(Draft { owner: Owner::random(), ..next(record) }),
                    history: None,
                });
                let swaps = swaps.collect();
                self.swap(swaps).await;
            }
            Step::RemoveMany { seen } => {
                let expected = self.seen_before(&seen).map(Record::expected).collect();
                self.remove(expected).await;
            }
            Step::Pass { millis } => self.bench.pass(Duration::from_millis(millis)).await,
        }
    }

    fn seen_before<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = &'a Record> {
        // The late ones are likelier: they may still be the ones that are there.
        let count = self.seen.len();
        places
            .iter()
            .filter(move |_| count > 0)
            .map(move |place| &self.seen[count - 1 - place % count.min(12)])
    }

    async fn arrive(&mut self, request: &Request, policy: &Policy) {
        let owner = Owner::random();
        let reservation = Reservation {
            key: request.key.clone(),
            operation_id: OperationId::random(),
            fingerprint: request.fingerprint,
            recipe: RecipeId([9; 16]),
            owner,
        };
        let draft = transition::reserve(reservation, policy);
        let (now, created) = self.create(vec![draft.clone()]).await;
        let Some(Created::Exists(record)) = created.into_iter().next() else {
            self.tickets.push(Ticket { key: request.key.clone(), claim: Claim::of(&draft) });
            return;
        };
        let same = record.fingerprint == request.fingerprint;
        let arrival = Arrival { matches: if same { Match::Same } else { Match::Different }, owner, policy };
        match transition::arrive(&record, &arrival, now) {
            Arrived::Doubt(change) => self.write(&record, change).await,
            Arrived::Take(change) => {
                let claim = Claim { owner, attempt: record.attempt + 1, ..Claim::of(&record) };
                self.write(&record, change).await;
                self.tickets.push(Ticket { key: request.key.clone(), claim });
            }
            Arrived::Forgotten => {
                self.write(&record, Change::Remove).await;
                let (_, created) = self.create(vec![draft.clone()]).await;
                assert_eq!(created, [Created::Inserted]);
                self.tickets.push(Ticket { key: request.key.clone(), claim: Claim::of(&draft) });
            }
            _ => {}
        }
    }

    /// Reads, decides, writes. Nobody is in between, so the write is done.
    async fn decide(
        &mut self,
        key: &RecordKey,
        decide: impl FnOnce(&Record, Timestamp) -> Result<Change, Refusal>,
    ) {
        let (now, found) = self.client().look(key).await;
        self.reference.told(now);
        assert_eq!(found.as_ref(), self.reference.read(key));
        if let Some(record) = found
            && let Ok(change) = decide(&record, now)
        {
            self.write(&record, change).await;
        }
    }

    async fn write(&mut self, record: &Record, change: Change) {
        let expected = record.expected();
        let done = match change {
            Change::Put { next, history } => self.swap(vec![Swap { expected, next, history }]).await,
            Change::Remove => self.remove(vec![expected]).await,
        };
        assert_eq!(done, [Swapped::Done]);
    }

    async fn create(&mut self, batch: Vec<Draft>) -> (Timestamp, Vec<Created>) {
        let answer = self.client().store.create(batch.clone()).await.expect("the store creates");
        self.reference.created(answer.now, &batch, &answer.items);
        self.seen.extend(batch.iter().filter_map(|draft| self.reference.read(&draft.key).cloned()));
        (answer.now, answer.items)
    }

    async fn swap(&mut self, batch: Vec<Swap>) -> Vec<Swapped> {
        let answer = self.client().store.swap(batch.clone()).await.expect("the store swaps");
        self.reference.swapped(answer.now, &batch, &answer.items);
        self.seen.extend(batch.iter().filter_map(|swap| self.reference.read(&swap.expected.key).cloned()));
        answer.items
    }

    async fn remove(&mut self, batch: Vec<Expected>) -> Vec<Swapped> {
        let answer = self.client().store.remove(batch.clone()).await.expect("the store removes");
        self.reference.removed(answer.now, &batch, &answer.items);
        answer.items
    }
}

async fn agree(bench: Bench, clients: Vec<Client>, steps: Vec<(bool, Step)>) {
    let mut case =
        Case { bench, clients, reference: Reference::default(), tickets: vec![], seen: vec![], through: 0 };
    for (other, step) in steps {
        case.through = usize::from(other) % case.clients.len();
        case.step(step).await;
        // Looked at through the instance that did not write, where there is one.
        let looking = case.clients[(case.through + 1) % case.clients.len()].clone();
        case.reference.compare(&looking).await;
    }
}

/// Runs the cases, and says on failure how to have them again.
fn run(bench: &Bench, second: impl AsyncFn(&Bench) -> Vec<Client>) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("SEMEL_CONFORMANCE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let cases = number("SEMEL_CONFORMANCE_CASES").unwrap_or(20);
    let mut runner = TestRunner::new(Config {
        cases: u32::try_from(cases).expect("fewer cases"),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    });
    let runtime = tokio::runtime::Handle::current();
    let outcome = tokio::task::block_in_place(|| {
        runner.run(&steps(), |steps| {
            runtime.block_on(async {
                let fresh = bench.fresh().await;
                let clients = second(&fresh).await;
                agree(fresh, clients, steps).await;
            });
            Ok(())
        })
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, steps)) => panic!(
            "{reason}\nwith SEMEL_CONFORMANCE_SEED={seed} SEMEL_CONFORMANCE_CASES={cases}, shortest history:\n{steps:#?}"
        ),
        Err(error) => panic!("SEMEL_CONFORMANCE_SEED={seed}: {error}"),
    }
}

pub async fn a_store_agrees_with_the_state_machine(bench: Bench) -> Checked {
    run(&bench, async |fresh| vec![fresh.client()]);
    Ok(())
}

pub async fn two_instances_agree_with_the_state_machine_and_with_each_other(bench: Bench) -> Checked {
    bench.another().await?;
    run(&bench, async |fresh| {
        vec![fresh.client(), fresh.another().await.expect("it had another a moment ago")]
    });
    Ok(())
}
