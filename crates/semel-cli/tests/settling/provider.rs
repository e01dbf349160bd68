//! The provider moves the money, and the connection drops: many payments, and each of them happens once.

use crate::support::{
    Answer, Database, Gateway, Questions, SECRET, Worker, config, config_on, exchange, shop, until,
};
use payment_provider::{Provider, Secret, Settings, Webhook};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const PAYMENTS: usize = 1_000;
const CLIENTS: usize = 16;

/// Gateways before a shop before a provider that often breaks off after it has charged.
struct Market {
    payments: usize,
    /// One on SQLite, two on PostgreSQL.
    gateways: Vec<Gateway>,
    provider: SocketAddr,
    questions: Questions,
    file: PathBuf,
    _runtime: Runtime,
    _directory: TempDir,
}

/// What a market is opened with.
#[derive(Clone, Copy)]
struct Opening {
    payments: usize,
    on_postgres: bool,
    polls: bool,
    webhooks: bool,
    /// More of the configuration.
    more: &'static str,
}

const EMBEDDED: Opening =
    Opening { payments: PAYMENTS, on_postgres: false, polls: false, webhooks: false, more: "" };
/// Fewer: what it is about is that there are several processes.
const SHARED: Opening = Opening { payments: 300, on_postgres: true, ..EMBEDDED };

impl Market {
    fn open(opening: Opening) -> Self {
        let Opening { payments, on_postgres, polls, webhooks, more } = opening;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let listen = || runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (for_provider, for_shop) = (listen(), listen());
        let (provider, shop_at) = (for_provider.local_addr().unwrap(), for_shop.local_addr().unwrap());
        let mut rest = String::new();
        if polls {
            rest += &format!(
                "[route.reconcile]\npoll = \"http://{shop_at}/operations/{{operation_id}}\"\nevery = \"100ms\"\n"
            );
        }
        if webhooks {
            rest += &format!("[[webhook]]\nsource = \"provider\"\nsecrets = [\"{SECRET}\"]\n");
        }
        rest += more;
        let file = if on_postgres {
            let store = runtime.block_on(Database::new()).into_url();
            config_on(&store, directory.path(), "semel.toml", shop_at, &rest)
        } else {
            config(directory.path(), "semel.toml", shop_at, &rest)
        };
        let questions = Questions::default();
        let serving = shop(provider, questions.clone());
        runtime.spawn(async move { axum::serve(for_shop, serving).await });
        let gateways: Vec<_> = (0..=usize::from(on_postgres)).map(|_| Gateway::start(&file)).collect();
        let webhook = webhooks.then(|| {
            let url = format!("http://{}/v1/webhooks/provider", gateways.last().unwrap().admin);
            let mut webhook = Webhook::new(&url, Secret::parse(SECRET).unwrap()).unwrap();
            webhook.first_retry = Duration::from_millis(100);
            webhook.longest_retry = Duration::from_secs(1);
            webhook.attempts = 100;
            webhook.duplicate = 0.2;
            webhook.shuffle = 8;
            webhook
        });
        let settings = Settings {
            misbehave: "drop-after=0.3".parse().unwrap(),
            seed: 7,
            queryable: polls,
            webhook,
            ..Settings::default()
        };
        let ledger = Provider::open(directory.path().join("provider.ledger"), settings).unwrap();
        runtime.spawn(ledger.serve(for_provider, std::future::pending()));
        Self { payments, gateways, provider, questions, file, _runtime: runtime, _directory: directory }
    }

    /// Sends every payment once, some at a time.
    fn pay_all(&self) -> Vec<Answer> {
        let next = AtomicUsize::new(0);
        let pay = || {
            let numbers =
                || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < self.payments);
            std::iter::from_fn(numbers).map(|number| (number, self.pay(number))).collect::<Vec<_>>()
        };
        let mut answers: Vec<_> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(pay)).collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn pay(&self, number: usize) -> Answer {
        let key = key(number);
        let headers = [("idempotency-key", key.as_str()), ("content-type", "application/json")];
        let body = format!(r#"{{"amount":"12.50","currency":"EUR","reference":"invoice-{number}"}}"#);
        let gateway = &self.gateways[number % self.gateways.len()];
        exchange(gateway.address, "POST", "/payments", &headers, &body)
    }

    /// How many of these answers say that nobody knows.
    fn doubtful(&self, answers: &[Answer]) -> u64 {
        assert!(answers.iter().all(|answer| [201, 504].contains(&answer.status)));
        let doubtful = answers.iter().filter(|answer| answer.status == 504).count();
        assert!(doubtful > self.payments / 10, "the provider misbehaves: {doubtful}");
        u64::try_from(doubtful).unwrap()
    }

    fn charged_once_each(&self) {
        let summary = exchange(self.provider, "GET", "/ledger/summary", &[], "").json();
        assert_eq!(summary["charges"], self.payments, "{summary}");
        assert_eq!(summary["identities_charged_twice"], 0, "{summary}");
    }

    /// A counter of all gateways together.
    fn counted(&self, name: &str) -> u64 {
        let name = format!("api_idempotency_{name}_total{{operation=\"create_payment\"}}");
        self.gateways.iter().map(|gateway| gateway.metric(&name)).sum()
    }

    fn any(&self, query: &str) -> bool {
        let listed = self.gateways[0].ask(&format!("/v1/operations?limit=1&{query}")).json();
        !listed["operations"].as_array().unwrap().is_empty()
    }
}

fn key(number: usize) -> String {
    format!("key-of-payment-{number:06}")
}

fn every_doubt_is_settled(opening: Opening) {
    let market = Market::open(opening);
    let first = market.pay_all();
    let doubtful = market.doubtful(&first);
    until("no doubt is left", || (!market.any("state=unknown")).then_some(()));
    assert!(!market.any("state=in_progress") && !market.any("state=failed_retryable"));
    assert_eq!(market.counted("reconcile_resolved"), doubtful, "each settled once");

    for (number, (first, retry)) in first.iter().zip(market.pay_all()).enumerate() {
        assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
        assert_eq!(retry.json()["reference"], format!("invoice-{number}"));
        assert_eq!(retry.header("content-type"), Some("application/json"));
        assert!(first.status == 504 || first.body == retry.body, "{first:?} {retry:?}");
    }
    market.charged_once_each();
}

#[test]
fn asking_the_provider_settles_every_payment() {
    every_doubt_is_settled(Opening { polls: true, ..EMBEDDED });
}

#[test]
fn being_told_by_the_provider_settles_every_payment() {
    every_doubt_is_settled(Opening { webhooks: true, ..EMBEDDED });
}

#[test]
fn both_at_once_settle_every_payment_once() {
    every_doubt_is_settled(Opening { polls: true, webhooks: true, ..EMBEDDED });
}

#[test]
fn at_two_gateways_on_one_postgresql_asking_settles_every_payment() {
    every_doubt_is_settled(Opening { polls: true, ..SHARED });
}

#[test]
fn at_two_gateways_on_one_postgresql_being_told_settles_every_payment() {
    every_doubt_is_settled(Opening { webhooks: true, ..SHARED });
}

#[test]
fn at_two_gateways_on_one_postgresql_both_at_once_settle_every_payment_once() {
    every_doubt_is_settled(Opening { polls: true, webhooks: true, ..SHARED });
}

/// The gateways leave it to three workers, and the oldest of them is killed whenever so many questions more were asked.
fn three_workers_that_are_killed_settle_every_payment_once(opening: Opening) {
    const KILLS: usize = 6;
    let market = Market::open(Opening { polls: true, more: "[worker]\nin_gateway = false\n", ..opening });
    let first = market.pay_all();
    let doubtful = usize::try_from(market.doubtful(&first)).unwrap();
    let mut workers: VecDeque<_> = (0..3).map(|_| Worker::start(&market.file)).collect();
    for kill in 1..=KILLS {
        // Each doubt is asked about at least once, so that all of these moments come.
        let moment = doubtful * kill / (KILLS + 1);
        until("so many questions", || (market.questions.so_far() >= moment).then_some(()));
        drop(workers.pop_front());
        workers.push_back(Worker::start(&market.file));
    }
    until("no doubt is left", || (!market.any("state=unknown")).then_some(()));
    for (number, (first, retry)) in first.iter().zip(market.pay_all()).enumerate() {
        assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
        if first.status == 504 {
            let history = market.gateways[0].operation(&key(number)).unwrap()["history"].clone();
            let lines = history.as_array().unwrap();
            let settled = lines.iter().filter(|line| line["happening"] == "settled_completed").count();
            assert_eq!(settled, 1, "{history}");
        }
    }
    market.charged_once_each();
}

#[test]
fn on_sqlite_three_workers_that_are_killed_settle_every_payment_once() {
    three_workers_that_are_killed_settle_every_payment_once(Opening { payments: 300, ..EMBEDDED });
}

#[test]
fn on_postgresql_three_workers_that_are_killed_settle_every_payment_once() {
    three_workers_that_are_killed_settle_every_payment_once(SHARED);
}

#[test]
fn with_neither_each_doubt_waits_for_a_person_and_nothing_executes_again() {
    let market = Market::open(EMBEDDED);
    let first = market.pay_all();
    let doubtful = market.doubtful(&first);
    assert!(!market.any("state=unknown&dead_letter=false"), "dead letters at once");
    assert_eq!(market.counted("reconcile_failed"), doubtful);
    for (first, retry) in first.iter().zip(market.pay_all()) {
        if first.status == 504 {
            assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        } else {
            assert_eq!((retry.status, &retry.body), (201, &first.body));
        }
    }
    market.charged_once_each();
}
