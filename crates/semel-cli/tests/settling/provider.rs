//! The provider moves the money, and the connection drops: many payments, and each of them happens once.

use crate::support::{Answer, Gateway, SECRET, Worker, config, exchange, shop, until};
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

/// A gateway before a shop before a provider that often breaks off after it has charged.
struct Market {
    payments: usize,
    gateway: Gateway,
    provider: SocketAddr,
    file: PathBuf,
    _runtime: Runtime,
    _directory: TempDir,
}

impl Market {
    fn open(polls: bool, webhooks: bool) -> Self {
        Self::open_with(PAYMENTS, polls, webhooks, "")
    }

    fn open_with(payments: usize, polls: bool, webhooks: bool, more: &str) -> Self {
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
        let file = config(directory.path(), "semel.toml", shop_at, &(rest + more));
        runtime.spawn(async move { axum::serve(for_shop, shop(provider)).await });
        let gateway = Gateway::start(&file);
        let webhook = webhooks.then(|| {
            let url = format!("http://{}/v1/webhooks/provider", gateway.admin);
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
        Self { payments, gateway, provider, file, _runtime: runtime, _directory: directory }
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
        exchange(self.gateway.address, "POST", "/payments", &headers, &body)
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

    fn any(&self, query: &str) -> bool {
        let listed = self.gateway.ask(&format!("/v1/operations?limit=1&{query}")).json();
        !listed["operations"].as_array().unwrap().is_empty()
    }
}

fn key(number: usize) -> String {
    format!("key-of-payment-{number:06}")
}

fn every_doubt_is_settled(polls: bool, webhooks: bool) {
    let market = Market::open(polls, webhooks);
    let first = market.pay_all();
    let doubtful = market.doubtful(&first);
    until("no doubt is left", || (!market.any("state=unknown")).then_some(()));
    assert!(!market.any("state=in_progress") && !market.any("state=failed_retryable"));
    let resolved = "api_idempotency_reconcile_resolved_total{operation=\"create_payment\"}";
    assert_eq!(market.gateway.metric(resolved), doubtful, "each settled once");

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
    every_doubt_is_settled(true, false);
}

#[test]
fn being_told_by_the_provider_settles_every_payment() {
    every_doubt_is_settled(false, true);
}

#[test]
fn both_at_once_settle_every_payment_once() {
    every_doubt_is_settled(true, true);
}

/// The gateway leaves it to three workers, and the oldest of them is killed again and again while there is something to find out.
#[test]
fn three_workers_that_are_killed_settle_every_payment_once() {
    let market = Market::open_with(300, true, false, "[worker]\nin_gateway = false\n");
    let mut workers: VecDeque<_> = (0..3).map(|_| Worker::start(&market.file)).collect();
    let first = std::thread::scope(|scope| {
        let paying = scope.spawn(|| market.pay_all());
        // Any moment is as good as another to be killed at.
        for moment in (1..=8).map(|turn| turn * 7919 % 300) {
            std::thread::sleep(Duration::from_millis(moment));
            drop(workers.pop_front());
            workers.push_back(Worker::start(&market.file));
        }
        paying.join().unwrap()
    });
    market.doubtful(&first);
    until("no doubt is left", || (!market.any("state=unknown")).then_some(()));
    for (number, (first, retry)) in first.iter().zip(market.pay_all()).enumerate() {
        assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
        if first.status == 504 {
            let history = market.gateway.operation(&key(number)).unwrap()["history"].clone();
            let lines = history.as_array().unwrap();
            let settled = lines.iter().filter(|line| line["happening"] == "settled_completed").count();
            assert_eq!(settled, 1, "{history}");
        }
    }
    market.charged_once_each();
}

#[test]
fn with_neither_each_doubt_waits_for_a_person_and_nothing_executes_again() {
    let market = Market::open(false, false);
    let first = market.pay_all();
    let doubtful = market.doubtful(&first);
    assert!(!market.any("state=unknown&dead_letter=false"), "dead letters at once");
    let failed = "api_idempotency_reconcile_failed_total{operation=\"create_payment\"}";
    assert_eq!(market.gateway.metric(failed), doubtful);
    for (first, retry) in first.iter().zip(market.pay_all()) {
        if first.status == 504 {
            assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        } else {
            assert_eq!((retry.status, &retry.body), (201, &first.body));
        }
    }
    market.charged_once_each();
}
