//! `kill -9` at every step between two recovery points, and what becomes of the operation then.

use crate::harness::{ACCOUNT, key, payment};
use crate::support::{Database, Kind, Process, ProviderAt, Start, until_settled};
use hyper::Method;
use payments::{FAIL_POINTS, ProviderPromise};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long it takes to notice that the process has died. Much longer than it takes to kill it: a client of a live process that
/// has waited almost that long is told that the outcome is unknown, and this is about processes that die.
const LEASE: Duration = Duration::from_secs(3);
/// How many wait for a lease at the same time, which needs no processor.
const AT_ONCE: usize = 16;
/// Whoever has a phase's result in the record needs nobody to call: this is nobody.
const NOBODY: &str = "http://127.0.0.1:9";

/// One kill.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    promise: ProviderPromise,
    fail_point: &'static str,
}

impl Case {
    /// Whether the provider may have been called, and the record does not have its answer.
    fn in_doubt(self) -> bool {
        matches!(self.fail_point, "charged:sent" | "charged:answered")
    }

    /// Whether the provider's answer is in the record: nobody may call again.
    fn answered(self) -> bool {
        matches!(self.fail_point, "charged" | "completing:in_transaction" | "completed")
    }

    async fn run(self, provider: ProviderAt) {
        let database = Database::new(self.kind).await;
        let url = provider.url();
        let start = Start {
            database: &database.url,
            provider: &url,
            promise: self.promise,
            lease: LEASE,
            fail_point: Some(self.fail_point),
            more: &[],
        };
        let (key, body) = (key("kill"), payment("10.00", "invoice-1"));
        let mut process = Process::start(start).await;
        let service = process.service;
        let asked = tokio::spawn({
            let (key, body) = (key.clone(), body.to_string());
            async move {
                let headers = [
                    ("idempotency-key", &*key),
                    ("x-account-id", ACCOUNT),
                    ("content-type", "application/json"),
                ];
                service.try_send(Method::POST, "/payments", &headers, body).await
            }
        });
        process.is_at(self.fail_point).await;
        process.kill().await;
        assert!(asked.await.unwrap().is_none(), "{self:?}: nobody was told anything");

        let provider_now = if self.answered() { NOBODY } else { &url };
        let process = Process::start(Start { fail_point: None, provider: provider_now, ..start }).await;
        let service = process.service;
        let answer = until_settled(service, "/payments", &key, &body).await;
        let operation = answer.headers["semel-operation-id"].to_str().unwrap().to_owned();
        let effects = provider.effects(&operation).await;
        let shown = service.get(ACCOUNT, &format!("/operations/{operation}")).await;
        if self.promise == ProviderPromise::Neither && self.in_doubt() {
            let told = answer.json();
            assert_eq!(told["code"], "idempotency_outcome_unknown", "{self:?}: {told}");
            assert_eq!(effects, u64::from(self.fail_point == "charged:answered"), "{self:?}");
            assert_eq!((shown.status, &shown.json()["payment_status"]), (202, &json!("unknown")), "{self:?}");
            let listed = service.get(ACCOUNT, "/payments").await.json();
            assert_eq!(listed["newest"][0]["status"], "unknown", "{self:?}: {listed}");
            // However often it is asked for.
            let again = until_settled(service, "/payments", &key, &body).await;
            assert_eq!(again.json()["code"], "idempotency_outcome_unknown", "{self:?}");
            assert!(provider.effects(&operation).await <= 1, "{self:?}");
            return;
        }
        // 201 and not 200: had the first phase run again, it would have found its own payment and answered with that.
        assert_eq!(answer.status, 201, "{self:?}: {}", answer.json());
        assert_eq!(effects, 1, "{self:?}");
        let retry = until_settled(service, "/payments", &key, &body).await;
        assert!(retry.replayed(), "{self:?}");
        assert_eq!(retry.kept(), answer.kept(), "{self:?}: one response");
        assert_eq!(provider.effects(&operation).await, 1, "{self:?}: one charge");
        assert_eq!((shown.status, &shown.json()["status"]), (200, &json!(201)), "{self:?}");
        let location = answer.headers["location"].to_str().unwrap();
        assert_eq!(service.get(ACCOUNT, location).await.json(), answer.json(), "{self:?}");
        let listed = service.get(ACCOUNT, "/payments").await.json();
        assert_eq!(listed["count"], 1, "{self:?}: one payment");
        // The name of the one entry in the books is unique: with a second one the completing commit would have failed.
        let refund =
            until_settled(service, &format!("{location}/refunds"), &key, &json!({ "amount": "11.00" })).await;
        assert_eq!(refund.json()["code"], "refund_exceeds_payment", "{self:?}: the books know what was paid");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_is_killed_at_any_step_is_charged_once_or_unknown() {
    let promises = [ProviderPromise::Deduplicates, ProviderPromise::CanBeAsked, ProviderPromise::Neither];
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut cases = JoinSet::new();
    for promise in promises {
        let provider = ProviderAt::start(promise).await;
        for (kind, fail_point) in
            [Kind::Sqlite, Kind::Postgres].into_iter().flat_map(|kind| FAIL_POINTS.map(|point| (kind, point)))
        {
            let (case, places) = (Case { kind, promise, fail_point }, Arc::clone(&places));
            cases.spawn(async move {
                let _place = places.acquire().await;
                case.run(provider).await;
            });
        }
    }
    let mut ended = 0;
    while let Some(case) = cases.join_next().await {
        case.unwrap();
        ended += 1;
    }
    assert_eq!(ended, promises.len() * FAIL_POINTS.len() * 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_is_killed_at_any_step_is_given_once() {
    let provider = ProviderAt::start(ProviderPromise::Deduplicates).await;
    let mut cases = JoinSet::new();
    for fail_point in FAIL_POINTS {
        cases.spawn(refund_that_is_killed(fail_point, provider));
    }
    assert_eq!(cases.join_all().await.len(), FAIL_POINTS.len());
}

async fn refund_that_is_killed(fail_point: &str, provider: ProviderAt) {
    let url = provider.url();
    let database = Database::new(Kind::Sqlite).await;
    let start = Start {
        database: &database.url,
        provider: &url,
        promise: ProviderPromise::Deduplicates,
        lease: LEASE,
        fail_point: None,
        more: &[],
    };
    let process = Process::start(start).await;
    let paid =
        until_settled(process.service, "/payments", &key("paid"), &payment("10.00", "invoice-1")).await;
    let path = format!("{}/refunds", paid.headers["location"].to_str().unwrap());
    process.kill().await;

    let mut process = Process::start(Start { fail_point: Some(fail_point), ..start }).await;
    let (service, asking) = (process.service, path.clone());
    let asked = tokio::spawn(async move {
        let key = key("refund");
        let headers =
            [("idempotency-key", &*key), ("x-account-id", ACCOUNT), ("content-type", "application/json")];
        service.try_send(Method::POST, &asking, &headers, "{\"amount\":\"4.00\"}").await
    });
    process.is_at(fail_point).await;
    process.kill().await;
    assert!(asked.await.unwrap().is_none());

    let process = Process::start(start).await;
    let body: Value = json!({ "amount": "4.00" });
    let answer = until_settled(process.service, &path, &key("refund"), &body).await;
    assert_eq!(answer.status, 201, "{fail_point}: {}", answer.json());
    assert_eq!(answer.json()["amount"], "4.00");
    let operation = answer.headers["semel-operation-id"].to_str().unwrap();
    assert_eq!(provider.effects(operation).await, 1, "{fail_point}");
    let rest = until_settled(process.service, &path, &key("the-rest"), &json!({})).await;
    assert_eq!(rest.json()["amount"], "6.00", "{fail_point}: no more and no less was given back");
}
