//! The provider moves the money and does not say so. It is asked, or tells by itself, and every payment comes to its end: paid once,
//! in the books once, and replayed from then on.

use crate::harness::{ACCOUNT, Answer, Service, key, payment};
use crate::support::{Database, Kind, PATIENCE, Process, ProviderAt, Start};
use hyper::Method;
use payment_provider::{Secret, Settings, Webhook};
use payments::{
    PROVIDER_MODE, PaymentsOptions, PaymentsService, ProviderOptions, ProviderPromise, SettlingOptions,
};
use semel_gateway::{Config, GatewayProcess};
use semel_worker::WebhookSecret;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const EVERY: Duration = Duration::from_millis(100);
const PAYMENTS: usize = 60;

/// By which ways the provider's word comes.
#[derive(Clone, Copy, Debug)]
struct Ways {
    polls: bool,
    webhooks: bool,
}

const POLLS: Ways = Ways { polls: true, webhooks: false };
const WEBHOOKS: Ways = Ways { polls: false, webhooks: true };
const BOTH_WAYS: Ways = Ways { polls: true, webhooks: true };

/// A service and the provider behind it; a gateway may be in front.
struct Market {
    service: Service,
    provider: ProviderAt,
    _database: Database,
}

impl Market {
    async fn open(kind: Kind, ways: Ways) -> Self {
        // One that would charge twice, were it asked twice.
        Self::open_with(kind, ways, ProviderPromise::Neither, PaymentsOptions::default()).await
    }

    async fn open_with(kind: Kind, ways: Ways, promise: ProviderPromise, options: PaymentsOptions) -> Self {
        let database = Database::new(kind).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Service { address: listener.local_addr().unwrap() };
        let webhook = ways.webhooks.then(|| webhook_to(service));
        let settings = Settings {
            deduplicates: promise == ProviderPromise::Deduplicates,
            queryable: ways.polls,
            webhook,
            seed: 7,
            ..Settings::default()
        };
        let provider = ProviderAt::start_with(settings).await;
        let options = PaymentsOptions {
            provider: Some(ProviderOptions::new(provider.url().parse().unwrap(), promise)),
            settling: SettlingOptions {
                ask_every: ways.polls.then_some(EVERY),
                webhook_secrets: ways
                    .webhooks
                    .then(|| WebhookSecret::parse(SECRET).unwrap())
                    .into_iter()
                    .collect(),
            },
            demo_delays: true,
            ..options
        };
        let payments = PaymentsService::open(&database.url, options).await.unwrap();
        tokio::spawn(payments.serve(listener, std::future::pending()));
        Self { service, provider, _database: database }
    }

    async fn charges(&self) -> Value {
        let summary = self.provider.summary().await;
        json!([summary["charges"], summary["refunds"]])
    }
}

/// Again and again until it is taken; some of them twice, and in any order.
fn webhook_to(service: Service) -> Webhook {
    let url = format!("http://{}/webhooks/provider", service.address);
    let mut webhook = Webhook::new(&url, Secret::parse(SECRET).unwrap()).unwrap();
    webhook.first_retry = EVERY;
    webhook.longest_retry = Duration::from_secs(1);
    webhook.attempts = 100;
    webhook.duplicate = 0.2;
    webhook.shuffle = 8;
    webhook
}

async fn order(service: Service, path: &str, name: &str, mode: &str, body: &Value) -> Answer {
    let key = key(name);
    let headers = [
        ("idempotency-key", key.as_str()),
        ("x-account-id", ACCOUNT),
        ("content-type", "application/json"),
        (PROVIDER_MODE, mode),
    ];
    service.send(Method::POST, path, &headers, body.to_string()).await
}

async fn pay(service: Service, name: &str, mode: &str) -> Answer {
    order(service, "/payments", name, mode, &payment("10.00", &format!("invoice-{name}"))).await
}

fn code(answer: &Answer) -> String {
    answer.json()["code"].as_str().unwrap_or_default().to_owned()
}

/// Asks again until the outcome is known.
async fn until_known(mut ask: impl AsyncFnMut() -> Answer) -> Answer {
    let known = async {
        loop {
            let answer = ask().await;
            if code(&answer) != "idempotency_outcome_unknown" {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, known).await.expect("it is settled at last")
}

/// Every third payment is charged without an answer. All of them end completed, and their retries say so.
async fn every_payment_ends_completed(service: Service, market: &Market, what: &str) {
    let mode = |number: usize| if number.is_multiple_of(3) { "drop-after" } else { "none" };
    let mut paying = JoinSet::new();
    for number in 0..PAYMENTS {
        paying.spawn(async move {
            let first = pay(service, &number.to_string(), mode(number)).await;
            (number, first)
        });
    }
    for (number, first) in paying.join_all().await {
        let doubtful = mode(number) == "drop-after";
        assert_eq!(first.status, if doubtful { 504 } else { 201 }, "{what}: {}", first.json());
        let retry = until_known(async || pay(service, &number.to_string(), "none").await).await;
        assert_eq!((retry.status, retry.replayed()), (201, true), "{what}: {}", retry.json());
        assert_eq!(retry.json()["merchant_reference"], format!("invoice-{number}"));
        assert!(doubtful || retry.kept() == first.kept(), "{what}");
        let again = pay(service, &number.to_string(), "none").await;
        assert_eq!(again.kept(), retry.kept(), "{what}");
        // The service's own rows say the same.
        let shown = service.get(ACCOUNT, retry.headers["location"].to_str().unwrap()).await;
        assert_eq!(shown.json(), retry.json(), "{what}");
    }
    assert_eq!(market.charges().await, json!([PAYMENTS, 0]), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gateway_every_payment_ends_completed() {
    for (kind, ways) in [
        (Kind::Sqlite, POLLS),
        (Kind::Sqlite, WEBHOOKS),
        (Kind::Postgres, BOTH_WAYS),
        (Kind::Postgres, WEBHOOKS),
    ] {
        let market = Market::open(kind, ways).await;
        every_payment_ends_completed(market.service, &market, &format!("{kind:?} {ways:?}")).await;
    }
}

/// The sample of the gateway's configuration, at the addresses of a test.
fn sample(service: Service, directory: &Path) -> Config {
    let text = include_str!("../../semel.toml")
        .replace("127.0.0.1:9000", &service.address.to_string())
        .replace("127.0.0.1:8080", "127.0.0.1:0")
        .replace("127.0.0.1:8081", "127.0.0.1:0")
        .replace("sqlite:gateway.db", &format!("sqlite:{}", directory.join("gateway.db").display()));
    Config::from_toml(&text, Path::new("semel.toml")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_gateway_in_front_every_payment_ends_completed() {
    for (kind, ways) in [(Kind::Postgres, POLLS), (Kind::Sqlite, WEBHOOKS)] {
        let options = PaymentsOptions { behind_gateway: true, ..PaymentsOptions::default() };
        let market = Market::open_with(kind, ways, ProviderPromise::Neither, options).await;
        let directory = tempfile::tempdir().unwrap();
        let gateway = GatewayProcess::start(sample(market.service, directory.path())).await.unwrap();
        let front = Service { address: gateway.address() };
        tokio::spawn(gateway.serve(std::future::pending(), std::future::pending()));
        every_payment_ends_completed(front, &market, &format!("{kind:?} {ways:?}")).await;

        let first = pay(front, "by-name", "none").await;
        let path = format!("/operations/{}", first.headers["semel-operation-id"].to_str().unwrap());
        assert_eq!(front.get(ACCOUNT, &path).await.status, 404, "the gateway's name is the gateway's own");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_is_settled_too() {
    for (kind, ways) in [(Kind::Sqlite, WEBHOOKS), (Kind::Postgres, POLLS), (Kind::Sqlite, POLLS)] {
        let market = Market::open(kind, ways).await;
        let paid = pay(market.service, "paid", "none").await;
        let path = format!("{}/refunds", paid.headers["location"].to_str().unwrap());
        let body = json!({ "amount": "4.00" });
        let first = order(market.service, &path, "back", "drop-after", &body).await;
        assert_eq!((first.status, code(&first)), (504, "idempotency_outcome_unknown".into()));
        let retry = until_known(async || order(market.service, &path, "back", "none", &body).await).await;
        assert_eq!((retry.status, &retry.json()["amount"]), (201, &json!("4.00")), "{}", retry.json());
        assert_eq!(market.charges().await, json!([1, 1]));
        let too_much = order(market.service, &path, "more", "none", &json!({ "amount": "6.01" })).await;
        assert_eq!(code(&too_much), "refund_exceeds_payment", "what was given back counts");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_provider_never_got_is_paid_by_the_retry() {
    let lease = Duration::from_millis(600);
    let options = PaymentsOptions { lease, timeout: lease / 2, ..PaymentsOptions::default() };
    let market = Market::open_with(Kind::Sqlite, POLLS, ProviderPromise::Deduplicates, options).await;
    let first = pay(market.service, "lost", "drop-before").await;
    assert_eq!((first.status, code(&first)), (504, "idempotency_outcome_unknown".into()));
    let retry = until_known(async || pay(market.service, "lost", "none").await).await;
    assert_eq!((retry.status, retry.replayed()), (201, false), "{}", retry.json());
    assert_eq!(market.charges().await, json!([1, 0]));
}

/// The process dies after the provider has moved the money and before anything of that is written; the next one finds out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_in_the_middle_leaves_a_payment_that_the_next_one_settles() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let settings = Settings { deduplicates: false, ..Settings::default() };
        let provider = ProviderAt::start_with(settings).await;
        let (database, url) = (Database::new(kind).await, provider.url());
        let start = Start {
            database: &database.url,
            provider: &url,
            promise: ProviderPromise::Neither,
            lease: Duration::from_secs(1),
            fail_point: Some("charged:answered"),
            more: &["--ask-every-ms", "100"],
        };
        let mut process = Process::start(start).await;
        let service = process.service;
        let paying = tokio::spawn(async move {
            let (key, body) = (key("dies"), payment("10.00", "invoice-dies").to_string());
            let headers = [
                ("idempotency-key", key.as_str()),
                ("x-account-id", ACCOUNT),
                ("content-type", "application/json"),
            ];
            service.try_send(Method::POST, "/payments", &headers, body).await
        });
        process.is_at("charged:answered").await;
        process.kill().await;
        assert!(paying.await.unwrap().is_none());

        let next = Process::start(Start { fail_point: None, ..start }).await;
        let retry = async || {
            let body = payment("10.00", "invoice-dies");
            crate::support::until_settled(next.service, "/payments", &key("dies"), &body).await
        };
        let paid = until_known(retry).await;
        assert_eq!((paid.status, paid.replayed()), (201, true), "{}", paid.json());
        let summary = provider.summary().await;
        assert_eq!(summary["charges"], 1, "{summary}");
        let shown = next.service.get(ACCOUNT, paid.headers["location"].to_str().unwrap()).await;
        assert_eq!(shown.json(), paid.json());
    }
}

#[tokio::test]
async fn who_cannot_sign_settles_nothing() {
    let market = Market::open(Kind::Sqlite, WEBHOOKS).await;
    let first = pay(market.service, "one", "drop-before").await;
    let id = first.headers["semel-operation-id"].to_str().unwrap();
    let body = json!({ "operation_id": id, "outcome": "completed", "data": { "id": "ch_1", "status": "succeeded" } });
    let headers = [
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", "1800000000"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ];
    let answer = market.service.send(Method::POST, "/webhooks/provider", &headers, body.to_string()).await;
    assert_eq!((answer.status, &answer.json()["result"]), (401, &json!("bad_signature")));
    assert_eq!(code(&pay(market.service, "one", "none").await), "idempotency_outcome_unknown");
}
